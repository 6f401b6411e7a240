"""Whisper tiny.en: a sound goes in, text comes out, and cross-attention joins them.

x = encoder(log_mel(sound))                       1500 frames, 20 ms each
y = embedding[tokens] + positions
for each of 4 layers:
    y = y + self_attention(norm(y))               causal
    y = y + cross_attention(norm(y), memory=x)    which frames does a token ask?
    y = y + mlp(norm(y))
the next token is the one whose embedding fits norm(y) best
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from attnlib import checkpoints
from attnlib.nn.cache import KVCache
from attnlib.nn.models import ctranslate2, filled
from attnlib.nn.models.sound import RATE, listen, log_mel

N_LAYERS = 4
FRAMES = 50  # frames a second, after the encoder
EPS = 1e-5
START, END = ("<|startoftranscript|>", "<|notimestamps|>"), "<|endoftext|>"


@dataclass(frozen=True)
class Transcript:
    """What was heard, and where each token looked while it was written."""

    text: str
    tokens: tuple[str, ...]  # the last one ends the text
    weights: Tensor  # (n_layers, n_heads, n_tokens, 1500)  row i wrote token i
    n_heard: int  # how many of the 1500 frames hold sound; silence was added after


class Layer:
    """Attention to itself, and an MLP; each reads a normalised x and adds to x."""

    def __init__(self, weights: Weights, name: str, n_heads: int) -> None:
        q, k, v = weights.split(f"{name}/self_attention/linear_0", 3)
        o = weights(f"{name}/self_attention/linear_1")
        self.before_own = weights.norm(f"{name}/self_attention")
        self.own = filled.attention(q, k, v, o, n_heads)
        self.before_wide = weights.norm(f"{name}/ffn")
        self.wide = filled.linear(*weights(f"{name}/ffn/linear_0"))
        self.narrow = filled.linear(*weights(f"{name}/ffn/linear_1"))

    def mlp(self, x: Tensor) -> Tensor:
        """Treat every token of x, (..., d_model), on its own."""
        y: Tensor = self.narrow(nn.functional.gelu(self.wide(self.before_wide(x))))
        return y


class DecoderLayer(Layer):
    """A layer with one more attention in the middle: tokens look at frames."""

    def __init__(self, weights: Weights, name: str, n_heads: int) -> None:
        super().__init__(weights, name, n_heads)
        q = weights(f"{name}/attention/linear_0")
        k, v = weights.split(f"{name}/attention/linear_1", 2)
        o = weights(f"{name}/attention/linear_2")
        self.before_cross = weights.norm(f"{name}/attention")
        self.cross = filled.attention(q, k, v, o, n_heads)


class Whisper:
    """The model; `load` makes it from its file."""

    def __init__(
        self, weights: Weights, tokenizer: Tokenizer, never: list[int]
    ) -> None:
        self.tokenizer, self.never = tokenizer, never
        n_heads = int(weights.arrays["encoder/num_heads"])
        self.conv1 = weights.convolution("encoder/conv1", stride=1)
        self.conv2 = weights.convolution("encoder/conv2", stride=2)
        self.frame_positions = weights.array("encoder/position_encodings/encodings")
        self.encoder = [
            Layer(weights, f"encoder/layer_{i}", n_heads) for i in range(N_LAYERS)
        ]
        self.encoder_norm = weights.norm("encoder")
        self.embedding = weights.array("decoder/embeddings/weight")
        self.token_positions = weights.array("decoder/position_encodings/encodings")
        self.decoder = [
            DecoderLayer(weights, f"decoder/layer_{i}", n_heads)
            for i in range(N_LAYERS)
        ]
        self.decoder_norm = weights.norm("decoder")

    def numbers(self, *tokens: str) -> list[int]:
        """Look up the numbers of tokens."""
        vocabulary: dict[str, int] = self.tokenizer.get_vocab()
        return [vocabulary[token] for token in tokens]

    @torch.no_grad()
    def encode(self, mel: Tensor) -> Tensor:
        """Turn a picture of a sound, (80, 3000), into frames, (1500, d_model)."""
        gelu = nn.functional.gelu
        x = gelu(self.conv2(gelu(self.conv1(mel[None]))))[0].T + self.frame_positions
        for layer in self.encoder:
            seen = layer.before_own(x)
            # A third of the queries at a time: 1500 x 1500 weights a head are many.
            x = x + torch.cat([layer.own(part, seen) for part in seen.split(500)])
            x = x + layer.mlp(x)
        y: Tensor = self.encoder_norm(x)
        return y

    @torch.no_grad()
    def decode(
        self,
        ids: Tensor,
        frames: Tensor,
        caches: list[tuple[KVCache, KVCache]] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Read tokens and look at frames.

        Args:
            ids: tokens, (n,); with caches, those after the tokens in them.
            frames: what `encode` gave, (1500, d_model).
            caches: for each layer one for the tokens, one for the frames.

        Returns:
            Logits of the next token after each, (n, n_vocabulary), and the weights of
            the cross-attention, (n_layers, n_heads, n, 1500).
        """
        start = caches[0][0].length if caches else 0
        y = self.embedding[ids] + self.token_positions[start : start + len(ids)]
        looks = []
        for number, layer in enumerate(self.decoder):
            own, cross = caches[number] if caches else (None, None)
            y = y + layer.own(layer.before_own(y), causal=True, cache=own)
            asked = layer.before_cross(y)
            found = layer.cross(asked, frames, cache=cross, return_stages=True)
            looks.append(found.weights)
            y = y + found.out
            y = y + layer.mlp(y)
        return self.decoder_norm(y) @ self.embedding.T, torch.stack(looks)

    @torch.no_grad()
    def transcribe(self, sound: Tensor, n_most: int = 100) -> Transcript:
        """Write down what is said, always taking the likeliest token.

        Args:
            sound: English, (n_samples,), 16 000 a second, at most 30 seconds.
            n_most: how many tokens to write at most.

        Returns:
            The text, its tokens, and where each looked.

        Raises:
            ShapeError: the sound is longer than 30 seconds.
        """
        frames = self.encode(log_mel(sound))
        start, stop = self.numbers(*START), self.numbers(END)[0]
        ids = torch.tensor(start)
        caches = [(KVCache(), KVCache()) for _ in self.decoder]
        written: list[int] = []
        looks: list[Tensor] = []
        while len(written) < n_most and stop not in written:
            logits, weights = self.decode(ids, frames, caches)
            logits[-1, self.never] = -torch.inf  # such as notes in brackets
            written.append(int(logits[-1].argmax()))
            looks.append(weights[:, :, -1:])
            ids = torch.tensor(written[-1:])
        return Transcript(
            text=self.tokenizer.decode(written).strip(),
            tokens=tuple(
                self.tokenizer.decode([i], skip_special_tokens=False) for i in written
            ),
            weights=torch.cat(looks, dim=2),
            n_heard=min(round(len(sound) / RATE * FRAMES), frames.shape[0]),
        )


