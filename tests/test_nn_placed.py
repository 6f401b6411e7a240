"""Models that differ in positions alone: what each scheme lets a model see."""

from __future__ import annotations

import pytest
import torch
from torch_tools import in_float64  # noqa: F401 - a fixture for every test

from attnlib.nn import placed
from attnlib.nn.placed import SCHEMES, Block, PlacedModel, grown, loss_with


def model(scheme, seed=0, **sizes):
    generator = torch.Generator().manual_seed(seed)
    sizes = {"d_model": 12, "n_heads": 3, "n_rows": 9, **sizes}
    made = PlacedModel(7, scheme, generator=generator, **sizes)
    if scheme == "relative":  # it starts at zero, where it does nothing
        torch.nn.init.normal_(made.by_distance, generator=generator)
    return made


IDS = torch.tensor([[3, 1, 4, 1, 5, 2], [0, 6, 2, 2, 1, 3]])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_scheme_sees_the_future(scheme):
    made = model(scheme)
    other = IDS.clone()
    other[:, -1] = 0
    torch.testing.assert_close(made(IDS)[:, :-1], made(other)[:, :-1])
    assert (made(IDS)[:, -1] - made(other)[:, -1]).abs().max() > 1e-3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_schemes_but_none_tell_the_order_of_earlier_tokens(scheme):
    """One layer: without positions the last token sees a bag of those before it."""
    made = model(scheme, n_layers=1)
    other = IDS[:, [1, 0, 2, 3, 4, 5]]
    apart = (made(IDS)[:, -1] - made(other)[:, -1]).abs().max()
    assert (apart < 1e-12) == (scheme == "none")


def test_two_layers_tell_an_order_without_any_positions():
    made = model("none", n_layers=2)
    other = IDS[:, [1, 0, 2, 3, 4, 5]]
    assert (made(IDS)[:, -1] - made(other)[:, -1]).abs().max() > 1e-4


def test_the_same_seed_gives_the_same_model():
    for scheme in SCHEMES:
        assert torch.equal(model(scheme)(IDS), model(scheme)(IDS))
        assert not torch.equal(model(scheme)(IDS), model(scheme, seed=1)(IDS))


def test_torch_s_own_random_numbers_do_not_matter():
    made = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        made.append(model("learned").state_dict())
    assert all(torch.equal(made[0][k], made[1][k]) for k in made[0])


def test_a_table_without_a_row_for_the_position_fails():
    with pytest.raises(RuntimeError, match="size"):
        model("learned", n_rows=4)(IDS)


def test_a_scheme_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"scheme='roper' is none of 'none'"):
        model("roper")


def test_all_blocks_of_a_model_turn_alike():
    first, second = (block.attention.rotate for block in model("rope").blocks)
    assert first is second is not None
    assert all(b.attention.rotate is None for b in model("alibi").blocks)


def test_a_block_adds_to_its_tokens():
    block = Block(6, 2)
    for layer in (block.attention.W_o, block.narrow):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    x = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(block(x), x)


def test_a_grown_model_prints_the_same_on_other_machines(monkeypatch):
    """First weights off in the tenth digit change no digit that the lesson prints."""
    plain = [loss_with(grown("rope"), n) for n in (16, 64)]

    def nudged(*args, **keywords):
        made = PlacedModel(*args, **keywords).double()
        generator = torch.Generator().manual_seed(9)
        with torch.no_grad():
            for p in made.parameters():
                p.mul_(1 + 1e-9 * torch.randn(p.shape, generator=generator))
        return made

    monkeypatch.setattr(placed, "PlacedModel", nudged)
    other = [loss_with(grown("rope"), n) for n in (16, 64)]
    assert plain != other
    assert max(abs(a - b) for a, b in zip(plain, other, strict=True)) < 1e-6
    assert [f"{a:.2f}" for a in plain] == [f"{b:.2f}" for b in other]


def test_growing_leaves_the_number_of_threads_alone():
    before = torch.get_num_threads()
    grown("none", steps=1)
    assert torch.get_num_threads() == before


def test_the_loss_is_on_the_same_characters_whatever_the_context():
    """A model that sees nothing but the present token cannot tell the difference."""

    class Nothing(torch.nn.Module):
        def forward(self, ids):
            return torch.nn.functional.one_hot(ids, 63).double()

    assert loss_with(Nothing(), 16) == loss_with(Nothing(), 64)
