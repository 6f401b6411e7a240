"""The script of the workbench alone in a page: what it does when messages are lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from browser import chromium, eventually, watched

from attnlib.widgets import Workbench
from attnlib.widgets.assets import BENCH_JS
from tools.browsers import find_browser

pytestmark = pytest.mark.skipif(not find_browser(), reason="no browser")

# A model whose kernel answers when the test says so. `drop` questions are lost first.
MODEL = """
window.patience = 40;
window.sent = [];
window.drop = 0;
window.model = {
  facts: null, on(name, f) { this.hear = f; }, off() {},
  get(name) { return this.facts[name]; },
  send(message) {
    if (message.kind !== "edit") return;
    sent.push(message);
    if (drop > 0) { drop--; return; }
    const doubled = message.inputs.x.map(v => 2 * v);
    setTimeout(() => this.hear({kind: "reply", id: message.id,
      results: {twice: doubled}, maxima: {twice: 8}}), 0);
  },
};
window.show = () => {
  document.body.innerHTML = model.facts.page;
  begin(document.querySelector(".attn"), model);
};
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    bench = Workbench(
        {"x": np.arange(1.0, 5.0).reshape(2, 2)},
        lambda a: {"twice": 2 * a["x"]},
        title="Twice",
        sentence="Each number is doubled.",
    )
    script = BENCH_JS.replace("export default { render };", "").replace(
        "const PATIENCE = 6000;", "const PATIENCE = 40;"
    )
    with watched(browser) as watch:
        watch.page.set_content("<body></body>")
        watch.page.add_script_tag(content=script + MODEL)
        watch.page.evaluate(
            "facts => { model.facts = facts; show(); }",
            {"page": bench.html, "spec": bench.spec, "key": "k"},
        )
        yield watch.page


def results(page: Any) -> list[str]:
    found: list[str] = page.locator(".attn-out tbody td").all_text_contents()
    return found


def test_an_edit_reaches_the_results(page: Any) -> None:
    page.locator(".attn-in input").first.fill("7")
    eventually(page, "a reply", "() => document.querySelector('.attn').dataset.replies")
    assert results(page) == ["14.00", "4.00", "6.00", "8.00"]


def test_a_lost_question_is_asked_again(page: Any) -> None:
    page.evaluate("drop = 3")
    page.locator(".attn-in input").first.fill("7")
    eventually(page, "a reply", "() => document.querySelector('.attn').dataset.replies")
    assert page.evaluate("sent.length") == 4
    assert results(page)[0] == "14.00"
    assert page.locator(".attn-bad").text_content() == ""


def test_a_silent_kernel_is_said_to_be_silent(page: Any) -> None:
    page.evaluate("drop = 1e9")
    page.locator(".attn-in input").first.fill("7")
    silent = "() => document.querySelector('.attn-bad').textContent.includes('answer')"
    eventually(page, "the sentence", silent)
    assert results(page)[0] == "2.00"


def test_a_bench_drawn_again_keeps_what_was_edited(page: Any) -> None:
    page.evaluate("drop = 1e9")
    page.locator(".attn-in input").first.fill("7")
    page.evaluate("drop = 0; show()")
    eventually(page, "a reply", "() => document.querySelector('.attn').dataset.replies")
    assert page.locator(".attn-in input").first.input_value() == "7"
    assert results(page)[0] == "14.00"
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function(
        "() => document.querySelector('.attn-out tbody td').textContent === '2.00'"
    )


def test_the_caption_says_what_can_be_done(page: Any) -> None:
    said = "document.querySelector('.attn-say').textContent"
    assert page.evaluate(said) == "Edit a number: what changed is underlined."
    bench = Workbench(
        {"use": np.array([[True, False]])},
        lambda a: {"count": a["use"].sum()},
        title="Chosen",
        sentence="One of two is chosen.",
    )
    page.evaluate(
        "facts => { model.facts = facts; show(); }",
        {"page": bench.html, "spec": bench.spec, "key": "other"},
    )
    assert page.evaluate(said) == "Press ✓ or ×: what changed is underlined."
    assert page.locator(".attn-in input").count() == 0
