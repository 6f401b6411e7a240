"""Mistakes in the slopes of ALiBi and in the base of NTK scaling."""

from attnlib.clinic.catalogue import Mistake

_OTHERS = (
    "For a count between two powers of two the reference takes the slopes of the power "
    "below, p, and then every other slope of 2 p heads."
)
_FORMULA = "For n heads, n a power of two, head h = 0, 1, ... has 2^(-8 (h + 1) / n)."
_NTK = (
    "base scale^(d / (d - 2)) is chosen so that the slowest pair, number d/2 - 1, is "
    "slowed by exactly the scale, and the fastest not at all."
)

MISTAKES = (
    Mistake(
        "slopes_by_formula",
        "M31",
        "The formula for powers of two is used for every count",
        _OTHERS + " A checkpoint with 12 heads was trained with those.",
        "Which count of heads does the formula hold for?",
        "ml-explore/mlx#3071",
    ),
    Mistake(
        "slopes_power_above",
        "M31",
        "The slopes of the power of two above are cut off",
        _OTHERS + " Cut off, the smallest slopes would be missing: no head sees far.",
        "Begin with the power of two below.",
    ),
    Mistake(
        "slopes_power_nearest",
        "M31",
        "The nearest power of two is taken, not the one below",
        "By its logarithm, 16 is the nearest one to 12, and that is more heads than "
        "there are.",
        "Round the logarithm down.",
    ),
    Mistake(
        "slopes_powers_too",
        "M31",
        "A power of two is treated like the counts between",
        "8 heads have the slopes of 8 heads, in their order. Yours begins with those "
        "of 4.",
        "At a power of two, the one below is the count itself.",
    ),
    Mistake(
        "between_from_the_start",
        "M31",
        "The further slopes are the first ones of 2 p heads, not every other one",
        _OTHERS + " Without a step of two, every second one is there already.",
        "A slice with a step: [0::2].",
    ),
    Mistake(
        "between_odd",
        "M31",
        "The further slopes are slopes that are there already",
        _OTHERS + " Beginning with the second of them, they are those of p again, and "
        "two heads look equally far.",
        "Take them from 2 p heads, and begin with the first: [0::2].",
    ),
    Mistake(
        "between_last",
        "M31",
        "The further slopes are taken from the end",
        _OTHERS + " As many as are missing, from the largest on.",
        "Cut the end off, not the start.",
    ),
    Mistake(
        "between_halved",
        "M31",
        "The list goes on by halving its last slope",
        _OTHERS + " They lie between those of p, not below them.",
        "Take the missing ones from 2 p heads.",
    ),
    Mistake(
        "between_first",
        "M31",
        "The further slopes stand in front",
        _OTHERS + " Head 0 has the first slope of p.",
        "Exchange the two parts.",
    ),
    Mistake(
        "slopes_sorted",
        "M31",
        "The slopes are sorted",
        _OTHERS + " They are not in order, and a checkpoint depends on which head has "
        "which.",
        "Leave them in the order in which they are made.",
    ),
    Mistake(
        "slopes_reversed",
        "M31",
        "The slopes stand in reverse order",
        _FORMULA + " The first head forgets fastest.",
        "Which head has the largest slope?",
    ),
    Mistake(
        "slopes_from_one",
        "M31",
        "The exponent begins at 0: the first slope is 1",
        _FORMULA + " Counted from h = 0 it is h + 1 that stands in the exponent.",
        "With 8 heads the first slope is 1/2.",
        "paiml/aprender#2143",
    ),
    Mistake(
        "slopes_always_half",
        "M31",
        "Each slope is half of the one before, whatever the count",
        _FORMULA + " Halving is right for 8 heads alone.",
        "By which factor do slopes fall with 4 heads?",
    ),
    Mistake(
        "slopes_eight_missing",
        "M31",
        "The 8 is missing in the exponent",
        _FORMULA + " The last slope is 2^-8 for every power of two.",
        "What is the last slope of yours?",
    ),
    Mistake(
        "slopes_rising",
        "M31",
        "The exponent lacks its minus",
        _FORMULA + " Slopes lie below 1.",
        "One sign.",
    ),
    Mistake(
        "slopes_upside_down",
        "M31",
        "8 and the number of heads have changed places",
        _FORMULA + " With 8 heads both are right.",
        "The last slope should be 2^-8.",
    ),
    Mistake(
        "slopes_natural",
        "M31",
        "A power of e, where a power of 2 is meant",
        _FORMULA,
        "Write 2.0 ** exponent.",
    ),
    Mistake(
        "slopes_to_256",
        "M31",
        "The slopes run from 1/2 to 1/256, whatever the count",
        _FORMULA + " The first is 1/2 for 8 heads alone; with 4 it is 1/4.",
        "What is the first slope of 4 heads?",
    ),
    Mistake(
        "slopes_linear",
        "M31",
        "The slopes lie on a line",
        _FORMULA + " Each is the one before times a fixed factor.",
        "The number of the head stands in an exponent.",
    ),
    Mistake(
        "slopes_negative",
        "M31",
        "The slopes are negative",
        "Slopes are positive, and the bias is minus the slope times the distance. With "
        "a sign too many, far keys get the most.",
        "Leave the minus to the bias.",
    ),
    Mistake(
        "slopes_with_axes",
        "",
        "The slopes have axes for queries and keys",
        "A plain list is wanted, (n_heads). Whoever makes the bias adds the axes.",
        "Leave the axes out.",
    ),
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
)
