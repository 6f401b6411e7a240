"""Mistakes in counting how far a token sees through layers of windows."""

from attnlib.clinic.catalogue import Mistake

_STEP = (
    "A window of `width` keys holds the query's own, so the oldest one stands "
    "width - 1 tokens back."
)
_LAYERS = "Each layer looks one window further back than the layer below."
_ASKED = "A place in the text is wanted, counted from 0, and there is none before 0."

MISTAKES = (
    Mistake(
        "reach_width_counted",
        "M32",
        "Each layer goes one token too far back",
        _STEP,
        "How far back does one layer see, if the width is 1?",
        "vllm-project/vllm#3385",
    ),
    Mistake(
        "reach_width_two_less",
        "M32",
        "Each layer goes one token too few back",
        _STEP,
        "How far back does one layer see, if the width is 2?",
    ),
    Mistake(
        "reach_half_window",
        "",
        "Half of the window is counted",
        _STEP + " The window is causal: all of it lies on one side.",
        "Do not halve.",
    ),
    Mistake(
        "reach_half_width",
        "",
        "Half of the width is counted",
        _STEP + " The window is causal: all of it lies on one side.",
        "Do not halve.",
    ),
    Mistake(
        "reach_both_sides",
        "",
        "Each layer goes twice as far back as a window reaches",
        _STEP,
        "Where does your factor of 2 come from?",
    ),
    Mistake(
        "reach_one_layer",
        "",
        "One layer is counted",
        _LAYERS,
        "Which argument did you not use?",
    ),
    Mistake(
        "reach_layer_too_few",
        "",
        "One layer is missing",
        _LAYERS + " The first one looks back, too.",
        "What is right for one layer?",
    ),
    Mistake(
        "reach_layer_too_many",
        "",
        "One layer too many is counted",
        _LAYERS,
        "What is right for one layer?",
    ),
    Mistake(
        "reach_width_less_one_once",
        "M32",
        "The query's own key is taken off once, not in each layer",
        _STEP + " That holds in every layer.",
        "How far back do many layers see, if the width is 1?",
    ),
    Mistake(
        "reach_power",
        "",
        "The reach is multiplied from layer to layer",
        _LAYERS + " One window further is a sum, not a product.",
        "Times n_layers, not to the power of it.",
    ),
    Mistake(
        "reach_power_of_width",
        "",
        "The width is multiplied from layer to layer",
        _LAYERS + " One window further is a sum, not a product.",
        "Times n_layers, not to the power of it.",
    ),
    Mistake(
        "reach_added",
        "",
        "Layers and width are added",
        _LAYERS,
        "What do two layers see that one does not?",
    ),
    Mistake(
        "reach_is_distance",
        "",
        "That is how far back it lies, not where",
        _ASKED,
        "Begin at position.",
    ),
    Mistake(
        "reach_is_distance_cut",
        "",
        "That is how far back it lies, not where",
        _ASKED,
        "Begin at position, and go back.",
    ),
    Mistake(
        "reach_is_count",
        "",
        "That is how many tokens are seen, not which is the oldest",
        _ASKED,
        "Begin at position, and go back.",
    ),
    Mistake(
        "reach_not_cut",
        "",
        "It lies before the start of the text",
        _ASKED,
        "max takes the larger of two.",
    ),
    Mistake(
        "reach_cut_at_one",
        "",
        "Token 0 is left out",
        _ASKED,
        "The first token is token 0.",
    ),
    Mistake(
        "reach_first_outside",
        "M32",
        "That is the first token out of reach",
        _STEP,
        "One layer of width 1: which token is seen?",
    ),
    Mistake(
        "reach_one_late",
        "M32",
        "One token more can be reached",
        _STEP,
        "One layer of width 2: which is the oldest token seen?",
    ),
    Mistake(
        "reach_smaller",
        "",
        "The smaller of the two is taken, and the larger is right",
        _ASKED,
        "max, not min.",
    ),
)
