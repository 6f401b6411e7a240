"""From the source of a lesson to the cells of its notebook, and to its bytes.

A lesson is written in `notebooks/source/NN_name.md` (MyST Markdown, no front matter).
`read_source` turns it into cells without outputs; `canonical` puts an executed
notebook into the one form that is stored: fixed ids, no times, no widget state.
Nothing here starts a kernel.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# jsonschema compiles some 35 grammars when it finds this package, which costs two
# seconds at every start. Only the format "iri" needs it; notebooks have none.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

import jupytext  # noqa: E402
import nbformat  # noqa: E402

from attnlib import checkpoints  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
SOURCES = NOTEBOOKS / "source"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# A cell with the name of a real model as a tag shows another output without it.
MODELS = frozenset(model.name for model in checkpoints.MODELS)
TAGS = MODELS | {"setup", "exercise", "check", "figure"}
TAGS |= {"raises-exception", "nbval-ignore-output"}
# Written into every notebook, whatever machine built it.
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}


class LessonError(Exception):
    """A lesson cannot be built; the sentence says which one, where and why."""


def where(lesson: str, cell: Any) -> str:
    """Name a cell as an author looks for it: lesson, id, first line."""
    first = next((line for line in cell["source"].splitlines() if line.strip()), "")
    return f"lesson {lesson}, cell {cell['id']} ({first.strip()})"


def find_sources(names: list[str], folder: Path = SOURCES) -> list[Path]:
    """The sources whose names begin with one of `names`; all without names."""
    sources = sorted(folder.glob("[0-9][0-9]_*.md"))
    if not names:
        return sources
    chosen = []
    for name in names:
        stem = Path(name).stem
        found = [source for source in sources if source.stem.startswith(stem)]
        if not found:
            have = ", ".join(source.stem for source in sources) or "none"
            raise LessonError(f"no lesson begins with {name!r}; there are: {have}.")
        chosen += [source for source in found if source not in chosen]
    return chosen


def read_source(path: Path) -> Any:
    """Read a lesson; return its notebook, without outputs and with fixed ids."""
    lesson = path.stem
    text = path.read_text(encoding="utf-8")
    if text.startswith("---"):
        raise LessonError(
            f"lesson {lesson} begins with front matter; the build writes the metadata "
            f"of every notebook, so begin with the title."
        )
    notebook = jupytext.reads(text, fmt="md:myst")
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        raise LessonError(f"lesson {lesson} has no code cell.")
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for index, cell in enumerate(notebook.cells):
        cell.id = f"{lesson[:2]}-{index:03d}"
        unknown = sorted(set(cell.metadata) - {"tags"})
        tags = cell.metadata.get("tags", [])
        wrong = sorted(set(tags) - TAGS)
        if unknown or wrong:
            raise LessonError(
                f"{where(lesson, cell)}: {', '.join(unknown + wrong)} is not in use; "
                f"a cell may have the tags {', '.join(sorted(TAGS))} and nothing else."
            )
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    return notebook


def lacks_model(cell: Any) -> str:
    """Which real model a cell needs and does not find, in a sentence; "" if none."""
    wanted = MODELS & set(cell.metadata.get("tags", []))
    missing = sorted(name for name in wanted if not checkpoints.here(name))
    return checkpoints.how_to_get(missing[0]) if missing else ""


def canonical(lesson: str, notebook: Any) -> Any:
    """Put an executed notebook into the form that is stored. Changes it in place."""
    notebook.metadata = nbformat.from_dict(METADATA)
    count = 0
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = _merge_streams(cell.outputs)
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise LessonError(
                    f"{where(lesson, cell)} writes to stderr, which is never the same "
                    f"twice: {output.text.strip().splitlines()[-1]}"
                )
            _canonical_output(output, count)
    return notebook


def _canonical_output(output: Any, count: int) -> None:
    if output.output_type == "error":
        # The trace names files of the machine that built it; learners see their own.
        output.traceback = [f"{output.ename}: {output.evalue}"]
    if output.output_type == "execute_result":
        output.execution_count = count
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)  # a model that died with its kernel
        pictures = {k: v for k, v in output.metadata.items() if k == "image/png"}
        output.metadata = nbformat.from_dict(pictures)


def _merge_streams(outputs: list[Any]) -> list[Any]:
    # How a kernel cuts its printing into messages depends on time alone.
    merged: list[Any] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            merged.append(output)
    return merged


def to_bytes(notebook: Any) -> bytes:
    """The stored form: sorted keys, one space, UTF-8, a newline at the end."""
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode("utf-8")


def from_bytes(content: bytes) -> Any:
    return nbformat.reads(content.decode("utf-8"), as_version=4)


def differences(source: Path, stored: Path) -> list[str]:
    """Where a stored notebook is not the built form of its source. No kernel."""
    lesson = source.stem
    if not stored.exists():
        return [f"lesson {lesson} was never built."]
    content = stored.read_bytes()
    wanted, found = read_source(source), from_bytes(content)
    if len(wanted.cells) != len(found.cells):
        return [
            f"lesson {lesson} has {len(wanted.cells)} cells in its source but "
            f"{len(found.cells)} in its notebook: build it again."
        ]
    faults = [
        f"{where(lesson, new)}: {key} differs between source and notebook."
        for new, old in zip(wanted.cells, found.cells, strict=True)
        for key in ("id", "cell_type", "metadata", "source")
        if new[key] != old.get(key)
    ]
    counts = [c.execution_count for c in found.cells if c.cell_type == "code"]
    if counts != list(range(1, len(counts) + 1)):
        faults.append(f"lesson {lesson}: not every cell was run, in order: {counts}.")
    if found.metadata != METADATA:
        faults.append(f"lesson {lesson}: the notebook's metadata is not the build's.")
    faults += [
        f"{where(lesson, cell)} stores an error, but is not tagged raises-exception."
        for cell in found.cells
        if any(o.output_type == "error" for o in cell.get("outputs", []))
        and "raises-exception" not in cell.metadata.get("tags", [])
    ]
    try:
        if not faults and to_bytes(canonical(lesson, found)) != content:
            faults.append(f"lesson {lesson}: the notebook is not in its stored form.")
    except LessonError as error:
        faults.append(str(error))
    return faults
