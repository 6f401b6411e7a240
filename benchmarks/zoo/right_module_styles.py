"""The right modules that the wrong ones are made of: nothing is to be found here."""

from __future__ import annotations

from .module_bands import BAND, CAPPED, ONE_KEY, PRESS
from .module_eyes import COAT, CROSS, STUDENT, VIT
from .module_gpt import GPT2, HEADS, NANO, NEOX
from .module_hub import BERT, BLOOM, LLAMA, MISTRAL
from .module_norms import CACHED, GEMMA, QWEN, VISION
from .module_papers import ANNOTATED, BATCH_MAJOR, HEAD_MAJOR, SPLIT_CONCAT
from .module_raw import IN_PROJ, KERNEL, LENS, MATRICES, TILED

STYLES = (
    *(SPLIT_CONCAT, ANNOTATED, HEAD_MAJOR, BATCH_MAJOR, NANO, HEADS, GPT2, NEOX),
    *(VIT, CROSS, COAT, STUDENT, MATRICES, LENS, IN_PROJ, KERNEL, TILED, BERT, LLAMA),
    *(BLOOM, MISTRAL, QWEN, VISION, GEMMA, CACHED, PRESS, BAND, CAPPED, ONE_KEY),
)
SPECIMENS = tuple(style.wrong("", "right") for style in STYLES)
