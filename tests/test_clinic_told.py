"""What `examine` is told: what it is meant to be, a part, a mask of another meaning."""

from __future__ import annotations

import numpy as np
import pytest
from examined import RIGHT, WRONG, attend, causal, plain

from attnlib.clinic import examine
from attnlib.clinic.black_box.intent import OR_SLIP


def test_what_was_told_is_no_feature_that_was_found():
    missing = examine(plain, causal=True)
    assert (missing.codes, missing.features) == (("M16",), ())
    assert missing.meant == ("causal by itself",)
    assert "\nMeant to be: causal by itself.\n" in str(missing)
    assert "<p>Meant to be: causal by itself.</p>" in missing._repr_html_()
    assert examine(causal).features == ("causal by itself",)
    assert examine(causal).meant == ()
    assert examine(plain, window=np.int64(2)).meant == ("a window of 2 keys",)
    both = examine(lambda q, k, v: causal(q, k, v), softcap=5.0)
    assert both.meant == ("scores capped at 5",)
    assert "scores capped at 5" not in both.features


def test_a_part_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match=r"part must be one of 'alibi_bias', .* 'zzz'"):
        examine(plain, part="zzz")


def test_what_says_nothing_to_a_part_is_refused():
    report = examine(lambda n: [2.0**-h for h in range(n)], part="alibi_slopes")
    assert report.codes == ("M31",)
    for keywords in ({"n_heads": 4}, {"scale": 2.0}, {"alibi": True}):
        (name,) = keywords
        refused = examine(plain, part="alibi_slopes", **keywords).refused
        assert refused.startswith(f"The part alibi_slopes has no option '{name}'")


def test_who_has_no_empty_rows_is_told_how_to_say_so():
    attention, meant, _ = WRONG["an empty row is NaN"]
    (mistake,) = examine(attention, **meant).mistakes
    assert mistake.mend.endswith("say empty_rows=False: then it is not asked.")
    assert examine(attention, **meant, empty_rows=False).healthy
    (other,) = examine(WRONG["no scale"][0]).mistakes
    assert "empty_rows" not in other.mend


@pytest.mark.parametrize(
    ("attention", "code", "meaning"),
    [
        (RIGHT["mask says blocked"][0], "M07", "blocked"),
        (
            lambda q, k, v, mask=0.0: attend(q, k, v, before=lambda s: s + mask),
            "M08",
            "added",
        ),
    ],
)
def test_a_mask_of_another_meaning_is_told_the_keyword(attention, code, meaning):
    report = examine(attention)
    (mistake,) = [one for one in report.mistakes if one.code == code]
    assert mistake.mend.endswith(f'If its mask is meant so, say mask="{meaning}".')
    assert examine(attention, mask=meaning, empty_rows=False).healthy


def test_a_base_without_rope_is_said():
    said = "No RoPE was found, so that rope_base says nothing."
    assert said in examine(plain, rope_base=500.0).untested
    assert said not in examine(plain).untested


def turned_by_half_the_exponent(q, k, v):
    """RoPE with 10000 to the power -i / d, where -2 i / d is meant."""
    half = q.shape[-1] // 2
    speed = 10000.0 ** (-np.arange(half) / (2 * half))

    def turned(x, first):
        angle = np.arange(first, first + x.shape[-2])[:, None] * speed
        a, b = x[..., :half], x[..., half:]
        cos, sin = np.cos(angle), np.sin(angle)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    q, k = turned(q, k.shape[-2] - q.shape[-2]), turned(k, 0)
    scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@pytest.mark.parametrize("told", [{}, {"rope": "half"}])
def test_a_base_of_100_is_said_to_be_either(told):
    said = examine(turned_by_half_the_exponent, **told)
    assert said.healthy
    assert said.features[-1] == OR_SLIP


def test_a_base_of_100_that_was_said_is_no_question():
    said = examine(turned_by_half_the_exponent, rope="half", rope_base=100.0)
    assert said.healthy
    assert said.features == ()
