"""What `examine` is told: what it is meant to be, a part, a mask of another meaning."""

from __future__ import annotations

import numpy as np
import pytest
from examined import RIGHT, WRONG, attend, causal, plain

from attnlib.clinic import examine


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
