"""The clinic: tell anyone what is wrong with their attention.

`examine` takes any attention as a black box and names its mistakes, `assert_healthy`
does so in a test suite. Behind them: `catalogue` lists the mistakes, `families` holds
one wrong-able implementation for each function of the course, `match` compares an
answer with all of them, `evidence` measures the number that gave a mistake away, and
`black_box` does the same for attentions of any kind. `library_rules` reads a module's
settings and source. Importing it does not import torch.
"""

from attnlib.clinic.examine import examine
from attnlib.clinic.healthy import assert_healthy
from attnlib.clinic.module_rules import library_rules
from attnlib.clinic.report import Report

__all__ = ["Report", "assert_healthy", "examine", "library_rules"]
