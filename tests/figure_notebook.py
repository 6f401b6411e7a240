"""A notebook with one figure of each kind, for the browser tests and the benchmark."""

from pathlib import Path

CELLS = (
    """\
import numpy as np
from attnlib.attention import scaled_dot_product, softmax
from attnlib.example import FEATURES, TOKENS, W_k, W_q, W_v, X
from attnlib.explorers import (
    bars, budget, explore, follow, histogram, lights, matrix, note)
from attnlib.figures import curves, heat, show
from attnlib.masks import causal
from attnlib.widgets import Workbench, mask_painter
rng = np.random.default_rng(0)
scores = scaled_dot_product(X @ W_q, X @ W_k, X @ W_v).scores""",
    """\
temperatures = [0.1, 0.25, 0.5, 1, 2, 4, 8]
def state(t):
    weights = softmax(scores / t)
    favourite = [(i, int(row.argmax())) for i, row in enumerate(weights)]
    return [
        matrix(scores / t, rows=TOKENS, columns=TOKENS, title="scores / T",
               colour="signed"),
        matrix(weights, rows=TOKENS, columns=TOKENS, title="weights",
               marked=favourite),
        bars(weights.max(-1), TOKENS, "largest weight", maximum=1),
        note(f"At T = {t} the cat puts {weights[0].max():.0%} on one key."),
    ]
temperature = explore(
    [state(t) for t in temperatures], control="temperature T", labels=temperatures,
    start=3, title="Temperature",
    sentence="A high temperature makes the weights equal, a low one picks one key.")
show(temperature)""",
    "show(temperature)  # the same figure again: each has its own slider",
    """\
edges = np.linspace(-12, 12, 25)
def spread(d_k):
    raw = (rng.normal(size=(500, d_k)) * rng.normal(size=(500, d_k))).sum(-1)
    pair = {"raw scores": raw, "divided": raw / d_k**0.5}
    return [histogram(np.histogram(a, edges)[0], edges, name, x_title="score")
            for name, a in pair.items()] + [
            bars([f(a) for a in pair.values()], list(pair), f"{f.__name__}", digits=1)
            for f in (np.std, np.ptp)]
show(explore(
    [spread(d) for d in (1, 4, 16, 64)], control="d_k", labels=[1, 4, 16, 64],
    per_row=(2, 2), title="Scores spread with d_k",
    sentence="Divided scores keep their spread."))""",
    """\
x = np.arange(24).reshape(4, 6)
split = x.reshape(4, 3, 2).swapaxes(0, 1)
panels = [matrix(x, title="x", digits=0, colour="groups", groups=x % 6 // 2)]
panels += [matrix(h, title=f"heads[{i}]", digits=0, colour="groups",
                  groups=np.full(h.shape, i)) for i, h in enumerate(split)]
show(follow(panels, [x, *split], title="Split", per_row=(1, 3),
            sentence="Head h takes columns 2h and 2h + 1 of every row."))""",
    """\
show(budget(
    {"slow": (40, 0.9, 0.01), "near": (35, 0.88, 0.02), "fast": (1, 0.5, 0.1)},
    [0.5, 2, 38, 60], cost="ms", worth="accuracy", unit="ms", start=2,
    title="A budget", sentence="What is better costs more."))""",
    """\
def compute(m):
    q, k, v = (m["X"] @ m[name] for name in ("W_q", "W_k", "W_v"))
    a = scaled_dot_product(q, k, v)
    return {"q": q, "k": k, "v": v, "raw_scores": a.raw_scores,
            "scores": a.scores, "weights": a.weights, "out": a.out}
token_rows = dict.fromkeys(
    ["X", "q", "k", "v", "raw_scores", "scores", "weights", "out"], TOKENS)
show(Workbench(
    {"X": X, "W_q": W_q, "W_k": W_k, "W_v": W_v}, compute,
    rows=token_rows | dict.fromkeys(["W_q", "W_k", "W_v"], FEATURES),
    columns={"X": FEATURES}
    | dict.fromkeys(["raw_scores", "scores", "weights"], TOKENS),
    per_row=(3, 3, 1), title="The bench",
    sentence="Change a number: seven tables follow."))""",
    """\
words = ("the", "cat", "sat", "on", "mats")
q, k, v = (rng.normal(size=(5, width)) for width in (4, 4, 3))
def masked(mask):
    a = scaled_dot_product(q, k, v, mask)
    return {"scores": a.scores, "weights": a.weights, "out": a.out}
show(mask_painter(
    causal(5), masked, rows=words, columns=words,
    presets={"causal": causal(5), "everything": np.ones((5, 5), bool)},
    title="Paint a mask", sentence="A causal query sees itself and the past."))""",
    """\
show(lights([("Python", "ok", ""), ("torch", "missing", "python course.py lab")]))
show(curves([1, 2, 4], {"raw": [1, 1.4, 2], "divided": [1, 1, 1]}, title="Spread",
            x_title="d_k", y_title="standard deviation", log_x=True,
            sentence="Only raw scores spread."))
show(heat(rng.random((3, 4)), title="weights", sentence="Random weights."))""",
)


def write(path: Path) -> None:
    """Write the notebook with its outputs, as the build would store them."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook()
    notebook.metadata.kernelspec = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    for index, source in enumerate(CELLS):
        cell = nbformat.v4.new_code_cell(source, id=f"figure-{index}")
        notebook.cells.append(cell)
    client = NotebookClient(notebook, timeout=120, store_widget_state=False)
    client.execute()
    for cell in notebook.cells:
        for output in cell.outputs:
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    nbformat.write(notebook, path)
