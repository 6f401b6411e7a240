"""MiniLM-L6: an encoder, where every token of a sentence looks at every other.

    x = norm(embedding[ids] + positions[0 .. n-1] + kind)
    for each of 6 layers:
        x = norm(x + attention(x))          12 heads, no mask
        x = norm(x + mlp(x))

The norms stand after the sums, as in the paper of 2017; positions are a learned table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from attnlib import checkpoints
from attnlib.nn.models import filled
from attnlib.nn.multihead import MultiHead
from attnlib.shapes import ShapeError

N_LAYERS, N_HEADS = 6, 12
MOST = 512  # rows in the table of positions
EPS = 1e-12


@dataclass(frozen=True)
class Reading:
    """One sentence, read: its tokens, and every stage of every layer."""

    tokens: tuple[str, ...]  # the first is [CLS], the last [SEP]; ## goes on a word
    spans: tuple[tuple[int, int], ...]  # where each stands in the sentence, from : to
    layers: tuple[MultiHead, ...]  # the stages of attention, (n_heads, n, ...)
    hidden: (
        Tensor  # (n_layers + 1, n, d_model)  what goes into each layer, and comes out
    )

    @property
    def weights(self) -> Tensor:
        """The weights of all heads, (n_layers, n_heads, n, n)."""
        return torch.stack([layer.weights for layer in self.layers])


class Layer:
    """Attention, then an MLP; x is added to what each finds, and the sum normalised."""

    def __init__(self, weights: dict[str, Tensor], name: str) -> None:
        def pair(part: str) -> filled.Pair:
            return weights[f"{name}.{part}.weight"], weights[f"{name}.{part}.bias"]

        q, k, v = (pair(f"attention.self.{n}") for n in ("query", "key", "value"))
        o = pair("attention.output.dense")
        self.attention = filled.attention(q, k, v, o, N_HEADS)
        self.after_attention = filled.layer_norm(
            *pair("attention.output.LayerNorm"), EPS
        )
        self.wide = filled.linear(*pair("intermediate.dense"))
        self.narrow = filled.linear(*pair("output.dense"))
        self.after_mlp = filled.layer_norm(*pair("output.LayerNorm"), EPS)

    def __call__(self, x: Tensor) -> tuple[Tensor, MultiHead]:
        """Give the x of the next layer, (n, d_model), and the stages of attention."""
        stages: MultiHead = self.attention(x, return_stages=True)
        x = self.after_attention(x + stages.out)
        mlp = self.narrow(nn.functional.gelu(self.wide(x)))
        return self.after_mlp(x + mlp), stages


class MiniLM:
    """The model; `load` makes it from its file."""

    def __init__(self, weights: dict[str, Tensor], tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.embedding = weights["embeddings.word_embeddings.weight"]
        self.positions = weights["embeddings.position_embeddings.weight"]
        # Of the two kinds, first and second sentence, only the first is used here.
        self.kind = weights["embeddings.token_type_embeddings.weight"][0]
        self.norm = filled.layer_norm(
            weights["embeddings.LayerNorm.weight"],
            weights["embeddings.LayerNorm.bias"],
            EPS,
        )
        self.layers = [Layer(weights, f"encoder.layer.{i}") for i in range(N_LAYERS)]

    @torch.no_grad()
    def read(self, sentence: str) -> Reading:
        """Read a sentence, and keep what every layer computes.

        Args:
            sentence: English text of at most 512 tokens; case is ignored.

        Returns:
            Its tokens and all stages.

        Raises:
            ShapeError: the text is longer.
        """
        cut = self.tokenizer.encode(sentence)
        n = len(cut.ids)
        if n > MOST:
            raise ShapeError(
                f"the sentence has {n} tokens, and MiniLM knows {MOST} positions."
            )
        x = self.norm(self.embedding[cut.ids] + self.positions[:n] + self.kind)
        hidden, stages = [x], []
        for layer in self.layers:
            x, found = layer(x)
            hidden.append(x)
            stages.append(found)
        tokens, spans = tuple(cut.tokens), tuple(cut.offsets)
        return Reading(tokens, spans, tuple(stages), torch.stack(hidden))

    def embed(self, sentence: str) -> Tensor:
        """Say what a sentence means in one vector of length 1, (d_model,).

        It is the mean over the tokens of the last layer. The dot product of two such
        vectors says how near two sentences are.
        """
        mean: Tensor = self.read(sentence).hidden[-1].mean(dim=0)
        unit: Tensor = mean / mean.norm()
        return unit


def load() -> MiniLM:
    """Load MiniLM-L6.

    Args:
        None.

    Returns:
        The model, in float32, for `read` and `embed`.

    Raises:
        ModelMissing: it is not installed, or its file is not the one the course knows.

    Cost: half a second; 91 MB of weights.
    Source: Wang et al. 2020 (MiniLM); the weights of sentence-transformers.
    Lesson: 06.

    >>> load().read("The cat chased the mouse.").tokens  # doctest: +SKIP
    ('[CLS]', 'the', 'cat', 'chased', 'the', 'mouse', '.', '[SEP]')
    """
    paths = checkpoints.find("minilm")
    tokenizer = Tokenizer.from_file(str(paths["tokenizer"]))
    tokenizer.no_padding()  # the file asks for texts of 128 tokens, filled or cut
    tokenizer.no_truncation()
    return MiniLM(load_file(paths["weights"]), tokenizer)
