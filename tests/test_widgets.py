import numpy as np
import pytest

from attnlib.attention import scaled_dot_product
from attnlib.masks import causal
from attnlib.shapes import ShapeError
from attnlib.widgets import Workbench, mask_painter

WORDS = {"title": "Twice", "sentence": "Each number is doubled."}
WIDGET = "application/vnd.jupyter.widget-view+json"


def twice(**more):
    return Workbench({"x": np.eye(2)}, lambda a: {"y": 2 * a["x"]}, **WORDS, **more)


def test_the_bundle_has_a_sentence_tables_and_a_live_view():
    bench = twice()
    bundle = bench._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", WIDGET}
    assert bundle["text/plain"] == "Each number is doubled." == repr(bench)
    assert bundle["text/html"].count("<table") == 2
    assert ">2.00</td>" in bundle["text/html"]
    # Shown twice, it is one model; both views follow their own edits.
    assert bench._repr_mimebundle_()[WIDGET] == bundle[WIDGET]


def test_a_stored_bench_says_first_that_it_is_a_picture():
    html = twice().html
    assert html.count("A picture. Run this cell to edit it.") == 1
    assert html.index("<b>Twice</b>") < html.index("A picture.") < html.index("<table")


def test_the_fallback_is_the_same_every_time():
    assert twice().html == twice().html
    assert "model_id" not in twice().html


def test_an_answer_holds_rounded_results():
    reply = twice().answer({"x": [1, 2, 3, 0.123456]})
    assert reply == {"results": {"y": [2, 4, 6, 0.25]}, "maxima": {"y": 6.0}}


def test_the_lesson_computes_and_the_bench_only_shows():
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))

    def compute(arrays):
        found = scaled_dot_product(arrays["q"], k, v)
        return {"weights": found.weights, "out": found.out}

    bench = Workbench({"q": q}, compute, digits=6, **WORDS)
    new = rng.normal(size=(4, 3))
    reply = bench.answer({"q": new.ravel().tolist()})
    expected = scaled_dot_product(new, k, v)
    for name in ("weights", "out"):
        shown = np.reshape(reply["results"][name], getattr(expected, name).shape)
        np.testing.assert_allclose(shown, getattr(expected, name), atol=1e-6)


def test_an_exception_in_compute_is_one_sentence():
    def compute(arrays):
        if arrays["x"][0, 0] > 5:
            raise RuntimeError("too large\nwith a second line")
        return {"y": arrays["x"]}

    bench = Workbench({"x": [[1.0]]}, compute, **WORDS)
    assert bench.answer({"x": [9]}) == {"error": "RuntimeError: too large"}
    assert "results" in bench.answer({"x": [2]})


@pytest.mark.parametrize("values", [{}, {"x": [1, 2]}, {"x": ["a"] * 4}, {"x": None}])
def test_a_message_that_makes_no_sense_is_answered(values):
    assert list(twice().answer(values)) == ["error"]


def test_inf_and_nan_come_as_words_and_without_warnings():
    bench = Workbench({"x": [[1.0, 0.0]]}, lambda a: {"y": a["x"] / 0}, **WORDS)
    assert bench.answer({"x": [-1, 0]})["results"]["y"] == ["-inf", "nan"]


def test_compute_may_change_its_inputs():
    def rude(arrays):
        arrays["x"] *= 0
        return {"y": arrays["x"]}

    start = np.ones((1, 2))
    bench = Workbench({"x": start}, rude, **WORDS)
    assert start.tolist() == [[1, 1]]
    assert bench.spec["inputs"][0]["values"] == [1, 1]


def test_results_keep_their_shapes():
    bench = Workbench({"x": [[1.0]]}, lambda a: {"y": np.ones((int(a["x"][0, 0]), 1))},
                      **WORDS)  # fmt: skip
    error = bench.answer({"x": [2]})["error"]
    assert error.startswith("ShapeError: compute returned the shapes {'y': (2, 1)}")