class Weights:
    """The arrays of the file, handed out as tensors and as parts."""

    def __init__(self, path: Path) -> None:
        self.arrays = ctranslate2.read(path)

    def array(self, name: str) -> Tensor:
        return torch.from_numpy(self.arrays[name].astype("float32"))

    def __call__(self, name: str) -> filled.Pair:
        return self.array(f"{name}/weight"), self.array(f"{name}/bias")

    def split(self, name: str, n: int) -> list[filled.Pair]:
        """Matrices that the file keeps as one, one above the other."""
        weight, bias = self(name)
        return list(zip(weight.chunk(n), bias.chunk(n), strict=True))

    def norm(self, name: str) -> nn.LayerNorm:
        gain, bias = (self.array(f"{name}/layer_norm/{n}") for n in ("gamma", "beta"))
        return filled.layer_norm(gain, bias, EPS)

    def convolution(self, name: str, stride: int) -> nn.Conv1d:
        weight, bias = self(name)
        n_out, n_in, width = weight.shape
        part = nn.Conv1d(n_in, n_out, width, stride, padding=1, device="meta")
        part.weight, part.bias = filled.fixed(weight), filled.fixed(bias)
        return part


def load() -> Whisper:
    """Load Whisper tiny.en.

    Args:
        None.

    Returns:
        The model, in float32, for `transcribe`.

    Raises:
        ModelMissing: it is not installed, or its file is not the one the course knows.

    Cost: half a second; 150 MB of weights in float32.
    Source: Radford et al. 2022 (Whisper).
    Lesson: 07.

    >>> load().transcribe(spoken_cat()).text  # doctest: +SKIP
    'The black cat chased the little mouse across the kitchen.'
    """
    paths = checkpoints.find("whisper")
    never = json.loads(paths["config"].read_text(encoding="utf-8"))["suppress_ids"]
    tokenizer = Tokenizer.from_file(str(paths["tokenizer"]))
    return Whisper(Weights(paths["weights"]), tokenizer, never)


def spoken_cat() -> Tensor:
    """Load the sentence that the course brings: it is in attnlib/data/cat.wav.

    Args:
        None.

    Returns:
        The samples, (n_samples,): "The black cat chased the little mouse across the
        kitchen.", 3.7 seconds, spoken by a computer.

    Raises:
        Nothing.

    Cost: 160 kB are read.
    Source: the sentence of the course, spoken by espeak-ng.
    Lesson: 07.

    >>> spoken_cat().shape
    torch.Size([59451])
    """
    return listen(Path(str(files("attnlib") / "data" / "cat.wav")))


def word_times(
    heard: Transcript, heads: list[tuple[int, int]]
) -> list[tuple[str, float]]:
    """Say when each word was spoken, by where its tokens looked.

    time = the frame of the largest mean weight over the heads, for a word's last token

    Args:
        heard: a transcript.
        heads: (layer, head) pairs whose weights are averaged.

    Returns:
        Words without their punctuation, with seconds from the start of the sound.

    Raises:
        ValueError: no head was named.

    Cost: one pass over the weights of the heads.
    Source: the averaged alignment heads of Whisper's own word times.
    Lesson: 07.

    >>> weights = torch.tensor([[[[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.3, 0.3, 0.4]]]])
    >>> heard = Transcript("a cat", ("a", " cat", "<|endoftext|>"), weights, n_heard=2)
    >>> word_times(heard, [(0, 0)])
    [('a', 0.0), ('cat', 0.02)]
    """
    if not heads:
        raise ValueError("word_times needs at least one (layer, head) pair.")
    mean = torch.stack([heard.weights[place] for place in heads]).mean(dim=0)
    best = mean[:, : heard.n_heard].argmax(dim=-1).tolist()
    words: list[tuple[str, float]] = []
    for token, frame in zip(heard.tokens[:-1], best, strict=False):
        seconds = frame / FRAMES
        if token.startswith(" ") or not words:
            words.append((token.strip(), seconds))
        elif any(character.isalnum() for character in token):
            words[-1] = (words[-1][0] + token, seconds)
    return words
