"""The script and the style sheet of the workbench, as text."""

from importlib.resources import files

from attnlib.explorers.explorer import asset

_HERE = files("attnlib.widgets")
BENCH_JS = asset("paint.js") + (_HERE / "bench.js").read_text(encoding="utf-8")
BENCH_CSS = (_HERE / "bench.css").read_text(encoding="utf-8")
