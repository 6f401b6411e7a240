"""How much processor time `import attnlib` and its NumPy modules cost beyond NumPy.

    python benchmarks/import_time.py

Prints the smallest of five fresh Pythons each. It is printed, not gated: the number
depends on the machine. What may be loaded at all is a test (tests/test_architecture).
"""

import subprocess
import sys

CODE = "import {}, time; print(time.process_time())"
NUMPY_LEVELS = "attnlib.attention, attnlib.masks, attnlib.heads, attnlib.diagnostics"


def seconds(modules: str) -> float:
    command = [sys.executable, "-c", CODE.format(modules)]
    runs = [subprocess.check_output(command, text=True) for _ in range(5)]
    return min(map(float, runs))


if __name__ == "__main__":
    numpy = seconds("numpy")
    print(f"numpy                        {numpy:.3f} s")
    for name, modules in (
        ("attnlib", "numpy, attnlib"),
        ("attnlib's NumPy levels", NUMPY_LEVELS),
    ):
        print(f"{name:<28} {seconds(modules) - numpy:+.3f} s")
