"""What finite numbers, first weights and loud scores do to attention.

`floats` says what a float type can hold, `overflow` where scores and softmax leave it,
`initial` how large the scores are before the first step, and `stable` how to keep them
from growing later.
"""

from attnlib.numerics.floats import Limits, limits, round_to_bfloat16, stored
from attnlib.numerics.initial import SCHEMES, init_std, logit_std
from attnlib.numerics.overflow import (
    FillEffect,
    SoftmaxLimits,
    fill_effect,
    scores_scaled_after,
    scores_scaled_before,
    softmax_limits,
)
from attnlib.numerics.stable import (
    NormedScores,
    entropy_bound,
    qk_norm,
    sigma_reparam,
    softcap,
)

__all__ = [
    "SCHEMES",
    "FillEffect",
    "Limits",
    "NormedScores",
    "SoftmaxLimits",
    "entropy_bound",
    "fill_effect",
    "init_std",
    "limits",
    "logit_std",
    "qk_norm",
    "round_to_bfloat16",
    "scores_scaled_after",
    "scores_scaled_before",
    "sigma_reparam",
    "softcap",
    "softmax_limits",
    "stored",
]
