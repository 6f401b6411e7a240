"""What functions of q, k and v are asked, and the mistakes that these show."""

from __future__ import annotations

import itertools
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from black_box_tools import ALL
from examined import attend

from attnlib.clinic import examine
from attnlib.clinic.black_box.edges import NARROW, WIDE
from attnlib.clinic.black_box.questions import function_questions
from attnlib.clinic.black_box.scores import factor
from attnlib.clinic.black_box.slots import SCORES
from attnlib.clinic.black_box.traits import PLAIN

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from zoo import switchboard_function, wrong_axes
from zoo.right_torch import sdpa

TAKES = {
    "all": ALL,
    "square": replace(ALL, no_cross=True, memory=False),
    "one width": replace(ALL, equal_d=True),
    "one width, square": replace(ALL, equal_d=True, no_cross=True),
    "batch is heads": replace(ALL, batch_is_heads=True),
    "padding": replace(ALL, mask=False),
}


def questions(takes=ALL):
    return function_questions(np.random.default_rng(0), takes)


@pytest.mark.parametrize("takes", TAKES.values(), ids=TAKES)
def test_d_k_is_even_but_for_what_may_be_refused(takes):
    asked = questions(takes)
    odd = [q.name for q in asked if q.q.shape[-1] % 2]
    assert odd == ["an odd d_k"]
    assert next(q for q in asked if q.name == odd[0]).optional
    assert NARROW % 2 == 0 == WIDE % 2
    assert all(q.k.shape[0] == q.q.shape[0] for q in asked)
    numbers = [a for one in asked for a in (one.q, one.k) if one.optional is False]
    assert all(a.all() for a in numbers)  # a norm over few zeros is 0 / 0


def test_every_wrong_scale_can_be_told_from_every_other():
    """On the first two questions already, which no function is spared."""
    asked = [q for q in questions() if not q.optional][:2]
    same = {"scale_d_k", "scale_twice"}, {"scale_missing", "scale_after"}
    keys = [k for k in SCORES["scale"] if k not in {"scale_on_one_side"}]
    for one, other in itertools.combinations((*keys, ""), 2):
        if {one, other} in same or "scale_after" in (one, other):
            continue
        apart = [
            factor(q.q, q.k, q.v, PLAIN, frozenset([one]), {})
            - factor(q.q, q.k, q.v, PLAIN, frozenset([other]), {})
            for q in asked
        ]
        assert max(map(abs, apart)) > 0.02 * 0.25, (one, other)


def test_sizes_of_the_first_questions_differ():
    for q in [q for q in questions() if not q.optional and not q.xray][:1]:
        sizes = [*q.q.shape, q.k.shape[-2], q.v.shape[-1]]
        assert len(set(sizes)) == len(sizes)
        assert math.isqrt(sizes[1] * sizes[3]) ** 2 != sizes[1] * sizes[3]


def test_another_scale_tells_its_factor_and_the_right_one():
    (found,) = examine(lambda q, k, v: attend(q, k, v, scale=0.21)).mistakes
    assert found.key == "scale_other"
    numbers = [float(n) for n in re.findall(r"\d\.\d+", found.evidence)]
    d_k = int(re.search(r"√(\d+)", found.evidence)[1])
    assert numbers == pytest.approx([0.21, d_k**-0.5], abs=5e-4)
    assert (found.measured, found.expected) == pytest.approx((0.21, d_k**-0.5))
    told = examine(lambda q, k, v: attend(q, k, v, scale=0.21), scale=2.0).mistakes
    assert "0.21; 2 = what was asked for" in told[0].evidence


def test_a_layout_of_another_library_is_named():
    report = examine(wrong_axes.flash_layout)
    assert [m.key for m in report.mistakes] == ["heads_as_tokens"]
    assert report.mistakes[0].measured == pytest.approx(1.0)  # one token, one weight


def test_a_mask_for_items_is_read_as_one_for_heads():
    def squeezed(q, k, v, mask=None):
        s = q @ k.mT / q.size(-1) ** 0.5
        if mask is None:
            return s.softmax(-1) @ v
        mask = mask.squeeze(1) if mask.dim() == 4 else mask
        some = mask.any(-1, keepdim=True)
        return (s.masked_fill(~mask & some, -torch.inf).softmax(-1) * some) @ v

    report = examine(squeezed)
    assert [m.key for m in report.mistakes] == ["head_axis_missing"]
    # One mask for each head is no mask for each item, however it broadcasts.
    assert "M17" not in examine(sdpa).codes


def test_rope_inside_is_no_reason_to_be_left_untested():
    report = examine(wrong_axes.rope_no_scale)
    assert report.codes == ("M01",)
    assert "It does not take an odd d_k." in report.untested


PAIRS = (
    "M46+M12 function: switches, roles turned",
    "M46+M14 function: switches, roles turned",
    "M46+M45 function: switches, roles k is said",
    "M04+M12 function: switches, axis queries",
    "M05+M14 function: switches, axis heads and keys",
    "M01+M11 function: switches, scale none",
    "M18+M12 function: switches, causal strict",
    "M16+M14 function: switches, causal mask instead",
    "M15+M14 function: switches, whose padding",
    "M07+M15 function: switches, mask hide the allowed",
    "M18+M07 function: switches, causal strict",
)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_both_of_two_mistakes_are_named(name, dtype):
    pairs = [s for s in switchboard_function.SPECIMENS if s.name.startswith(name)]
    for specimen in pairs[:1]:
        thing = specimen.make(np.random.default_rng(0), dtype)
        assert set(examine(thing, **specimen.intent).codes) == specimen.codes
    assert pairs


def test_a_naive_softmax_beside_turned_weights_has_no_weak_fill():
    def turned(q, k, v, mask=None):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        s = s if mask is None else np.where(mask, s, -np.inf)
        with np.errstate(all="ignore"):
            e = np.exp(s)
            total = e.sum(-1, keepdims=True)
        return np.swapaxes(e / np.where(total == 0, 1, total), -1, -2) @ v

    assert set(examine(turned).codes) == {"M46", "M06"}


def test_sdpa_in_blocks_of_items_is_right():
    def one_by_one(q, k, v, mask=None):
        if mask is not None and mask.dim() == 4:
            mask = mask.expand(q.size(0), q.size(1), -1, -1)
            both = zip(q, k, v, mask, strict=True)
            out = [F.scaled_dot_product_attention(*a[:3], attn_mask=a[3]) for a in both]
            return torch.stack(out)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    assert "M17" not in examine(one_by_one).codes
