"""Mistakes in the base of NTK scaling."""

from attnlib.clinic.catalogue import Mistake

_NTK = (
    "base scale^(d / (d - 2)) is chosen so that the slowest pair, number d/2 - 1, is "
    "slowed by exactly the scale, and the fastest not at all."
)


MISTAKES = (
    Mistake(
        "ntk_no_exponent",
        "",
        "The base is multiplied by the plain scale",
        _NTK + " With the plain scale the slowest pair is slowed a little too little.",
        "An exponent is missing.",
    ),
    Mistake(
        "ntk_exponent_inverted",
        "",
        "The exponent is upside down",
        _NTK + " d / (d - 2) lies above 1.",
        "Which is larger, d or d - 2?",
    ),
    Mistake(
        "ntk_minus_one",
        "",
        "The exponent is d / (d - 1)",
        _NTK + " The exponent of the slowest pair is (d - 2) / d.",
        "Pairs are counted from 0, and each has two features.",
    ),
    Mistake(
        "ntk_plus_two",
        "",
        "The exponent is d / (d + 2)",
        _NTK,
        "One sign.",
    ),
    Mistake(
        "ntk_pairs_for_d",
        "",
        "The number of pairs is taken for d",
        _NTK + " d counts features, two to a pair.",
        "Do not halve d.",
    ),
    Mistake(
        "ntk_two_over_d",
        "",
        "The exponent is 2 / d",
        _NTK + " 2 i / d is the exponent of a frequency.",
        "Solve for the base: the slowest pair has the frequency base^(-(d - 2) / d).",
    ),
    Mistake(
        "ntk_d",
        "",
        "The exponent is d",
        _NTK + " It is hardly above 1.",
        "Divide d by d - 2.",
    ),
    Mistake(
        "ntk_scale_inverted",
        "",
        "The scale is upside down: the base shrinks",
        "scale is wanted length over trained length, above 1 for longer texts, and a "
        "larger base turns more slowly.",
        "Multiply, do not divide.",
    ),
    Mistake(
        "ntk_dynamic",
        "",
        "The scale goes through the formula of 'dynamic' NTK",
        "factor L'/L - (factor - 1) is what transformers computes for its type "
        "'dynamic'. With both at 4 it gives 13, not 4.",
        "The scale that you are given is the one to use.",
    ),
    Mistake(
        "ntk_scale_squared",
        "",
        "The scale is used twice",
        _NTK,
        "Once is enough.",
    ),
    Mistake(
        "ntk_base_unchanged",
        "",
        "The base comes back as it was, whatever the scale",
        _NTK,
        "For a scale of 4 and d = 128 the base is about 4.09 times as large.",
    ),
    Mistake(
        "ntk_min",
        "",
        "The smaller of 1 and scale is taken, not the larger",
        "Then a longer text changes nothing, and a shorter one shrinks the base. It "
        "should be the other way round.",
        "A scale that is *at least* 1 is the larger of the two.",
    ),
    Mistake(
        "ntk_over_1024",
        "",
        "The scale is divided by 1024, as in the article's function",
        "That function gets a length, and divides it by the trained one. Here the "
        "scale is a quotient already.",
        "Use the scale as it is.",
    ),
    Mistake(
        "ntk_scale_whole",
        "",
        "The scale is made a whole number",
        "A text may be 1.5 times as long as those of the training: its scale is 1.5.",
        "Use the scale as it is.",
    ),
    Mistake(
        "ntk_scale_up",
        "",
        "The scale is rounded up to a whole number",
        "A text may be 1.5 times as long as those of the training: its scale is 1.5.",
        "Use the scale as it is.",
    ),
    Mistake(
        "ntk_scale_log",
        "",
        "The logarithm of the scale is used",
        _NTK,
        "Use the scale as it is.",
    ),
    Mistake(
        "ntk_one_below",
        "",
        "For a scale below 1 the result is 1",
        "It is the scale that counts as 1 there. The base then stays as it is.",
        "What should the new base be for a scale of 1?",
    ),
    Mistake(
        "ntk_mirrored",
        "",
        "A scale below 1 is turned upside down",
        "A text half as long as those of the training needs no stretching at all.",
        "Let the scale be 1 at the least: max(1, scale).",
    ),
    Mistake(
        "ntk_shrinks",
        "",
        "A scale below 1 makes the base smaller",
        "A text shorter than those of the training needs no stretching: its positions "
        "were all trained. A smaller base turns pairs in a way that the model never "
        "saw. The article's function does this below 1024 tokens.",
        "Let the scale be 1 at the least: max(1, scale).",
    ),
    Mistake(
        "ntk_all_raised",
        "",
        "The base goes into the power as well",
        _NTK,
        "Only the scale has the exponent.",
    ),
    Mistake(
        "ntk_base_raised",
        "",
        "The base has the exponent, not the scale",
        _NTK,
        "At scale 1 nothing should change.",
    ),
    Mistake(
        "ntk_added",
        "",
        "The power is added to the base",
        _NTK + " Added, it hardly changes a base of 10000.",
        "Multiply.",
    ),
    Mistake(
        "ntk_base_missing",
        "",
        "The factor is returned without the base",
        _NTK,
        "At scale 1 the result is the base itself.",
    ),
    Mistake(
        "ntk_multiplied",
        "",
        "The exponent is used as a factor",
        _NTK,
        "Use ** where you multiply.",
    ),
    Mistake(
        "ntk_base_fixed",
        "",
        "The base is taken to be 10000",
        "Models differ in their base: 500000 is common in new ones.",
        "Use the base that you are given.",
    ),
    Mistake(
        "ntk_unbracketed",
        "",
        "The exponent comes out as -1: brackets are missing",
        "`d / d - 2` is 1 - 2. " + _NTK,
        "Which two numbers are to be divided?",
    ),
    Mistake(
        "ntk_whole_division",
        "",
        "The exponent is rounded down",
        "d // (d - 2) is 1 for every d above 4. " + _NTK,
        "`/` divides, `//` leaves the rest out.",
    ),
    Mistake(
        "ntk_d_fixed",
        "",
        "d is taken to be 128",
        "Heads of other models have other widths: 64, 96 or 256.",
        "Use the d that you are given.",
    ),
    Mistake(
        "ntk_frequency",
        "",
        "This is the new frequency of the slowest pair, not the base",
        "The slowest pair turns by base^(-(d - 2) / d), and divided by scale that is "
        "yours. Which base has it?",
        "Take it to the power of -d / (d - 2).",
    ),
    Mistake(
        "ntk_root_missing",
        "",
        "The last step is missing: the result is still to the power of (d - 2) / d",
        "base^((d - 2) / d) scale is right: one over the new frequency of the slowest "
        "pair. The new base to the power of (d - 2) / d has to be that.",
        "Solve for the base: take it to the power of d / (d - 2).",
    ),
    Mistake(
        "ntk_frequencies",
        "",
        "These are the frequencies of all pairs, not the base",
        "One number is wanted, from which RoPE makes its frequencies.",
        "Return the new base itself.",
    ),
    Mistake(
        "ntk_interpolation",
        "",
        "These are frequencies, slowed by position interpolation",
        "PI divides the frequencies of all pairs by scale. NTK changes the base, so "
        "that the fastest pair stays as it is.",
        "One number is wanted, a base.",
    ),
    Mistake(
        "ntk_base_powered",
        "",
        "The base is taken to the power of the scale",
        _NTK,
        "The base is multiplied.",
    ),
)
