"""Answers to lesson 03 as a class hands them in: right, wrong, and without an end.

For every answer it is known what a fair person would say: a status, and the mistakes
by their keys. They are written here by hand, so that the grader is not asked about
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

NAMES = (
    *("causal", "padding_and_causal", "document_mask"),
    *("create_mask", "masked_attention"),
)


@dataclass(frozen=True)
class Known:
    """An answer, and what it is."""

    source: str
    status: str = "passed"
    mistakes: frozenset[str] = frozenset()


RIGHT = {
    "causal": (
        """\
def causal(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q)""",
        """\
def causal(n_q, n_k=None):
    if n_k is None:
        n_k = n_q
    rows = np.arange(n_k - n_q, n_k)
    return np.arange(n_k)[None, :] <= rows[:, None]""",
        """\
def causal(n_q, n_k=None):
    n_k = n_k or n_q
    table = []
    for i in range(n_q):
        table.append([j <= n_k - n_q + i for j in range(n_k)])
    return np.array(table)""",
    ),
    "padding_and_causal": (
        """\
def padding_and_causal(lengths, n_q, n_k):
    real = np.arange(n_k) < lengths[:, None, None, None]
    return real & np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q)""",
        """\
def padding_and_causal(lengths, n_q, n_k):
    out = np.zeros((len(lengths), 1, n_q, n_k), dtype=bool)
    for b, length in enumerate(lengths):
        for i in range(n_q):
            out[b, 0, i, : min(length, n_k - n_q + i + 1)] = True
    return out""",
    ),
    "document_mask": (
        "def document_mask(ids):\n    return ids[:, None] == ids[None, :]",
        "def document_mask(ids):\n    return np.equal.outer(ids, ids)",
        "document_mask = lambda ids: np.array([[a == b for b in ids] for a in ids])",
    ),
    "create_mask": (
        """\
def create_mask(n_q, n_k, lengths=None, is_causal=False):
    mask = np.ones((1, 1, n_q, n_k), dtype=bool)
    if is_causal:
        mask = np.tril(mask, k=n_k - n_q)
    if lengths is not None:
        mask = mask & (np.arange(n_k) < lengths[:, None, None, None])
    return mask""",
        """\
def no_future(n_q, n_k):
    return np.arange(n_k) <= np.arange(n_k - n_q, n_k)[:, None]


def create_mask(n_q, n_k, lengths=None, is_causal=False):
    ends = np.array([n_k]) if lengths is None else np.asarray(lengths)
    mask = np.zeros((len(ends), 1, n_q, n_k), dtype=bool)
    for b in range(len(ends)):
        mask[b, ..., : ends[b]] = True
    return mask & no_future(n_q, n_k) if is_causal else mask""",
    ),
    "masked_attention": (
        """\
def masked_attention(q, k, v, mask):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    weights = softmax(np.where(mask, scores, -np.inf))
    return weights, weights @ v""",
        """\
def masked_attention(q, k, v, mask):
    scores = np.where(mask, (q @ k.T) / q.shape[1] ** 0.5, -np.inf)
    top = scores.max(axis=1, keepdims=True)
    top[np.isinf(top)] = 0
    e = np.exp(scores - top)
    total = e.sum(axis=1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights, weights @ v""",
    ),
}


def _mistake(source: str, *keys: str) -> Known:
    return Known(source, "mistake", frozenset(keys))


_TRIANGLE = "np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q)"
_CAUSAL = "def causal(n_q, n_k=None):\n    n_k = n_q if n_k is None else n_k\n"
_PADDED = "def padding_and_causal(lengths, n_q, n_k):\n"
_REAL = "(np.arange(n_k) < lengths[:, None, None, None])"
_ATTEND = "def masked_attention(q, k, v, mask):\n"
_SOFTMAX = "    w = softmax(np.where(mask, scores, -np.inf))\n    return w, w @ v"
WRONG = {
    "causal": (
        _mistake(
            _CAUSAL + "    return np.tril(np.ones((n_q, n_k), dtype=bool))",
            "aligned_top_left",
        ),
        _mistake(_CAUSAL + f"    return ~{_TRIANGLE}", "mask_inverted"),
        _mistake(
            _CAUSAL + f"    return {_TRIANGLE[:-1]} - 1)",
            "diagonal_missing",
        ),
        _mistake(_CAUSAL + f"    return {_TRIANGLE}.astype(float)", "mask_numbers"),
    ),
    "padding_and_causal": (
        _mistake(_PADDED + f"    return {_REAL} | {_TRIANGLE}", "combined_by_or"),
        _mistake(
            _PADDED + f"    return ({_REAL} & {_TRIANGLE})[:, 0]",
            "head_axis_missing",
        ),
        _mistake(
            _PADDED + "    real = np.arange(n_k) <= lengths[:, None, None, None]\n"
            f"    return real & {_TRIANGLE}",
            "length_one_more",
        ),
    ),
    "document_mask": (
        _mistake(
            "def document_mask(ids):\n    return ids[:, None] >= ids[None, :]",
            "document_earlier_too",
        ),
        _mistake(
            "def document_mask(ids):\n    return ids[:, None] != ids[None, :]",
            "mask_inverted",
        ),
        _mistake(
            "def document_mask(ids):\n    same = ids[:, None] == ids[None, :]\n"
            "    return same & np.tril(np.ones_like(same))",
            "document_causal",
        ),
        Known("def document_mask(ids):\n    return ids[:, None] == id[None]", "raised"),
    ),
    "create_mask": (
        _mistake(
            RIGHT["create_mask"][0].replace("if is_causal", "if not is_causal"),
            "causal_reversed",
        ),
        _mistake(
            RIGHT["create_mask"][0].replace(", k=n_k - n_q", ""), "aligned_top_left"
        ),
    ),
    "masked_attention": (
        _mistake(_ATTEND + "    scores = q @ k.T\n" + _SOFTMAX, "scale_missing"),
        _mistake(
            _ATTEND + "    scores = q @ k.T / np.sqrt(q.shape[-1])\n"
            "    w = softmax(scores)\n    return w, w @ v",
            "mask_ignored",
        ),
        _mistake(
            _ATTEND + "    scores = q @ k.T / q.shape[-1]\n" + _SOFTMAX, "scale_d_k"
        ),
        _mistake(
            _ATTEND + "    scores = q @ k.T\n    w = softmax(scores)\n"
            "    return w, w @ v",
            *("scale_missing", "mask_ignored"),
        ),
    ),
}
_MASK = "def document_mask(ids):\n"
LOOPS = {
    "busy": _MASK + "    while True:\n        pass",
    "sleeping": "import time\n" + _MASK + "    time.sleep(10_000)",
    "swallows every exception": _MASK
    + """\
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass""",
    "ignores signals": "import signal\n"
    + _MASK
    + """\
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        ids = ids + 1""",
    "in C": _MASK + "    return sum(iter(int, 1))",
    "threads": "import threading\n"
    + _MASK
    + """\
    def spin():
        while True:
            pass
    for _ in range(3):
        threading.Thread(target=spin, daemon=True).start()
    spin()""",
    "processes": "import os\n"
    + _MASK
    + """\
    for _ in range(3):
        if os.fork() == 0:
            while True:
                pass
    os.wait()""",
    "waits for a lock": "import threading\n"
    + _MASK
    + """\
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()""",
    "outside the function": "number = sum(iter(int, 1))\n"
    + _MASK
    + "    return ids[:, None] == ids[None, :] + number",
    "prints": _MASK + "    while True:\n        print(ids)",
}
