"""A small model for the help desk, around seven ways to attend.

    tokens -> 2 layers of attention and MLP -> an intent for each token

Of the two heads, RoPE turns the first: it can tell near from far. The second knows no
distance, so that it finds what it looks for wherever that stands.

A single request has the mean of its tokens' logits. In a call each token is asked for
the intent of its request, and the last one for the room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    avg_pool1d,
    cross_entropy,
    gelu,
    layer_norm,
    scaled_dot_product_attention,
)

from attnlib import cost, masks
from attnlib.nn import attention, ways
from attnlib.nn.calls import N_ROOMS, Calls
from attnlib.nn.heads import merge_heads, split_heads
from attnlib.nn.intents import HelpDesk, Requests
from attnlib.nn.rotary import Rotary
from attnlib.nn.windows import window_attention
from attnlib.shapes import size

NAMES = ("bag", "full", "window", "global", "low rank", "pooled", "linear")
NEAR, N_SHORT = 8, 16  # keys on each side of a window; mixtures of low rank
N_GLOBAL = 8  # tokens at the start, that hold the room
NEAR_OF_BAG = 3  # a bag in a call is a mean over so many on each side, and its own
D_MODEL, N_HEADS, D_MLP, N_LAYERS = 32, 2, 64, 2
ROPE_BASE = 100.0  # so that the slowest pair turns once in 350 tokens

Attend = Callable[..., Tensor]  # (q, k, v, real) -> out; real may be None


def full(q: Tensor, k: Tensor, v: Tensor, real: Tensor | None = None) -> Tensor:
    """Look at all keys, but not at fillers.

    softmax(q k^T / sqrt(d_k)) v

    Args:
        q, k, v: (..., n, d).
        real: truth values, (..., n), False for fillers.

    Returns:
        The result, (..., n, d).

    Raises:
        RuntimeError: shapes that do not fit.

    Cost: all pairs.
    Source: Vaswani et al. 2017, equation 1.
    Lesson: 15.

    >>> x = torch.eye(3)[None]
    >>> full(x, x, x, torch.tensor([[True, False, False]]))[0, 2].tolist()
    [1.0, 0.0, 0.0]
    """
    look = None if real is None else real[..., None, :]
    return scaled_dot_product_attention(q, k, v, look)


@dataclass(frozen=True)
class Window:
    """Look at near keys, and at a few that all may see; see `window_attention`.

    >>> x = torch.zeros(1, 1, 4, 2)
    >>> Window(1)(x, x, torch.arange(4.0).reshape(1, 1, 4, 1)).flatten().tolist()
    [0.5, 1.0, 2.0, 2.5]
    """

    side: int  # keys to the left, and as many to the right
    n_global: int = 0

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None = None
    ) -> Tensor:
        """The result, (..., n, d). With fillers, in short texts, it is a mask."""
        side, n_global, n = self.side, self.n_global, k.shape[-2]
        if real is None:
            return window_attention(q, k, v, left=side, right=side, n_global=n_global)
        near = masks.window(n, left=side, right=side)
        look = near | masks.global_tokens(n, n_global=n_global)
        mask = torch.from_numpy(look) & real[..., None, :]
        return attention.scaled_dot_product(q, k, v, mask).out


def way(
    name: str,
    n: int,
    *,
    side: int = NEAR,
    n_global: int = N_GLOBAL,
    generator: torch.Generator | None = None,
) -> Attend | None:
    """Make one of the seven ways.

    Args:
        name: one of `NAMES`; "bag" has no attention.
        n: how many tokens a text has, at most: low rank has a column for each.
        side: how many keys a window has on each side.
        n_global: how many tokens at the start all may see, for "global".
        generator: where low rank's matrix is drawn from.

    Returns:
        A function of q, k, v, (..., n, d), and real; None for "bag".

    Raises:
        ValueError: there is no such way.

    Cost: none to speak of.
    Source: lesson 13.
    Lesson: 15.

    >>> way("global", 128)
    Window(side=8, n_global=8)
    """
    if name not in NAMES:
        raise ValueError(f"{name!r} is none of {', '.join(map(repr, NAMES))}.")
    made: dict[str, Callable[[], Attend | None]] = {
        "bag": lambda: None,
        "full": lambda: full,
        "window": lambda: Window(side),
        "global": lambda: Window(side, n_global=min(n, n_global)),
        "low rank": lambda: ways.LowRank(N_SHORT, n, generator=generator),
        "pooled": lambda: ways.pooled,
        "linear": lambda: ways.linear,
    }
    return made[name]()


class DeskModel(nn.Module):
    """Layers around a way to attend, and what the desk wants to know.

    x = E[ids]; in each layer x = x + merge(attend(heads of norm(x))) W_o, and
    x = x + gelu(norm(x) W_1) W_2; logits = norm(x) U for intents, norm(x) R for rooms

    q, k and v have biases, as a head that looks near needs one that no word changes.
    Without a way to attend there are no layers: a bag of words. In a call it is the
    mean of 7 neighbours, for all else would mix requests.

    Args:
        desk: tells how many tokens and intents there are.
        attend: from `way`; None for a bag. A module is trained as well.
        generator: where the tables are drawn from; torch's own if left out.

    >>> from attnlib.nn.intents import help_desk
    >>> model = DeskModel(help_desk("en"), full)
    >>> model(torch.tensor([[2, 7, 9, 3]])).shape
    torch.Size([1, 4, 32])
    """

    def __init__(
        self,
        desk: HelpDesk,
        attend: Attend | None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()

        def drawn(*shape: int) -> nn.Parameter:
            spread = shape[-2] ** -0.5
            return nn.Parameter(torch.randn(*shape, generator=generator) * spread)

        n_layers = 0 if attend is None else N_LAYERS
        self.attend = attend
        self.rotate = Rotary(base=ROPE_BASE)
        self.embedding = nn.Parameter(
            torch.randn(len(desk.vocabulary), D_MODEL, generator=generator)
        )
        self.inward = drawn(n_layers, 3, D_MODEL, D_MODEL)
        self.biases = nn.Parameter(torch.zeros(n_layers, 3, D_MODEL))
        self.W_o = drawn(n_layers, D_MODEL, D_MODEL)
        self.W_1 = drawn(n_layers, D_MODEL, D_MLP)
        self.W_2 = drawn(n_layers, D_MLP, D_MODEL)
        self.U = drawn(D_MODEL, len(desk.intents))
        self.R = drawn(D_MODEL, N_ROOMS)

    def forward(self, ids: Tensor, real: Tensor | None = None) -> Tensor:
        """Give each token its last features, (batch, n, d_model), normed."""
        x = self.embedding[ids]
        if self.attend is None:
            if real is None:
                side = NEAR_OF_BAG
                x = avg_pool1d(x.mT, 2 * side + 1, 1, side, count_include_pad=False).mT
            return layer_norm(x, (D_MODEL,))
        places = torch.arange(ids.shape[-1])
        by_head = None if real is None else real[:, None]
        for inward, biases, W_o, W_1, W_2 in zip(
            self.inward, self.biases, self.W_o, self.W_1, self.W_2, strict=True
        ):
            normed = layer_norm(x, (D_MODEL,))
            q, k, v = (
                split_heads(normed @ W + b, N_HEADS, D_MODEL // N_HEADS)
                for W, b in zip(inward, biases, strict=True)
            )
            q, k = (
                torch.cat([self.rotate(y[:, :1], places), y[:, 1:]], 1) for y in (q, k)
            )
            x = x + merge_heads(self.attend(q, k, v, by_head)) @ W_o
            x = x + gelu(layer_norm(x, (D_MODEL,)) @ W_1) @ W_2
        return layer_norm(x, (D_MODEL,))

    def request(self, ids: Tensor) -> Tensor:
        """A number for each intent, (batch, n_intents), of single requests."""
        real = ids != 0
        logits = self(ids, real) @ self.U
        total = (logits * real[..., None]).sum(1)
        mean: Tensor = total / real.sum(1, keepdim=True)
        return mean

    def call(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of intents, (batch, n, n_intents), and of rooms, (batch, 8)."""
        x = self(ids)
        return x @ self.U, x[:, -1] @ self.R

    def loss(self, calls: Calls) -> Tensor:
        """Of all tokens' intents, and of the room."""
        intents, rooms = self.call(calls.ids)
        return cross_entropy(intents.mT, calls.answers) + cross_entropy(
            rooms, calls.rooms
        )

    @torch.no_grad()
    def right_in_requests(self, requests: Requests) -> float:
        """The share of requests whose intent is found."""
        found = self.request(requests.ids).argmax(-1)
        return float((found == requests.answers).double().mean())

    @torch.no_grad()
    def right_in_calls(self, calls: Calls) -> tuple[float, float]:
        """The share of tokens whose intent is found, and of rooms."""
        intents, rooms = self.call(calls.ids)
        asked = calls.answers >= 0
        right = (intents.argmax(-1) == calls.answers)[asked]
        return float(right.double().mean()), float(
            (rooms.argmax(-1) == calls.rooms).double().mean()
        )


