"""Mistakes in RoPE: which features are a pair, and how a pair is turned."""

from attnlib.clinic.catalogue import Mistake

_LAYOUT = (
    "Both layouts are right, each for weights that were trained with it. The wrong one "
    "leaves position 0 as it should be, and changes all others."
)
_TURN = (
    "A turn by t makes (a, b) to (a cos t - b sin t, a sin t + b cos t). It keeps the "
    "length of each pair."
)

MISTAKES = (
    Mistake(
        "layout_always_interleaved",
        "M26",
        "Neighbours are paired, whatever the layout",
        _LAYOUT,
        "With layout 'half', feature i is paired with feature i + d/2.",
        "huggingface/transformers#25199",
    ),
    Mistake(
        "layout_always_half",
        "M26",
        "Feature i is paired with i + d/2, whatever the layout",
        _LAYOUT,
        "With layout 'interleaved', features 2 i and 2 i + 1 are a pair.",
        "naklecha/llama3-from-scratch#20",
    ),
    Mistake(
        "layouts_exchanged",
        "M26",
        "The two layouts have changed names",
        _LAYOUT,
        "'interleaved' pairs neighbours, 'half' pairs i with i + d/2.",
    ),
    Mistake(
        "pairs_mirrored",
        "M26",
        "The second half is paired in reverse order",
        "In the layout 'half' feature 0 goes with d/2, not with the last one.",
        "Feature i and feature i + d/2 are pair i.",
    ),
    Mistake(
        "half_untouched",
        "M26",
        "With layout 'half' nothing is turned",
        "Both layouts turn all pairs. They differ in which features are a pair.",
        "Is there a branch for 'half', and is it reached?",
    ),
    Mistake(
        "joined_as_half",
        "M26",
        "Neighbours are turned, but put back as two halves",
        "The pairs are read as neighbours, and their results must return to the places "
        "they came from. Queries and keys treated alike would still give the right "
        "scores; here the features themselves are compared.",
        "np.concatenate puts all first ones before all second ones. Where should they "
        "go?",
    ),
    Mistake(
        "joined_as_pairs",
        "M26",
        "Two halves are turned, but put back as neighbours",
        "The pairs are read as i and i + d/2, and their results must return to the "
        "places they came from.",
        "In layout 'half' the first ones fill the first half.",
    ),
    Mistake(
        "angles_always_repeated",
        "M26",
        "Each angle is repeated for neighbours, in the layout 'half' as well",
        "In the layout 'half', features i and i + d/2 are a pair and must have one "
        "angle: the whole list, twice over.",
        "np.repeat gives 0 0 1 1, np.tile gives 0 1 0 1.",
    ),
    Mistake(
        "angles_always_tiled",
        "M26",
        "The list of angles is laid down twice, in the layout 'interleaved' as well",
        "In the layout 'interleaved' neighbours are a pair and must have one angle: "
        "each angle two times in a row.",
        "np.repeat gives 0 0 1 1, np.tile gives 0 1 0 1.",
    ),
    Mistake(
        "angles_exchanged",
        "M26",
        "The two features of a pair get different angles",
        "A pair is turned as a whole, by one angle. Which features are a pair depends "
        "on the layout, and the list of angles has to follow it.",
        "np.repeat gives 0 0 1 1, np.tile gives 0 1 0 1. Which fits which layout?",
    ),
    Mistake(
        "turned_backwards",
        "M27",
        "The pairs turn the other way round",
        _TURN + " Both signs are exchanged. Scores among your own queries and keys do "
        "not show it, but trained weights do.",
        "The minus belongs to the first feature.",
    ),
    Mistake(
        "first_sign",
        "M27",
        "The minus is missing",
        _TURN,
        "Two pluses make no turn: compare the length of a pair before and after.",
    ),
    Mistake(
        "second_sign",
        "M27",
        "There is one minus too many",
        _TURN,
        "Two minuses make no turn: compare the length of a pair before and after.",
    ),
    Mistake(
        "cosine_sign",
        "M27",
        "The second feature has a minus that it should not have",
        _TURN + " Yours mirrors the pair: its length stays, its direction does not.",
        "Only one of the four products has a minus.",
    ),
    Mistake(
        "sinusoid_added",
        "M27",
        "The sinusoid is added to x",
        "That is the first way to tell a position. RoPE adds nothing: it turns. "
        + _TURN,
        "Sine and cosine are multiplied with the features.",
    ),
    Mistake(
        "sinusoid_multiplied",
        "M27",
        "x is multiplied by the sinusoid, number by number",
        _TURN,
        "Each new feature is made of both old ones.",
    ),
    Mistake(
        "partner_missing",
        "M26",
        "The sine is multiplied by the feature itself, not by its partner",
        _TURN,
        "Next to the sine of a stands b, and next to that of b stands a.",
    ),
    Mistake(
        "cos_part_only",
        "M27",
        "Only the cosines are there",
        _TURN + " Without the sines, pairs shrink and nothing turns.",
        "Two products make a new feature.",
    ),
    Mistake(
        "first_overwritten",
        "",
        "The second feature is computed from the new first one",
        "A slice such as x[..., 0::2] is a view: after you write into it, the old "
        "numbers are gone.",
        "Compute both new features before you store either, or take copies.",
    ),
    Mistake(
        "turned_added",
        "M27",
        "The turned vector is added to the old one",
        "RoPE turns in place of adding. Lengths must stay.",
        "Return the turned vector alone.",
    ),
    Mistake(
        "first_pair_only",
        "M27",
        "Only the first pair is turned",
        "Every pair turns, each at its own speed.",
        "Angles need an axis for the pairs: (n, d/2).",
    ),
    Mistake(
        "first_of_pairs_only",
        "M27",
        "Only the first feature of each pair is changed",
        _TURN,
        "Both features of a pair get new numbers.",
    ),
    Mistake(
        "second_features_zero",
        "M27",
        "The second features of the pairs are empty",
        _TURN,
        "Both features of a pair get new numbers.",
    ),
)
