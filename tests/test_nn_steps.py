"""One step: its order, the articles' order, dtypes, overflow and underflow."""

import pytest
import torch
from torch import nn
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib.nn import MultiHeadAttention
from attnlib.nn.steps import dtypes, scaled, step_without_unscale, training_step

HALVES = [torch.float16, torch.bfloat16]


def made(dtype=torch.float32, loud=1.0):
    """A layer, its loss, and SGD with a learning rate of 1."""
    generator = torch.Generator().manual_seed(0)
    layer = MultiHeadAttention(16, 4, generator=generator, dtype=dtype)
    x, y = normal(2, 7, 16).to(dtype), normal(2, 7, 16, seed=1).to(dtype)

    def loss():
        return loud * (layer(x, causal=True) - y).square().mean()

    return layer, loss, torch.optim.SGD(layer.parameters(), lr=1.0)


def scaler(scale=2.0**12, **more):
    return torch.amp.GradScaler("cpu", init_scale=scale, **more)


def weights(layer):
    return torch.cat([p.detach().flatten() for p in layer.parameters()])


def norm_by_hand(layer, loss):
    loss().backward()
    found = sum(p.grad.square().sum() for p in layer.parameters()).sqrt()
    layer.zero_grad()
    return found


@pytest.mark.parametrize("clip", [0.1, 1e9])
@pytest.mark.parametrize("with_scaler", [False, True])
def test_in_float64_it_is_the_plain_step(clip, with_scaler):
    layer, loss, sgd = made(torch.float64)
    before, norm = weights(layer), norm_by_hand(layer, loss)
    loss().backward()
    gradient = torch.cat([p.grad.flatten() for p in layer.parameters()])
    done = training_step(
        layer, loss, sgd, clip=clip, scaler=scaler() if with_scaler else None
    )
    factor = min(1, clip / (norm.item() + 1e-6))  # as clip_grad_norm_ has it
    close(weights(layer), before - factor * gradient, 1e-12)
    assert done.grad_norm == pytest.approx(norm.item(), rel=1e-12)
    assert done.update == pytest.approx((factor * norm).item(), rel=1e-12)
    assert done.scale == (4096 if with_scaler else 1)
    assert not done.skipped


def test_old_gradients_are_gone_before_the_step():
    layer, loss, sgd = made(torch.float64)
    norm = norm_by_hand(layer, loss).item()
    for _ in range(3):
        loss().backward()
    assert training_step(layer, loss, sgd).grad_norm == pytest.approx(norm)


def test_the_articles_order_clips_what_is_still_scaled():
    """The articles' settings: a scale of 65536, and gradients clipped to 1."""
    layer, loss, sgd = made(torch.float64, loud=4.0)
    right = training_step(layer, loss, sgd, scaler=scaler(65536.0))
    layer, loss, sgd = made(torch.float64, loud=4.0)
    wrong = step_without_unscale(layer, loss, sgd, scaler=scaler(65536.0))
    assert right.grad_norm == pytest.approx(4.10, abs=0.01)
    assert wrong.grad_norm == pytest.approx(65536 * right.grad_norm)
    assert right.update == pytest.approx(1.0, abs=1e-5)
    assert wrong.update == pytest.approx(1 / 65536)
    assert right.loss == wrong.loss


def test_the_articles_order_is_right_without_a_scaler():
    layer, loss, sgd = made(torch.float64)
    other, its_loss, its_sgd = made(torch.float64)
    assert training_step(layer, loss, sgd) == step_without_unscale(
        other, its_loss, its_sgd
    )
    assert torch.equal(weights(layer), weights(other))


def test_adam_hides_the_articles_order():
    updates = []
    for step in (training_step, step_without_unscale):
        layer, loss, _ = made(torch.float64, loud=4.0)
        adam = torch.optim.Adam(layer.parameters(), lr=1e-3)
        updates.append(step(layer, loss, adam, scaler=scaler(65536.0)).update)
    # K's bias has no gradient but noise of rounding: there Adam's epsilon decides.
    assert 0.9 < updates[1] / updates[0] < 1


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("step", [training_step, step_without_unscale])
def test_mixed_precision_is_near_float32(dtype, step):
    layer, loss, sgd = made()
    plain = training_step(layer, loss, sgd)
    layer, loss, sgd = made()
    mixed = step(layer, loss, sgd, dtype=dtype, scaler=scaler())
    assert mixed.loss == pytest.approx(plain.loss, rel=0.02)
    if step is training_step:
        assert mixed.grad_norm == pytest.approx(plain.grad_norm, rel=0.02)
        assert mixed.update == pytest.approx(plain.update, rel=0.02)


