"""Each lesson run from top to bottom in a fresh kernel: time, peak memory, file size.

The peak is that of the kernel's process, which one more cell asks it for at the end.
The aims: under 60 s, 1000 MB and 600 kB.
"""

import asyncio
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from own_kernel import OwnKernel  # noqa: E402

NOTEBOOKS = ROOT / "notebooks"
AIMS = {"seconds": 60, "MB": 1000, "kB": 600}
PEAK = """
def _peak():
    import re, sys
    if sys.platform == "linux":  # ru_maxrss would count the parent's memory there
        status = open("/proc/self/status").read()
        return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1000
    if sys.platform == "darwin":
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    import psutil
    return psutil.Process().memory_info().peak_wset / 1e6

print(_peak())
"""


def measure(path: Path) -> dict[str, float]:
    """Run one stored notebook; nothing is written."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(PEAK))
    client = NotebookClient(
        notebook,
        kernel_manager_class=OwnKernel,
        timeout=300,
        extra_arguments=["--log-level=ERROR"],
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    start = time.perf_counter()
    asyncio.run(client.async_execute())
    took = time.perf_counter() - start
    peak = float(notebook.cells[-1].outputs[0].text)
    return {"seconds": took, "MB": peak, "kB": path.stat().st_size / 1000}


def main() -> int:
    missed = 0
    print(f"{'lesson':<36}" + "".join(f"{unit:>10}" for unit in AIMS))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        row = measure(path)
        over = [unit for unit, value in row.items() if value > AIMS[unit]]
        missed += bool(over)
        print(f"{path.name:<36}" + "".join(f"{n:10.1f}" for n in row.values()), *over)
    print(f"Aims: {AIMS}; lessons that miss one: {missed}.")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
