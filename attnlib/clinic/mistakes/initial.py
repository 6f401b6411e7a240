"""Mistakes in finding how the first weights are to be drawn."""

from attnlib.clinic.catalogue import Mistake

_DROP = "The entropy falls by half the square of the std: -ln share = std² / 2."
_TABLES = "The std of the scores is d_model times std², for both tables draw alike."

MISTAKES = (
    Mistake(
        "share_without_log",
        "",
        "The logarithm of the share is missing",
        "Entropy is a logarithm: a query that uses 0.8 of its keys has lost -ln 0.8 of "
        "it. 1 - 0.8 is close to that, and for smaller shares it is not.",
        "What is ln of the effective keys, against ln of all keys?",
    ),
    Mistake(
        "spread_without_two",
        "",
        "The 2 under the root is missing",
        _DROP,
        "Solve for the std once more, slowly.",
    ),
    Mistake(
        "spread_halved",
        "",
        "Halved, where it should be doubled",
        _DROP,
        "Solve for the std once more, slowly.",
    ),
    Mistake(
        "spread_without_root",
        "",
        "A variance and a std stand in one formula",
        "Yours is √(-2 ln share / d_model). But -2 ln share is the variance of the "
        "scores, and d_model · std² is their std: both tables bring a std.",
        "One root more is to be taken. Of what?",
    ),
    Mistake(
        "spread_is_drop",
        "",
        "What is lost of the entropy is taken for the std of the scores",
        _DROP,
        "From the entropy to the std it is one more step.",
    ),
    Mistake(
        "spread_is_share",
        "",
        "The share is taken for the std of the scores",
        "A share near 1 asks for small scores: the more even the weights, the smaller "
        "the std. Yours grows with the share.",
        "The rule with e^(-std²/2) says which std belongs to a share.",
    ),
    Mistake(
        "spread_is_one",
        "",
        "The share is not used: the scores get std 1",
        "That is Xavier's start, with about 0.6 of the keys, whatever share was asked "
        "for.",
        "The rule with e^(-std²/2) says which std belongs to a share.",
    ),
    Mistake(
        "rule_forwards",
        "",
        "The rule is applied forwards: the share stands where the std belongs",
        "e^(-std²/2) makes a share of a std. Here the share is known, and the std is "
        "looked for.",
        "Set share = e^(-std²/2), and take the logarithm of both sides.",
    ),
    Mistake(
        "log_sign_lost",
        "",
        "A root of a negative number",
        "A share below 1 has a negative logarithm, and its root is not a number.",
        "One minus.",
    ),
    Mistake(
        "width_outside_root",
        "",
        "d_model stands outside the root",
        _TABLES,
        "Solve d_model · std² = spread for std: the root is taken of all of it.",
    ),
    Mistake(
        "width_of_head",
        "M02",
        "d_k stands where d_model belongs",
        "Each number of q is a sum over the d_model numbers of a token. The d_k "
        "products of a score are another sum, which the scale has answered for.",
        "Over what do the tables add: how many numbers go in?",
    ),
    Mistake(
        "root_of_d_k_kept",
        "M01",
        "The root of d_k is divided out once more",
        "Scores are divided by √d_k already. Your tables would be right for raw "
        "scores, and make these too small.",
        "Does the std of the scores still depend on d_k?",
    ),
    Mistake(
        "root_of_d_k_twice",
        "M03",
        "The tables are made larger by the root of d_k",
        "Scores are divided by √d_k, and raw scores are larger by just that: both are "
        "in d_model · std² already.",
        "Does the std of the scores still depend on d_k?",
    ),
    Mistake(
        "width_upside_down",
        "",
        "Upside down: the tables grow with d_model",
        _TABLES + " So wider models need smaller numbers.",
        "Solve d_model · std² = spread for std.",
    ),
    Mistake(
        "width_multiplied",
        "",
        "Multiplied by d_model, where it should be divided",
        _TABLES + " So wider models need smaller numbers.",
        "Solve d_model · std² = spread for std.",
    ),
    Mistake(
        "width_of_512",
        "",
        "d_model is not used: yours is right at 512 only",
        "Here it is another width.",
        "Use the argument.",
    ),
    Mistake(
        "width_missing",
        "",
        "d_model is not used",
        _TABLES + " So the same tables give other scores at another width.",
        "Solve d_model · std² = spread for std.",
    ),
    Mistake(
        "width_and_head",
        "M03",
        "Divided by d_model and by d_k",
        _TABLES + " d_k is not in it: the scale has answered for it.",
        "Does the std of the scores still depend on d_k?",
    ),
    Mistake(
        "width_without_root",
        "",
        "A root too many: d_model enters by its root",
        _TABLES + " std² is divided by d_model itself.",
        "Solve d_model · std² = spread for std.",
    ),
    Mistake(
        "bound_for_std",
        "M39",
        "The bound of a uniform distribution, where the std is meant",
        "Numbers drawn evenly between -b and b have the std b / √3.",
        "What is asked for is the std.",
        "pytorch/pytorch#166378",
    ),
    Mistake(
        "spread_returned",
        "",
        "The std of the scores, where that of the tables is meant",
        "You have found how far the scores should spread. The tables are one step "
        "further back.",
        "Solve d_model · std² = spread for std.",
    ),
)
