"""Mistakes in the slopes of ALiBi, one for each head."""

from attnlib.clinic.catalogue import Mistake

_OTHERS = (
    "For a count between two powers of two the reference takes the slopes of the power "
    "below, p, and then every other slope of 2 p heads."
)
_FORMULA = "For n heads, n a power of two, head h = 0, 1, ... has 2^(-8 (h + 1) / n)."

MISTAKES = (
    Mistake(
        "slopes_eight_heads",
        "M31",
        "Each slope is half of the one before, whatever the count",
        "1/2, 1/4, 1/8, ... are the slopes of 8 heads. " + _FORMULA + " Between two "
        "powers of two the reference takes the slopes of the power below, p, and then "
        "every other slope of 2 p heads.",
        "By which factor do slopes fall with 4 heads?",
    ),
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
        "between_of_below",
        "M31",
        "The further slopes are made from p heads, not from 2 p",
        _OTHERS + " Every other slope of p is there already.",
        "The exponents of the further ones are divided by 2 p.",
    ),
    Mistake(
        "between_of_rest",
        "M31",
        "The further slopes are those of as many heads as are missing",
        _OTHERS,
        "How many heads are missing only says where to cut.",
    ),
    Mistake(
        "between_zero",
        "M31",
        "The further slopes are 0",
        _OTHERS + " With a slope of 0 a head knows no distance.",
        "Take the missing ones from 2 p heads.",
    ),
    Mistake(
        "between_continued",
        "M31",
        "The formula of p heads goes on beyond p",
        _OTHERS + " They lie between those of p, not below them.",
        "The exponents of the further ones are divided by 2 p.",
    ),
    Mistake(
        "between_from_one",
        "M31",
        "The exponents of the further slopes begin at 0",
        _OTHERS + " They are counted from h + 1 = 1, like the others.",
        "No slope is 1.",
    ),
    Mistake(
        "first_by_count",
        "M31",
        "The first slopes are divided by the count of heads, not by p",
        _OTHERS + " So p stands in the exponent of the first ones, and 2 p in that of "
        "the others.",
        "With 12 heads, the first slope is that of 8 heads: 1/2.",
    ),
    Mistake(
        "between_not_cut",
        "M31",
        "There are more slopes than heads",
        _OTHERS + " Only as many of these as are missing: none at a power of two.",
        "Cut the second part off at n_heads - p.",
    ),
    Mistake(
        "between_missing",
        "M31",
        "There are fewer slopes than heads: those of the power of two below, alone",
        _OTHERS,
        "Take the missing ones from 2 p heads.",
    ),
    Mistake(
        "between_cut_too_early",
        "M31",
        "The further slopes are cut off first, and then every other one is taken",
        _OTHERS + " Cut first, only half of the missing ones are left.",
        "First the step of two, then the cut.",
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
        "slopes_ascending",
        "M31",
        "The slopes are sorted, the smallest first",
        _OTHERS + " They are not in order, and a checkpoint depends on which head has "
        "which.",
        "Leave them in the order in which they are made.",
    ),
    Mistake(
        "slopes_exponents",
        "M31",
        "These are the exponents, not the slopes",
        _FORMULA,
        "2.0 to the power of them is missing.",
    ),
    Mistake(
        "slopes_unbracketed",
        "M31",
        "The power is taken before the product: brackets are missing",
        _FORMULA + " `2 ** -8 * h / n` is (2 ** -8) * h / n, and rises with h.",
        "The whole exponent stands in brackets.",
    ),
    Mistake(
        "slopes_normalized",
        "M31",
        "The slopes are divided by their sum",
        "Slopes are no weights: they need not sum to one, and a checkpoint was trained "
        "with these numbers.",
        "Leave them as they are.",
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
)