def test_booleans_are_toggles_and_vectors_are_rows():
    bench = Workbench(
        {"m": causal(3)}, lambda a: {"seen": a["m"].sum(-1)}, watch="m", **WORDS
    )
    assert bench.spec["inputs"][0]["kind"] == "bool"
    assert bench.spec["watch"] == "m"
    assert bench.answer({"m": [1, 0, 0] * 3})["results"]["seen"] == [1, 1, 1]


def test_messages_are_answered_with_their_own_id():
    bench, sent = twice(), []
    bench._repr_mimebundle_()
    bench._view.send = sent.append
    bench._on_message(
        bench._view, {"kind": "edit", "id": "a-1", "inputs": {"x": [1] * 4}}, []
    )
    bench._on_message(bench._view, {"kind": "other"}, [])
    bench._on_message(bench._view, "text", [])
    assert [(m["kind"], m["id"]) for m in sent] == [("reply", "a-1")]


def test_in_lab_the_widget_is_replaced_by_html_that_can_be_saved(monkeypatch):
    bench, calls = twice(), []
    bench._repr_mimebundle_()
    monkeypatch.setattr(
        "IPython.display.display", lambda *data, **how: calls.append((data[0], how))
    )
    for _ in range(2):  # drawn twice, replaced once
        bench._on_message(bench._view, {"kind": "drawn"}, [])
    ((bundle, how),) = calls
    assert set(bundle) == {"text/plain", "text/html"}
    assert how == {"raw": True, "display_id": bench.display_id, "update": True}
    assert bench._view.key == bench.display_id in bundle["text/html"]
    assert bench.display_id not in bench.html
    bench._repr_mimebundle_()  # shown again, in another cell
    bench._on_message(bench._view, {"kind": "drawn"}, [])
    assert len(calls) == 2


def test_the_mask_painter_labels_and_presets():
    v = np.arange(6.0).reshape(3, 2)

    def compute(mask):
        assert mask.dtype == np.bool_
        found = scaled_dot_product(np.ones((3, 1)), np.ones((3, 1)), v, mask)
        return {"weights": found.weights, "out": found.out}

    tokens = ("a", "b", "c")
    painter = mask_painter(
        causal(3),
        compute,
        rows=tokens,
        columns=tokens,
        presets={"none": np.zeros((3, 3), bool)},
        title="Paint",
        sentence="S.",
    )
    assert painter.spec["presets"] == {"none": {"mask": [0] * 9}}
    assert painter.html.count('<th scope="row">b</th>') == 3
    assert painter.html.count('<th scope="col">b</th>') == 2
    reply = painter.answer({"mask": [0] * 9})
    assert reply["results"]["out"] == [0] * 6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: twice(presets={"p": {"z": np.eye(2)}}),
            "preset 'p' sets 'z', but the inputs are x.",
        ),
        (
            lambda: twice(presets={"p": {"x": np.eye(3)}}),
            "preset 'p' sets x with shape (3, 3), but x has shape (2, 2).",
        ),
        (lambda: twice(watch="x"), "watch='x' names no boolean input."),
        (lambda: twice(rows={"x": ["a"]}), "x has 2 rows, but 1 labels were given"),
        (
            lambda: Workbench({"x": np.ones(2)}, lambda a: {}, **WORDS),
            "x needs two axes",
        ),
        (
            lambda: Workbench(
                {"x": np.eye(2)}, lambda a: {"y": np.ones((1, 1, 1))}, **WORDS
            ),
            "y needs two axes",
        ),
    ],
)
def test_errors_say_what_was_found(call, words):
    with pytest.raises((ValueError, ShapeError)) as caught:
        call()
    assert words in str(caught.value)


def test_results_stand_in_rows_and_colours_are_explained():
    bench = Workbench(
        {"x": np.eye(2)},
        lambda a: {"y": a["x"], "z": -a["x"], "weights": a["x"]},
        per_row=(1, 2),
        **WORDS,
    )
    rows = bench.html.split('class="attn-line"')[1:]
    assert [row.count("<table") for row in rows] == [1, 2]
    assert "above zero" in bench.html


def test_edits_are_not_kept_in_the_kernel():
    bench = twice()
    spec, html = bench.spec, bench.html
    bench.answer({"x": [5, 5, 5, 5]})
    assert (bench.spec, bench.html) == (spec, html)
