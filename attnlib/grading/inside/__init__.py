"""What runs in the sandbox, beside a student's code.

`NEEDS` are the files of attnlib that it takes from elsewhere: all else is out of its
sight. None of them holds an answer, or anything that computes attention.
"""

NEEDS = (
    "clinic/case.py",
    "clinic/limit.py",
    "clinic/run.py",
    "clinic/tensors.py",
    "clinic/words.py",
    "exercises/afar.py",
    "exercises/counted.py",
    "exercises/frames.py",
    "exercises/metered.py",
    "exercises/on_chip.py",
    "exercises/program.py",
    "exercises/read.py",
    "exercises/stubs.py",
    "exercises/text.py",
    "shapes.py",
    "tiles/arrays.py",
    "tiles/chip.py",
)
