"""The training loop: the same as by hand, whole when stopped, clear when it fails."""

import math
import os
import signal
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib.nn.train import _OPTIMISERS, Trained, train
from attnlib.shapes import ShapeError


def model():
    made = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    with torch.no_grad():
        for seed, parameter in enumerate(made.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=seed))
    return made


def batches(net, scale=1.0):
    """A loss that draws another batch for every step."""

    def loss(step):
        x, y = normal(5, 3, seed=step), normal(5, 2, seed=100 + step)
        return scale * ((net(x) - y) ** 2).mean()

    return loss


@pytest.mark.parametrize(
    ("name", "kind"), [("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)]
)
@pytest.mark.parametrize("clip", [0.3, None])
def test_it_is_the_loop_that_one_would_write(name, kind, clip):
    ours, theirs = model(), model()
    trained = train(ours, batches(ours), 7, lr=0.05, optimiser=name, clip=clip)
    by_hand, loss = kind(theirs.parameters(), lr=0.05), batches(theirs)
    losses, norms = [], []
    for step in range(7):
        by_hand.zero_grad()
        value = loss(step)
        value.backward()
        norm = sum(p.grad.square().sum() for p in theirs.parameters()).sqrt().item()
        if clip and norm > clip:
            for p in theirs.parameters():
                p.grad *= clip / norm
        by_hand.step()
        losses.append(value.item())
        norms.append(norm)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(a, b, 1e-5)  # PyTorch divides by norm + 1e-6
    assert trained.losses == pytest.approx(losses, abs=1e-5)
    assert trained.grad_norms == pytest.approx(norms, abs=1e-5)
    assert (trained.steps, trained.planned, trained.interrupted) == (7, 7, False)


def test_the_learning_rate_may_be_a_function_of_the_step():
    flat, varied, seen = model(), model(), []

    def lr(step):
        seen.append(step)
        return 0.0 if step < 3 else 0.1

    train(varied, batches(varied), 3, lr=lr, optimiser="sgd")
    for a, b in zip(flat.parameters(), varied.parameters(), strict=True):
        assert torch.equal(a, b)
    train(varied, batches(varied), 5, lr=lr, optimiser="sgd")
    assert not torch.equal(flat[0].weight, varied[0].weight)
    assert set(seen) == {0, 1, 2, 3, 4}


def test_report_hears_of_every_step_and_its_loss():
    net, heard = model(), []
    trained = train(
        net, batches(net), 4, lr=0.1, report=lambda *told: heard.append(told)
    )
    assert heard == [(i + 1, loss) for i, loss in enumerate(trained.losses)]


def test_the_mode_is_restored_and_no_gradients_are_left():
    net, modes = model().eval(), []

    def loss(step):
        modes.append(net.training)
        return net(normal(2, 3)).mean()

    train(net, loss, 2, lr=0.1)
    assert modes == [True, True]
    assert not net.training
    assert all(p.grad is None for p in net.parameters())


def test_frozen_parameters_stay():
    net = model()
    net[0].weight.requires_grad_(False)
    before = net[0].weight.clone()
    train(net, batches(net), 3, lr=0.1)
    assert torch.equal(net[0].weight, before)


def test_printed_it_is_a_sentence():
    assert repr(Trained(2, (1.0, 0.5), (1, 1), False, 2)) == (
        "2 steps; the loss went from 1.00 to 0.50."
    )
    net = model()
    assert repr(train(net, batches(net), 0, lr=1)) == (
        "No steps; the model is as it was."
    )


# Interrupts: a real SIGINT, wherever it comes, leaves a whole model.


def interrupt():
    signal.raise_signal(signal.SIGINT)


def stopped_at_each_place(place):
    """Interrupt in step 3 at a place, and train as many steps without it."""
    net, other = model(), model()
    plain = batches(net)

    def loss(step):
        value = plain(step)
        if place == "loss" and step == 3:
            interrupt()
        return value

    def report(done, value):
        if place == "report" and done == 4:
            interrupt()

    trained = train(net, loss, 9, lr=0.1, report=report)
    train(other, batches(other), trained.steps, lr=0.1)
    return net, other, trained


@pytest.mark.parametrize("place", ["loss", "report"])
def test_an_interrupt_ends_it_after_the_step(place, capsys):
    before = signal.getsignal(signal.SIGINT)
    net, other, trained = stopped_at_each_place(place)
    assert (trained.steps, trained.interrupted, trained.planned) == (4, True, 9)
    assert len(trained.losses) == len(trained.grad_norms) == 4
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    told = "Interrupted after 4 of 9 steps; the model keeps what it has learned.\n"
    assert capsys.readouterr().out == told
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_ends_it_at_once(capsys):
    net, other = model(), model()
    plain = batches(net)

    def loss(step):
        value = plain(step)
        if step == 2:
            interrupt()
            interrupt()
            raise AssertionError("not reached")
        return value

    trained = train(net, loss, 9, lr=0.1)
    assert (trained.steps, trained.interrupted) == (2, True)
    train(other, batches(other), 2, lr=0.1)
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_no_interrupt_cuts_an_update_in_two(monkeypatch, capsys):
    net, other = model(), model()
    real = torch.optim.Adam.step

    def step(self, closure=None):
        if parameters_done:
            interrupt()
            interrupt()
            interrupt()
        parameters_done.append(1)
        return real(self, closure)

    parameters_done = []
    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        trained = train(net, batches(net), 9, lr=0.1)
    assert (trained.steps, trained.interrupted) == (2, True)
    train(other, batches(other), 2, lr=0.1)
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_an_interrupt_while_the_optimiser_loads_waits_until_it_has(monkeypatch, capsys):
    def slow(*arguments, **more):
        interrupt()
        return torch.optim.Adam(*arguments, **more)

    monkeypatch.setitem(_OPTIMISERS, "adam", slow)
    trained = train(model(), lambda step: 1 / 0, 9, lr=0.1)
    assert (trained.steps, trained.interrupted) == (0, True)


def test_it_trains_in_other_threads_too():
    net, found = model(), []
    thread = threading.Thread(
        target=lambda: found.append(train(net, batches(net), 3, lr=0.1))
    )
    thread.start()
    thread.join()
    assert found[0].steps == 3


@pytest.mark.skipif(os.name == "nt", reason="signals are sent another way there")
def test_an_interrupt_from_outside_in_a_program_of_its_own():
    program = (
        "import torch\nfrom attnlib.nn.train import train\n"
        "net = torch.nn.Linear(3, 3)\n"
        "def loss(step):\n"
        "    if step == 5: print('begun', flush=True)\n"
        "    return net(torch.ones(3)).sum()\n"
        "trained = train(net, loss, 10**9, lr=1e-3)\n"
        "print(trained.interrupted, trained.steps > 5, net(torch.ones(3)).shape)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0].splitlines()
    assert said[0].startswith("Interrupted after ")
    assert said[1] == "True True torch.Size([3])"
    assert process.returncode == 0


# What is not finite stops it before it spoils the model.


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_stops_it(bad):
    net, other = model(), model()
    plain = batches(net)
    with pytest.raises(FloatingPointError) as caught:
        train(net, lambda i: plain(i) * (bad if i == 3 else 1), 9, lr=0.1)
    losses = train(other, batches(other), 3, lr=0.1).losses
    assert str(caught.value) == (
        f"the loss of step 3 is {bad}; the last finite loss was {losses[-1]:.3g}, and "
        "the model is as step 2 left it."
    )
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_gradient_that_is_not_finite_stops_it_too():
    net = model()
    zero = torch.zeros((), dtype=torch.float64)

    def loss(step):
        return ((net(normal(2, 3)).sum() * zero).sqrt()).sum() + 2

    with pytest.raises(
        FloatingPointError,
        match=r"^a gradient of step 0 is not finite, though its loss is 2; the model "
        r"was not changed\.$",
    ):
        train(net, loss, 2, lr=0.1)
    assert all(torch.equal(a, b) for a, b in zip(
        net.parameters(), model().parameters(), strict=True))  # fmt: skip


def test_a_lesson_may_look_at_nan():
    net = model()
    plain = batches(net)
    trained = train(
        net,
        lambda i: plain(i) * (math.nan if i == 1 else 1),
        3,
        lr=0.1,
        allow_nonfinite=True,
    )
    assert [math.isnan(loss) for loss in trained.losses] == [False, True, True]
    assert net[0].weight.isnan().all()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"steps": -1}, ShapeError, "steps must be at least 0, but it is -1."),
        (
            {"optimiser": "lion"},
            ValueError,
            "optimiser must be one of adam, sgd, but it is 'lion'.",
        ),
        (
            {"clip": 0},
            ValueError,
            "clip must be larger than 0, or None, but it is 0.",
        ),
        (
            {"loss": lambda step: 1.5},
            TypeError,
            "the loss of step 0 must be a floating torch.Tensor, but it is a float.",
        ),
        (
            {"loss": lambda step: torch.tensor(3)},
            TypeError,
            "the loss of step 0 must be a floating torch.Tensor, but it is a "
            "torch.int64.",
        ),
        (
            {"loss": lambda step: torch.ones(2, 3)},
            ShapeError,
            "the loss of step 0 must be one number, but its shape is (2, 3); take its "
            "mean.",
        ),
        (
            {"loss": lambda step: torch.tensor(1.0)},
            ValueError,
            "the loss of step 0 depends on no parameter of the model.",
        ),
        (
            {"model": nn.Tanh()},
            ValueError,
            "the model has no parameters to train.",
        ),
    ],
)
def test_errors_say_what_was_found(change, error, text):
    net = model()
    given = {"model": net, "loss": batches(net), "steps": 2, "lr": 0.1} | change
    with pytest.raises(error) as caught:
        train(**given)
    assert str(caught.value) == text


def test_an_error_in_the_loss_comes_through_and_the_handler_is_back():
    before, net = signal.getsignal(signal.SIGINT), model()
    with pytest.raises(ZeroDivisionError):
        train(net, lambda step: 1 / 0, 2, lr=0.1)
    assert signal.getsignal(signal.SIGINT) is before
