"""The bar: what it says, how often, what is left of it, and how it is in Lab."""

import importlib.util
import shutil
import sys
import time
from pathlib import Path

import nbformat
import pytest
from browser import chromium, eventually, find_browser, lab, open_notebook, watched
from nbclient import NotebookClient
from own_kernel import OwnKernel
from torch import nn

from attnlib.nn.train import train
from attnlib.shapes import ShapeError
from attnlib.widgets import progress
from attnlib.widgets.progress import Progress

SCREENS = Path(__file__).resolve().parent.parent / "build" / "screens"
LINE = {"text/plain": "Training, 20 steps."}


@pytest.fixture
def shown(monkeypatch):
    """What a kernel would be asked to display: (bundle, how)."""
    calls = []
    module = sys.modules[Progress.__module__]  # its name is that of its function
    monkeypatch.setattr(module, "_in_a_kernel", lambda: True)
    monkeypatch.setattr(
        "IPython.display.display", lambda bundle, **how: calls.append((bundle, how))
    )
    return calls


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_first_and_last_there_is_the_line_alone(shown):
    report = progress(20)
    for step in range(20):
        report(step + 1, 0.5)
    bundles = [bundle for bundle, _ in shown]
    assert bundles[0] == bundles[-1] == LINE
    assert [how["update"] for _, how in shown] == [False] + [True] * (len(shown) - 1)
    assert len({how["display_id"] for _, how in shown}) == 1
    assert all(bundle["text/plain"] == LINE["text/plain"] for bundle in bundles)


def test_it_is_shown_at_most_ten_times_a_second(shown):
    clock = Clock()
    report = Progress(10_000, "Training", clock)
    for step in range(3000):  # three seconds
        clock.now += 0.001
        report(step + 1, 0.5)
    assert 25 <= len(shown) <= 32


def test_the_bar_has_a_name_a_value_and_words(shown):
    clock = Clock()
    report = Progress(20, "A < B", clock)
    clock.now = 1.0
    report(7, 1.23456)
    html = shown[-1][0]["text/html"]
    for part in (
        'max="20"',
        'value="7"',
        'aria-label="A &lt; B"',
        'aria-valuetext="7 of 20 steps"',
        "7 of 20 steps, loss 1.23<",
    ):
        assert part in html


@pytest.mark.parametrize("ending", ["interrupt", "error", "nan"])
def test_however_a_training_ends_the_line_is_left(shown, ending, capsys):
    net = nn.Linear(1, 1)

    def loss(step):
        if step == 3 and ending == "error":
            raise ZeroDivisionError
        if step == 3 and ending == "interrupt":
            raise KeyboardInterrupt
        value = net.weight.sum()
        return value * float("nan") if step == 3 and ending == "nan" else value

    try:
        train(net, loss, 20, lr=0.1, report=progress(20))
    except ArithmeticError:
        assert ending != "interrupt"
    else:
        assert capsys.readouterr().out.startswith("Interrupted after 3 of 20 steps")
    assert shown[-1][0] == LINE


def three_trainings(stop_at=None, error=KeyboardInterrupt):
    """Which of three trainings of 20 steps ran to their end."""
    done = []
    with Progress(60, "Three", Clock()) as bar:
        for number in range(3):
            net = nn.Linear(1, 1)

            def loss(step, number=number, net=net):
                bar._clock.now += 1
                if (number, step) == stop_at:
                    raise error
                return net.weight.square().sum()

            train(net, loss, 20, lr=0.1, report=bar)
            done.append(number)
    return done


def test_one_bar_counts_the_steps_of_several_trainings(shown):
    assert three_trainings() == [0, 1, 2]
    bars = [b["text/html"] for b, _ in shown if "text/html" in b]
    steps = [int(bar.split('value="')[1].split('"')[0]) for bar in bars]
    assert steps == list(range(61))
    assert 'max="60"' in bars[-1]
    lines = [b for b, _ in shown if "text/html" not in b]
    assert lines == [{"text/plain": "Three, 60 steps."}] * 2  # the first and the last
    assert "text/html" not in shown[-1][0]


def test_an_interrupt_ends_all_trainings_of_a_block(shown, capsys):
    assert three_trainings(stop_at=(1, 3)) == [0]
    assert capsys.readouterr().out == (
        "Interrupted after 3 of 20 steps; the model keeps what it has learned.\n"
        "Three: what was to follow is left out.\n"
    )
    assert shown[-1][0] == {"text/plain": "Three, 60 steps."}


