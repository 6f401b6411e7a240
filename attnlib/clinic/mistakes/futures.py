"""Mistakes in testing whether an attention sees the future."""

from attnlib.clinic.catalogue import Mistake

_CAUSAL = (
    "In a causal attention these may move, and should: that is what attention is for."
)

MISTAKES = (
    Mistake(
        "last_token_alone",
        "M18",
        "Only the change of the last token counts",
        "Either no other is changed, or each round writes over what the one before "
        "found. A leak at the start shows nowhere near the end.",
        "Change each token in turn, and keep the largest of all rounds.",
    ),
    Mistake(
        "first_tokens_alone",
        "M18",
        "Only one early token is changed",
        "A leak need not be there.",
        "Change each token in turn.",
    ),
    Mistake(
        "last_token_left",
        "",
        "The last token is never changed",
        "It is the future of all others.",
        "Where does your range end?",
    ),
    Mistake(
        "changes_pile_up",
        "",
        "A changed token is not put back",
        "From the second round on several tokens differ, and an earlier output may "
        "move because an even earlier token changed. Every causal attention would be "
        "accused.",
        "Begin each round with a fresh copy of x.",
    ),
    Mistake(
        "changes_pile_up_from_second",
        "",
        "A changed token is not put back",
        "From the second round on several tokens differ, and an earlier output may "
        "move because an even earlier token changed. Every causal attention would be "
        "accused.",
        "Begin each round with a fresh copy of x.",
    ),
    Mistake(
        "token_zeroed",
        "",
        "The token is set to 0, not to its negative",
        "It shows leaks, too, but the task asks for the negative, so that the numbers "
        "can be compared.",
        "-x[j].",
    ),
    Mistake(
        "one_added",
        "",
        "1 is added to the token, where its negative is asked for",
        "It shows leaks, too, but a layer norm would take the 1 off again. The task "
        "asks for the negative, so that the numbers can be compared.",
        "-x[j].",
    ),
    Mistake(
        "one_feature_turned",
        "",
        "Only one feature of the token is turned",
        "The token is a row, and all of it may be read.",
        "-x[j], the whole row.",
    ),
    Mistake(
        "later_ones_turned",
        "",
        "All tokens from j on are turned at once",
        "It shows leaks, too, but two changes may cancel in one output. The task asks "
        "for each token by itself.",
        "other[j], not other[j:].",
    ),
    Mistake(
        "own_output_counted",
        "M18",
        "The output of the changed token itself is counted",
        _CAUSAL + " A token may read itself.",
        "How many outputs stand before token j?",
    ),
    Mistake(
        "own_output_from_second",
        "M18",
        "The output of the changed token itself is counted",
        _CAUSAL + " A token may read itself.",
        "How many outputs stand before token j?",
    ),
    Mistake(
        "later_outputs",
        "",
        "Outputs after the token are looked at",
        _CAUSAL,
        "Which outputs must not move?",
    ),
    Mistake(
        "from_the_token_on",
        "",
        "Outputs from the token on are looked at",
        _CAUSAL,
        "Which outputs must not move?",
    ),
    Mistake(
        "all_outputs",
        "",
        "All outputs are looked at",
        _CAUSAL,
        "Which outputs must not move?",
    ),
    Mistake(
        "neighbour_alone",
        "",
        "Only the output just before the token is looked at",
        "A leak may reach further, and pass the neighbour by.",
        "All outputs before token j.",
    ),
    Mistake(
        "neighbour_left_out",
        "M18",
        "The output just before the token is left out",
        "A leak of one token shows there, and nowhere else.",
        "How many outputs stand before token j? [:j] has j of them.",
    ),
    Mistake(
        "first_output_alone",
        "",
        "Only the first output is looked at",
        "A leak of one token shows in the neighbour.",
        "All outputs before token j.",
    ),
    Mistake(
        "first_feature_alone",
        "",
        "Only the first feature of the outputs is looked at",
        "A leak may be in one head, and so in some features.",
        "All numbers of these outputs.",
    ),
    Mistake(
        "signs_not_dropped",
        "",
        "A move downwards is not seen",
        "An output may become smaller.",
        "np.abs.",
    ),
    Mistake(
        "changes_averaged",
        "",
        "A mean over the outputs, where the largest change is meant",
        "One output that moves among many that do not would hardly show.",
        "Take the largest.",
    ),
    Mistake(
        "changes_summed",
        "",
        "A sum over the outputs, where the largest change is meant",
        "It grows with the length of the text.",
        "Take the largest.",
    ),
    Mistake(
        "length_of_change",
        "",
        "The norm of the whole change, where its largest number is meant",
        "It grows with the length of the text.",
        "Take the largest of the absolute values.",
    ),
    Mistake(
        "rows_lengths",
        "",
        "The norm of a row, where its largest number is meant",
        "It grows with the number of features.",
        "Take the largest of the absolute values.",
    ),
    Mistake(
        "smallest_change",
        "",
        "The smallest change is returned",
        "One token without effect would acquit any leak.",
        "Keep the largest of all rounds.",
    ),
    Mistake(
        "tokens_averaged",
        "",
        "A mean over the tokens, where the largest change is meant",
        "One token that leaks among many that do not would hardly show.",
        "Keep the largest of all rounds.",
    ),
    Mistake(
        "tokens_added",
        "",
        "The changes of all rounds are added",
        "It grows with the length of the text.",
        "Keep the largest of all rounds.",
    ),
    Mistake(
        "whether_it_leaks",
        "",
        "True or False, where a number is meant",
        "A number shows how much, and lets you choose what is rounding.",
        "Return the largest change itself.",
    ),
    Mistake(
        "causal_is_true",
        "",
        "True or False, where a number is meant",
        "A number shows how much, and lets you choose what is rounding.",
        "Return the largest change itself.",
    ),
    Mistake(
        "each_token",
        "",
        "One number for each token, where one for all is meant",
        "The task asks for the largest.",
        "Keep the largest of all rounds.",
    ),
)
