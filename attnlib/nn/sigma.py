"""sigmaReparam: a Linear whose matrix has the norm that one learned number says.

The scores are products of W_q, W_k and the tokens. With the norms of the two held,
the scores are held, and `attnlib.numerics.entropy_bound` says what that is worth.
"""

from __future__ import annotations

from typing import Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from attnlib.nn.shapes import wide

Module = TypeVar("Module", bound=nn.Module)


class SigmaLinear(nn.Linear):
    """A Linear whose matrix has a spectral norm of gamma, a number that is learned.

    y = x (gamma W / ||W||_2)^T + b, where ||W||_2 is the largest singular value

    The norm is found by power iteration: one step in each forward pass of training,
    from where the last one came to. It starts exact, and weights change little in a
    step. After W was changed in another way, `find_norm` makes it exact again.

    Args:
        n_in, n_out: the numbers of a token going in and coming out.
        bias: whether a vector is added.
        gamma: the first value of the norm; None takes the one that W has.
        device, dtype: of the parameters.

    Source: Zhai et al. 2023 (sigmaReparam), section 3; Miyato et al. 2018 for the power
    iteration.

    >>> part = SigmaLinear(3, 4, gamma=2.0)
    >>> round(torch.linalg.matrix_norm(part.held(), 2).item(), 4)
    2.0
    """

    u: Tensor  # (n_out,)  the left singular vector, of length 1

    def __init__(
        self,
        n_in: int,
        n_out: int,
        bias: bool = True,
        *,
        gamma: float | None = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(n_in, n_out, bias=bias, device=device, dtype=dtype)
        self.gamma = nn.Parameter(self.weight.new_ones(()))
        self.register_buffer("u", self.weight.new_zeros(n_out))
        self._start(gamma)

    @classmethod
    def from_linear(cls, part: nn.Linear, gamma: float | None = 1.0) -> Self:
        """Copy a Linear; with gamma=None the result computes what it computes."""
        new = cls(
            part.in_features,
            part.out_features,
            bias=part.bias is not None,
            device=part.weight.device,
            dtype=part.weight.dtype,
        )
        with torch.no_grad():
            new.weight.copy_(part.weight)
            if part.bias is not None:
                new.bias.copy_(part.bias)
        new._start(gamma)
        return new.train(part.training)

    @torch.no_grad()
    def find_norm(self) -> None:
        """Compute the singular vector exactly, after W was set anew."""
        W = wide(self.weight)
        self.u.copy_(torch.linalg.svd(W, full_matrices=False).U[:, 0])

    def held(self) -> Tensor:
        """Return gamma W / ||W||_2, (n_out, n_in): what x is multiplied by."""
        # Autocast would find the norm in float16.
        with torch.autocast(self.weight.device.type, enabled=False):
            W = wide(self.weight)
            with torch.no_grad():
                u = self.u.to(W, copy=True)  # the graph keeps it, the buffer changes
                v = normalize(W.T @ u, dim=0)
                if self.training:
                    u = normalize(W @ v, dim=0)
                    self.u.copy_(u)
            norm = u @ (W @ v)
            norm = norm.masked_fill(norm == 0, 1.0)  # zeros stay zeros
            return (self.gamma.to(W) * (W / norm)).to(self.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.held(), self.bias)

    @torch.no_grad()
    def _start(self, gamma: float | None) -> None:
        self.find_norm()
        if gamma is None:
            gamma = torch.linalg.matrix_norm(wide(self.weight), 2).item()
        self.gamma.fill_(gamma)


def hold_norms(module: Module, gamma: float | None = 1.0) -> Module:
    """Put a `SigmaLinear` in the place of every nn.Linear inside a module.

    W becomes gamma W / ||W||_2

    Do it before the optimiser is made: the parameters are new ones.

    Args:
        module: changed in place. No shape.
        gamma: the first spectral norm of each matrix; None lets each keep its own, and
            the module computes what it computed.

    Returns:
        The same module.

    Raises:
        TypeError: the module is itself a Linear; `SigmaLinear.from_linear` copies it.

    Cost: a singular value decomposition a matrix.
    Source: Zhai et al. 2023, section 3.
    Lesson: 09.

    >>> net = hold_norms(nn.Sequential(nn.Linear(3, 4), nn.Tanh()))
    >>> type(net[0]).__name__, net[0].gamma.item()
    ('SigmaLinear', 1.0)
    """
    if isinstance(module, nn.Linear):
        raise TypeError(
            "hold_norms changes the parts of a module; for a Linear by itself there is "
            "SigmaLinear.from_linear."
        )
    for name, part in module.named_children():
        if type(part) is nn.Linear:
            setattr(module, name, SigmaLinear.from_linear(part, gamma))
        elif not isinstance(part, SigmaLinear):
            hold_norms(part, gamma)
    return module