def test_an_interrupt_between_two_trainings_ends_the_block_too(shown, capsys):
    with progress(20, "Two") as bar:
        bar(10, 0.5)
        bar.close()
        raise KeyboardInterrupt
    assert capsys.readouterr().out == "Two: what was to follow is left out.\n"
    assert shown[-1][0] == {"text/plain": "Two, 20 steps."}


def test_an_error_in_a_block_is_raised_and_the_line_left(shown):
    with pytest.raises(ZeroDivisionError):
        three_trainings(stop_at=(1, 3), error=ZeroDivisionError)
    assert shown[-1][0] == {"text/plain": "Three, 60 steps."}


def test_nothing_is_shown_after_the_end(shown):
    report = progress(2)
    report(2, 1.0)
    count = len(shown)
    report(3, 1.0)
    report.close()
    assert len(shown) == count


def test_in_a_terminal_there_is_the_line_and_nothing_else(capsys):
    report = progress(20)
    for step in range(20):
        report(step + 1, 0.5)
    assert capsys.readouterr().out == "Training, 20 steps.\n"


@pytest.mark.parametrize(("total", "error"), [(-1, ShapeError), (2.5, TypeError)])
def test_total_is_a_number_of_steps(total, error):
    with pytest.raises(error, match=r"^total must be"):
        progress(total)


# In a kernel and in Lab.

LONG = """\
import torch
from attnlib.nn.train import train
from attnlib.widgets import progress
torch.set_num_threads(1)
net = torch.nn.Linear(3, 3)
trained = train(net, lambda step: net(torch.ones(3)).square().sum(), {steps}, lr=1e-3,
                report=progress({steps}, "Training the small net"))"""
AFTER = "print('next', trained.interrupted, trained.steps == trained.planned)"


def notebook(steps):
    made = nbformat.v4.new_notebook()
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    sources = LONG.format(steps=steps), AFTER
    made.cells = [
        nbformat.v4.new_code_cell(source, id=f"progress-{index}")
        for index, source in enumerate(sources)
    ]
    return made


def test_what_is_stored_is_the_line():
    ran = notebook(3000)
    NotebookClient(
        ran, kernel_manager_class=OwnKernel, timeout=120, store_widget_state=False
    ).execute()
    first, second = ran.cells
    (output,) = first.outputs
    assert output.output_type == "display_data"
    assert output.data == {"text/plain": "Training the small net, 3000 steps."}
    assert output.metadata == {}
    assert second.outputs[0].text == "next False True\n"


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
@pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None, reason="no playwright"
)
def test_in_lab_the_bar_moves_and_interrupt_kernel_stops_it(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    name = "long.ipynb"
    nbformat.write(notebook(10**8), folder / name)
    with (
        lab(folder, tmp_path) as running,
        chromium() as browser,
        watched(browser) as watch,
    ):
        page = watch.page
        open_notebook(watch, running, name)
        while not running.idle(name):
            page.wait_for_timeout(200)
        page.click("div.lm-MenuBar-itemLabel:text-is('Run')")
        page.click("li.lm-Menu-item:has-text('Run All Cells')")
        bar = page.get_by_role("progressbar", name="Training the small net")
        bar.wait_for(timeout=60_000)
        eventually(
            page,
            "the bar moves",
            """() => {
          const bar = document.querySelector('.attn-progress progress');
          window.seen = (window.seen || new Set()).add(bar && bar.value);
          return window.seen.size > 5;
        }""",
        )
        SCREENS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENS / "progress.png")
        assert " of 100000000 steps" in bar.get_attribute("aria-valuetext")
        page.click("div.lm-MenuBar-itemLabel:text-is('Kernel')")
        started = time.monotonic()
        page.click("li.lm-Menu-item:has-text('Interrupt Kernel')")
        eventually(
            page,
            "the training says that it was interrupted",
            "() => document.querySelector('.jp-Notebook').textContent"
            ".includes('steps; the model keeps what it has learned.')",
        )
        seconds = time.monotonic() - started
        eventually(
            page,
            "the next cell runs",
            "() => document.querySelector('.jp-Notebook').textContent"
            ".includes('next True False')",
        )
        print(f"stopped after {seconds:.2f} s")
        assert seconds < 20  # a second on an idle machine; a tired one gets more
        assert bar.count() == 0
        assert page.get_by_text("Training the small net, 100000000 steps.").count()
        assert watch.complaints == []
    shutil.rmtree(folder)