@pytest.mark.parametrize("dtype", HALVES)
def test_parameters_and_gradients_stay_float32_under_autocast(dtype):
    layer, loss, _ = made()
    found, name = dtypes(layer, loss, dtype), str(dtype).removeprefix("torch.")
    assert set(found.parameters.values()) == {"float32"} == {*found.gradients.values()}
    assert found.activations == dict.fromkeys(("W_q", "W_k", "W_v", "W_o"), name)
    assert found.loss == "float32"  # it was compared with a target in float32
    assert {p.dtype for p in layer.parameters()} == {torch.float32}


def test_without_autocast_everything_is_as_the_parameters():
    layer, loss, _ = made(torch.float64)
    found = dtypes(layer, loss, None)
    for part in (found.parameters, found.activations, found.gradients):
        assert set(part.values()) == {"float64"}
    assert not any(part._forward_hooks for part in layer.modules())


def test_the_weights_are_float16_on_a_cpu_and_their_rows_sum_to_nearly_1():
    layer, _, _ = made()
    with torch.autocast("cpu", dtype=torch.float16):
        stages = layer(normal(2, 7, 16).float(), causal=True, return_stages=True)
    assert stages.scores.dtype == stages.weights.dtype == torch.float16
    close(stages.weights.float().sum(-1), torch.ones(2, 4, 7), 2e-3)


def test_steps_that_overflow_are_skipped_and_the_scale_is_halved():
    layer, loss, sgd = made()
    before, states = weights(layer), scaler(2.0**24)
    done = [
        training_step(layer, loss, sgd, dtype=torch.float16, scaler=states)
        for _ in range(14)
    ]
    skipped = [step.skipped for step in done]
    first = skipped.index(False)
    assert 0 < first < 14
    assert not any(skipped[first:])
    assert [step.scale for step in done[: first + 1]] == [
        2.0 ** (24 - i) for i in range(first + 1)
    ]
    assert all(step.update == 0 for step in done[:first])
    assert all(step.update > 0.1 for step in done[first:])
    assert weights(layer).isfinite().all()
    assert not torch.equal(weights(layer), before)


def test_after_some_good_steps_the_scale_is_doubled():
    layer, loss, sgd = made()
    states = scaler(1024.0, growth_interval=3)
    done = [
        training_step(layer, loss, sgd, dtype=torch.float16, scaler=states)
        for _ in range(7)
    ]
    assert [step.scale for step in done] == [1024.0] * 3 + [2048.0] * 3 + [4096.0]


def test_small_gradients_are_lost_in_float16_unless_the_loss_is_scaled():
    def line():
        made = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 1, bias=False))
        with torch.no_grad():
            for part in made:
                part.weight.fill_(1e-4)
        return made, torch.optim.SGD(made.parameters(), lr=1.0)

    x, norms = torch.ones(1, 4), []
    for states in (None, scaler(2.0**18)):
        net, sgd = line()
        norms.append(
            training_step(
                net,
                lambda net=net: 1e-5 * net(x).float().sum(),
                sgd,
                dtype=torch.float16,
                scaler=states,
            ).grad_norm
        )
    true = 1e-5 * ((16 * 1e-4**2) + 4 * (4e-4) ** 2) ** 0.5
    assert norms[1] == pytest.approx(true, rel=0.01)
    assert norms[0] == 0


def test_a_small_loss_is_scaled_in_float32():
    loss = torch.tensor(1.0, dtype=torch.float16)
    assert scaled(loss, scaler(65536.0)).item() == 65536.0
    assert scaled(loss, None) is loss
    assert scaled(loss.double(), scaler(65536.0)).dtype == torch.float64


def test_parameters_in_float16_cannot_be_unscaled():
    layer, loss, sgd = made(torch.float16)
    with pytest.raises(ValueError, match="unscale FP16"):
        training_step(layer, loss, sgd, scaler=scaler())
