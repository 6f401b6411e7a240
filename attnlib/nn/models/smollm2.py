"""SmolLM2-135M-Instruct: `attnlib.nn.language`, with weights that somebody trained.

30 layers of 9 heads, which share 3 heads of keys and values. In the file a weight takes
5 bits, all together 98 MB; as ordinary numbers they would be 540 MB. So one layer at a
time is made from the file, used for all texts at hand, and given up. What you want to
know about a layer you take while it is there: `read` calls `watch` with its stages.

llama.cpp, whose file this is, has put the rows of W_q and W_k into another order than
the published model: pairs of RoPE stand side by side, "interleaved", as here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn

from attnlib import checkpoints
from attnlib.nn.language import LanguageSizes, Layer, LayerStages, RMSNorm
from attnlib.nn.models.gguf import GGUF
from attnlib.shapes import ShapeError

Watch = Callable[[int, LayerStages], None]  # (number of the layer, its stages)

SIZES = LanguageSizes(
    n_tokens=49152,
    n_layers=30,
    d_model=576,
    n_heads=9,
    n_kv_heads=3,
    d_k=64,
    d_mlp=1536,
    n_context=8192,
    base=100_000.0,
)
CHUNK = 8192  # tokens of the vocabulary whose logits are computed at a time
PARTS = {  # their name in `Layer` -> in the file
    "attention_norm.gain": "attn_norm",
    "attention.W_q.weight": "attn_q",
    "attention.W_k.weight": "attn_k",
    "attention.W_v.weight": "attn_v",
    "attention.W_o.weight": "attn_output",
    "mlp_norm.gain": "ffn_norm",
    "mlp.W_gate.weight": "ffn_gate",
    "mlp.W_up.weight": "ffn_up",
    "mlp.W_down.weight": "ffn_down",
}


class SmolLM2:
    """The model; `load` makes it from its file."""

    def __init__(self, file: GGUF) -> None:
        self.file = file
        self.tokenizer = _tokenizer(file)

    def encode(self, text: str) -> Tensor:
        """Cut a text into tokens: whole numbers, (n,)."""
        return torch.tensor(self.tokenizer.encode(text).ids, dtype=torch.long)

    def tokens(self, ids: Tensor) -> list[str]:
        """Say what each token stands for: texts that, joined, are the text."""
        return [self.tokenizer.decode([int(i)]) for i in ids]

    def layer(self, number: int) -> Layer:
        """Make one layer from the file: 3.5 million weights."""
        with torch.random.fork_rng(devices=[]):  # the learner's random numbers stay
            layer = Layer(SIZES)
        layer.requires_grad_(False)
        self._fill(layer, number)
        return layer

    @torch.no_grad()
    def read(
        self,
        ids: Tensor,
        watch: Watch | None = None,
        *,
        without: Collection[tuple[int, int]] = (),
    ) -> Tensor:
        """Read texts of the same length, layer by layer.

        Args:
            ids: tokens, (n,), or (batch, n) for several texts.
            watch: called after each layer with its number and its stages, whose
                weights are (..., n_heads, n, n). Keep of them what you need and no
                more: they are n_heads n^2 numbers a layer.
            without: heads that are taken away, as (layer, head): their rows of W_o
                are zeros, so that they add nothing.

        Returns:
            What the logits are computed from, (..., n, d_model).

        Raises:
            ShapeError: there are more tokens than the 8192 the model was trained on,
                or none; or there is no head of that number.
        """
        n = ids.shape[-1] if ids.ndim else 0
        if not 0 < n <= SIZES.n_context:
            raise ShapeError(
                f"read takes 1 to {SIZES.n_context} tokens a text, and got {n}."
            )
        for gone, head in without:
            if not (0 <= gone < SIZES.n_layers and 0 <= head < SIZES.n_heads):
                raise ShapeError(
                    f"without names head {gone}.{head}, but the layers are 0 to "
                    f"{SIZES.n_layers - 1}, and their heads 0 to {SIZES.n_heads - 1}."
                )
        x = self.file.tensor("token_embd.weight", ids)
        layer = self.layer(0)
        for number in range(SIZES.n_layers):
            if number:
                self._fill(layer, number)
            W_o = layer.attention.W_o.weight  # turned over: its columns are rows here
            for head in (h for gone, h in without if gone == number):
                W_o[:, SIZES.d_k * head : SIZES.d_k * (head + 1)] = 0
            if watch is None:
                x = layer(x)
            else:
                stages = layer(x, return_stages=True)
                watch(number, stages)
                x = stages.result
        norm = RMSNorm(SIZES.d_model)
        norm.gain = nn.Parameter(self.file.tensor("output_norm.weight"))
        out: Tensor = norm(x)
        return out

    @torch.no_grad()
    def logits(self, hidden: Tensor) -> Tensor:
        """Say how likely each token is to come next, as logits.

        Args:
            hidden: what `read` returned, or some places of it, (..., d_model).

        Returns:
            Logits, (..., 49152): 200 kB a place.
        """
        chunks = [
            hidden @ self.file.tensor("token_embd.weight", slice(a, a + CHUNK)).T
            for a in range(0, SIZES.n_tokens, CHUNK)
        ]
        return torch.cat(chunks, dim=-1)

    def likeliest(self, text: str, n: int = 3) -> list[tuple[str, float]]:
        """Say which tokens could follow a text, and how probable each is."""
        chances = self.logits(self.read(self.encode(text))[-1]).softmax(-1).topk(n)
        tokens = self.tokens(chances.indices)
        return list(zip(tokens, chances.values.tolist(), strict=True))

    def _fill(self, layer: Layer, number: int) -> None:
        stored = {
            ours: self.file.tensor(f"blk.{number}.{theirs}.weight")
            for ours, theirs in PARTS.items()
        }
        layer.load_state_dict(stored, assign=True)


def load() -> SmolLM2:
    """Load SmolLM2: its vocabulary; the weights come layer by layer.

    Args:
        None.

    Returns:
        The model, for `read` and `logits`.

    Raises:
        ModelMissing: it is not installed, or its file is not the one the course knows.

    Cost: half a second; each `read` makes all layers anew, which takes a second, and
        needs 20 MB for the layer.
    Source: Allal et al. 2025 (SmolLM2); Touvron et al. 2023 (LLaMA) for the parts.
    Lesson: 06.

    >>> model = load()  # doctest: +SKIP
    >>> model.likeliest("The capital of France is", 1)  # doctest: +SKIP
    [(' Paris', 0.7724...)]
    """
    return SmolLM2(GGUF(checkpoints.find("smollm2")["weights"]))


def _tokenizer(file: GGUF) -> Tokenizer:
    """Byte-pair encoding, from the vocabulary and the merges that the file holds."""
    tokens, merges = (
        file.facts[f"tokenizer.ggml.{name}"] for name in ("tokens", "merges")
    )
    assert isinstance(tokens, list)
    assert isinstance(merges, list)
    vocabulary = {token: i for i, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