def flops(name: str, n: int, *, n_intents: int = 27) -> int:
    """Count the FLOPs of one call through the model, forward.

    layers (8 n d^2 + 4 d pairs + MLP) + 2 n d n_intents + 2 d n_rooms

    Pairs are those that a way leaves. Low rank mixes n keys and n values first, which
    is as much again; linear adds up and reads a state of d_k x d_k in each head.

    Args:
        name: one of `NAMES`.
        n: how many tokens.
        n_intents: how many intents.

    Returns:
        The count; there is no array, hence no shape.

    Raises:
        ValueError: there is no such way.

    Cost: none worth counting.
    Source: `attnlib.cost`.
    Lesson: 15.

    >>> [round(flops(name, 1024) / 1e6) for name in ("full", "window", "linear")]
    [304, 40, 40]
    """
    n = size("n", n, least=1)
    near = cost.allowed_pairs(n, left=NEAR, right=NEAR)
    pairs = {
        "bag": 0,
        "full": n * n,
        "window": near,
        "global": near + 2 * sum(max(0, n - NEAR - 1 - i) for i in range(N_GLOBAL)),
        "low rank": n * N_SHORT * 2,
        "pooled": n * -(-n // 4),
        "linear": n * (D_MODEL // N_HEADS),
    }
    if name not in pairs:
        raise ValueError(f"{name!r} is none of {', '.join(map(repr, NAMES))}.")
    last = 2 * n * D_MODEL * n_intents + 2 * D_MODEL * N_ROOMS
    if name == "bag":
        return last
    tables = cost.attention_flops(n, D_MODEL, N_HEADS).projections
    layer = tables + 4 * D_MODEL * pairs[name] + cost.mlp_flops(n, D_MODEL, D_MLP)
    return N_LAYERS * layer + last
