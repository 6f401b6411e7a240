"""Mistakes in frequencies, angles and positions, of the sinusoid and of RoPE."""

from attnlib.clinic.catalogue import Mistake

_ONE_FREQUENCY = (
    "The sine and the cosine of a pair share one frequency. Only then is a step of k "
    "tokens one and the same turn everywhere, and the dot product of two positions a "
    "matter of their distance alone."
)
_PAIRS = (
    "Pair i turns by base^(-2 i / d) a token, with i = 0, 1, 2, ... counting pairs. "
    "The first pair turns by 1, the last by nearly 1/10000."
)

MISTAKES = (
    Mistake(
        "angles_zero",
        "M30",
        "All angles are 0: no position makes a difference",
        _PAIRS + " Position times that is the angle. 10000 ** -2 * i is nearly 0: "
        "the whole exponent stands in brackets.",
        "Print the angles. Those of position 1 should begin with 1.",
    ),
    Mistake(
        "frequency_by_column",
        "M30",
        "Every column has a frequency of its own",
        _ONE_FREQUENCY,
        "Columns 0 and 1 belong together, and so do 2 and 3. What is the number of the "
        "pair?",
        "Kyubyong/transformer#38",
    ),
    Mistake(
        "frequency_by_column_doubled",
        "M30",
        "The number of the column is doubled, and every column has its own frequency",
        "The i of the formula counts pairs. Columns 0, 2, 4, ... are 2 i already, and "
        "the odd ones take the frequency of their neighbour.",
        "What is the number of the pair to which column c belongs?",
        "SamLynnEvans/Transformer#25",
    ),
    Mistake(
        "frequency_not_doubled",
        "M30",
        "The exponent is i/d, where 2 i/d is meant",
        _PAIRS + " With i/d the slowest pair is only 100 times slower than the first.",
        "There are d/2 pairs. What is the exponent of the last one?",
    ),
    Mistake(
        "frequency_doubled_twice",
        "M30",
        "The exponent is 4 i/d, where 2 i/d is meant",
        _PAIRS + " A loop in steps of two, or a d that was halved before, holds the 2 "
        "already; then it must not be there once more.",
        "What is the exponent of the last pair? It should be close to 1.",
    ),
    Mistake(
        "frequency_from_one",
        "M30",
        "Pairs are counted from 1, not from 0",
        "The first pair turns by 1 radian a token: base to the power of 0. Papers that "
        "count from 1 write i - 1.",
        "What should the exponent of the first pair be?",
    ),
    Mistake(
        "frequency_to_the_end",
        "M30",
        "The exponent runs up to exactly 1",
        _PAIRS
        + " Some libraries divide by d - 2 instead; their weights need that, and "
        "no others.",
        "Divide by d.",
    ),
    Mistake(
        "frequency_sign",
        "M30",
        "The exponent lacks its minus",
        "Frequencies fall from 1 towards 1/10000. Yours rise towards 10000: a position "
        "is then turned many times around from one token to the next.",
        "One sign.",
    ),
    Mistake(
        "frequency_one",
        "M30",
        "All pairs turn equally fast",
        "With one frequency positions repeat after 2 pi, about six tokens. The slow "
        "pairs tell far positions apart.",
        "Multiply the position by the frequency of its pair.",
    ),
    Mistake(
        "frequency_reversed",
        "M30",
        "The frequencies stand in reverse order",
        "The first pair is the fastest.",
        "Exponents begin at 0.",
    ),
    Mistake(
        "frequency_of_16",
        "M30",
        "The exponent is divided by 16, whatever the width",
        _PAIRS + " 16 was the width in the lesson's example.",
        "Use the width that you are given.",
    ),
    Mistake(
        "base_1000",
        "M30",
        "The base is 1000, where 10000 is meant",
        "The base says how slow the slowest pair is. Trained weights fit one base.",
        "Count the zeros.",
        "maxjcohen/transformer#62",
    ),
    Mistake(
        "base_100000",
        "M30",
        "The base is 100000, where 10000 is meant",
        "The base says how slow the slowest pair is. Trained weights fit one base.",
        "Count the zeros.",
    ),
    Mistake(
        "base_500000",
        "M30",
        "The base is 500000, where 10000 is meant",
        "Some newer models have it. Trained weights fit one base.",
        "Take the base of the description.",
    ),
    Mistake(
        "base_missing",
        "M30",
        "The base is e, where 10000 is meant",
        "np.exp(-2 i / d) falls from 1 to about 1/3 only. With np.exp the exponent "
        "needs the logarithm of the base as a factor.",
        "Write 10000.0 ** exponent.",
    ),
    Mistake(
        "angles_in_turns",
        "",
        "The angles are 2 pi times too large",
        "Position times frequency is an angle in radians as it is.",
        "Leave 2 pi out.",
    ),
    Mistake(
        "angles_in_degrees",
        "",
        "The angles are taken for degrees",
        "Position times frequency is an angle in radians as it is, and np.sin wants "
        "radians.",
        "Leave the conversion out.",
    ),
    Mistake(
        "angles_in_half",
        "M27",
        "The angles are computed in float16",
        "float16 has 11 significant bits: position 2049 does not exist in it, and the "
        "angle of a position of some hundreds is off in its second decimal.",
        "Keep positions and angles in float64, whatever the type of x.",
    ),
    Mistake(
        "positions_from_one",
        "M27",
        "Every position is one too large",
        "The first token stands at position 0, or where `positions` says. In RoPE a "
        "shift of all positions leaves the scores as they are, so it shows only where "
        "some tokens are shifted and others not: behind a cache.",
        "Nothing is to be added to a position.",
    ),
    Mistake(
        "positions_over_n",
        "",
        "Positions are divided by their number",
        "Then a token gets another vector when the text gets longer, and a step of one "
        "token is no fixed turn.",
        "Leave positions as they are: 0, 1, 2, ...",
    ),
    Mistake(
        "positions_ignored",
        "M27",
        "The positions are counted anew from 0",
        "A new token behind a cache stands at the end of the text, not at its start.",
        "Use the positions that you are given.",
        "RobertCsordas/moeut#6",
    ),
    Mistake(
        "positions_from_first",
        "M27",
        "The first position is subtracted from all",
        "The scores of these tokens among themselves stay right, but keys in a cache "
        "were turned by their own positions.",
        "Use the positions as they are.",
    ),
    Mistake(
        "positions_doubled",
        "M27",
        "Everything is turned twice as far",
        "Turned twice over, as when a cached key is turned once more: each pair stands "
        "at twice its angle. Or the 2 of the exponent stands in front of the position.",
        "Turn once.",
        "NeuraLegion/shainet#110",
    ),
    Mistake(
        "sin_then_cos",
        "",
        "All sines stand first, then all cosines",
        "As an encoding it is as good: the same numbers in other columns. Weights that "
        "were trained with the paper's order need that order, and so does this task.",
        "Sines go to columns 0, 2, 4, ..., cosines to 1, 3, 5, ...",
    ),
    Mistake(
        "sin_cos_exchanged",
        "M30",
        "Sine and cosine have changed places",
        "Position 0 gives the angle 0, with a sine of 0 and a cosine of 1.",
        "Look at position 0: which numbers should it have?",
    ),
    Mistake(
        "sin_only",
        "M30",
        "There are sines only",
        "A sine alone does not tell 1 from pi - 1. With its cosine it is a point on a "
        "circle, which can be turned.",
        "Every second column is a cosine.",
    ),
    Mistake(
        "cos_only",
        "M30",
        "There are cosines only",
        "A cosine alone does not tell an angle from its negative. With its sine it is "
        "a point on a circle, which can be turned.",
        "Every second column is a sine.",
    ),
    Mistake(
        "sines_by_row",
        "M30",
        "Every second row has sines, where every second column should",
        "A row is a position, a column a feature. Each position has sines and cosines.",
        "The step of two belongs to the second axis: [:, 0::2].",
    ),
    Mistake(
        "cosines_missing",
        "",
        "The columns of the cosines are empty",
        "A sine alone does not tell 1 from pi - 1. With its cosine it is a point on a "
        "circle, which can be turned.",
        "Which columns are still to be written?",
    ),
    Mistake(
        "sines_negative",
        "M30",
        "The sines have the wrong sign",
        "The angle is position times frequency, and no minus stands in front. A power "
        "binds first: -10000 ** x is -(10000 ** x).",
        "Position 1 begins with 0.841.",
    ),
    Mistake(
        "table_whole",
        "",
        "Only position 0 is right: behind it the decimals are lost",
        "A sine written into a table of whole numbers loses its decimals. np.zeros "
        "with dtype=int, or np.empty_like of whole numbers, makes such a table. Or the "
        "rows behind were never written: a `return` inside the loop ends it.",
        "Make the table with floats, and return it behind the loop.",
    ),
    Mistake(
        "table_transposed",
        "",
        "The table lies on its side",
        "A row is a position, a column a feature: (n, d_model), like the tokens that "
        "it is added to.",
        "Positions go down, frequencies across: positions[:, None].",
    ),
    Mistake(
        "table_scaled",
        "",
        "The table is divided by the root of d_model",
        "That is for scores, which are sums of many products. The table is added to "
        "the tokens as it is.",
        "Leave the division out.",
    ),
    Mistake(
        "table_empty",
        "",
        "Nothing is written into the table",
        "np.zeros makes a table of zeros, and table[:, 0::2] = ... writes into it.",
        "Sines and cosines of the angles have to go into the table.",
    ),
)
