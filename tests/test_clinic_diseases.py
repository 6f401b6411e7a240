"""The catalogue M01 to M47: complete, true where it is run, and how it is printed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from attnlib.__main__ import main
from attnlib.clinic.catalogue import catalogue
from attnlib.clinic.diseases import all_diseases, get, seen
from attnlib.clinic.diseases.disease import Shown
from attnlib.commands.mistakes import WIDTH, number, page, table

CODES = [f"M{i:02}" for i in range(1, 48)]
# Behaviours that need a module of PyTorch's own to show: no version of them is ours.
ONLY_IN_TORCH = {"M43"}


def rows(code: str) -> dict[str, tuple[object, object]]:
    return {what: (right, wrong) for what, right, wrong in get(code).run().rows}


# The entries.


def test_every_number_has_an_entry():
    assert list(all_diseases()) == CODES


@pytest.mark.parametrize("code", CODES)
def test_an_entry_is_complete_and_says_each_thing_once(code):
    disease = get(code)
    texts = [disease.symptom, disease.probe, disease.explanation, *disease.hints]
    assert not disease.name.endswith(".")
    assert all(text[-1] in ".?" for text in texts)
    assert len(set(texts)) == 6
    assert all(len(hint) < 100 for hint in disease.hints)
    measured = re.search(r"\d\.\d", " ".join(texts[:3]))
    assert not measured, "a number belongs into the run"


@pytest.mark.parametrize("code", [c for c in CODES if get(c).is_behaviour])
def test_every_behaviour_can_be_run_in_a_wrong_version(code):
    if code not in ONLY_IN_TORCH:
        assert get(code).variants


def test_every_number_in_the_catalogue_has_an_entry():
    assert {m.code for m in catalogue().values()} - {""} <= set(CODES)


def test_reports_are_whole_names_and_stand_once():
    for code, reports in seen.SEEN.items():
        assert code in CODES
        assert len(set(reports)) == len(reports)
        for report in reports:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", report), report
    assert sum(map(len, seen.SEEN.values())) > 200


# The runs. What a text says is asked of the numbers.


@pytest.mark.parametrize("code", CODES)
def test_every_run_shows_a_difference(code):
    shown = get(code).run()
    assert shown.setting.endswith(".")
    different = [
        what
        for what, right, wrong in shown.rows
        if str(right) != "" and not _equal(right, wrong)
    ]
    assert different


def _equal(right: object, wrong: object) -> bool:
    if isinstance(right, str) or isinstance(wrong, str):
        return type(right) is type(wrong) and right == wrong
    a, b = np.asarray(right, float), np.asarray(wrong, float)
    return a.shape == b.shape and np.allclose(a, b, atol=1e-6, equal_nan=True)


SLOPE = "slope of log-weights against q·k / √d_k"


@pytest.mark.parametrize(
    ("code", "what", "right", "wrong"),
    [
        ("M01", SLOPE, 1, 4),
        ("M02", SLOPE, 1, 6**-0.5),
        ("M03", SLOPE, 1, 1 / 4),
        ("M04", "sum of each row", [1, 1, 1], None),
        ("M04", "sum of each column", None, [1] * 5),
        ("M05", "head by head", [1, 1, 1], None),
        ("M05", "in all heads", 3, 1),
        ("M06", "softmax of 1002, 1001, 1000", None, [np.nan] * 3),
        ("M08", "log of allowed / hidden weight", np.inf, 1),
        ("M09", "weights", np.tri(4) / [[1], [2], [3], [4]], np.full((4, 4), 0.25)),
        ("M10", "sum of each row", [1, 1, 1, 1], None),
        ("M11", "as it is", 0, 0),
        ("M11", "all scores lowered by 20000", 0, 1),
        ("M15", "how far real tokens move", 0, None),
        ("M17", "head by head", [0, 0, 0], None),
        ("M19", "mask", None, [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]),
        ("M23", "how far item 1 moves", 0, None),
        ("M24", "how far the output is from v", 0, None),
        ("M25", "how far it is from the sentence alone", 0, None),
        ("M28", "positions of the real tokens", [0, 1, 2], [2, 3, 4]),
        ("M29", "rows that positions 0 to 3 read", [2, 3, 4, 5], [0, 1, 2, 3]),
        ("M32", "keys that the last query sees", 3, 4),
        ("M34", "largest difference of the two calls", 0, None),
        ("M35", "score", 5984, np.inf),
        ("M37", "cap 1", 0, None),
        ("M37", "cap 50", 0, 0),
        ("M40", "norm that the clipping reports", 0.5, 32768),
        ("M40", "norm that reaches the weights", 0.5, 2.0**-16),
        ("M43", "NaN in the output, of 48 numbers", 0, 24),
        ("M44", "loss, student = teacher", 0, None),
    ],
)
def test_the_numbers_of_the_fingerprints(code, what, right, wrong):
    mine = rows(code)[what]
    for value, expected in zip(mine, (right, wrong), strict=True):
        if expected is not None:
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)


def test_a_softmax_over_queries_sums_columns_and_not_rows():
    assert not np.allclose(rows("M04")["sum of each row"][1], 1, atol=0.1)


def test_rope_agrees_at_distance_0_and_again_after_the_permutation():
    right, wrong = rows("M26")["scores"]
    assert np.isclose(right[0], wrong[0])
    assert not np.isclose(right[1:], wrong[1:]).any()
    assert np.allclose(*rows("M26")["after the permutation"])


def test_a_token_alone_has_the_scores_of_the_full_pass():
    found = rows("M27")
    full, alone = found["its scores in the full pass"], found["its scores alone"]
    assert np.allclose(full[0], alone[0])
    assert not np.allclose(full[1], alone[1])


def test_rows_a_fixed_distance_apart_have_a_fixed_product():
    right, wrong = rows("M30")["rows 0 and 2, 3 and 5, 6 and 8"]
    assert np.ptp(right) < 1e-9
    assert np.ptp(wrong) > 0.1


def test_rescaling_matters_where_scores_rise():
    found = rows("M36")
    assert not np.allclose(*found["scores rising"])
    assert np.allclose(*found["scores falling"])
    assert np.isnan(found["first block hidden"][1]).all()


def test_two_softmaxes_leave_no_small_weight():
    found = rows("M47")
    bound = found["1 / (e n_k)"][1]
    assert found["smallest weight"][0] < bound <= found["smallest weight"][1]
    assert np.allclose(*found["the same, times W_o"])


def test_a_norm_makes_the_weights_deaf_to_a_factor():
    found = rows("M38")
    assert np.isclose(found["as it is"][0], found["W_q times 10"][0])
    assert found["W_q times 10"][1] < found["as it is"][1] / 2


def test_the_spread_of_a_fused_table_is_too_small_by_the_root_of_2():
    found = rows("M39")
    np.testing.assert_allclose(found["std of W_q"], found["by its formula"], rtol=0.02)
    assert np.isclose(np.divide(*found["by its formula"]), 2**0.5)


def test_runs_with_torch_leave_its_random_numbers_alone():
    import torch

    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fast = torch.backends.mha.get_fastpath_enabled()
    for code in ("M13", "M23", "M24", "M34", "M39", "M40", "M41", "M42", "M43"):
        get(code).run()
    assert torch.equal(torch.rand(2), expected)
    assert torch.backends.mha.get_fastpath_enabled() == fast


# How they are printed.


def test_the_list(capsys):
    assert main(["mistakes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:3] for line in lines[:47]] == CODES
    assert lines[1] == "M02  Divided by √d_model, where √d_k is meant"
    assert lines[-1] == "attnlib mistakes M02 shows one of them, and runs it."


@pytest.mark.parametrize("code", CODES)
def test_every_entry_is_printed_in_short_lines_with_its_reports(code):
    text = page(get(code))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.startswith(f"{code} {get(code).name[:40]}")
    for part in (
        "What you notice: ",
        "What is asked: ",
        "Why: ",
        "3. ",
        "Run just now.",
    ):
        assert part in text
    assert all(report in text for report in get(code).reports)
    assert "not run" not in text


def test_one_entry(capsys):
    assert main(["mistakes", "m01"]) == 0
    out = capsys.readouterr().out
    assert (
        "Run just now. A function with n_q = 3, n_k = 5, d_k = 16.\n"
        "  slope of log-weights against q·k / √d_k\n"
        "    right    wrong\n"
        "    1        4\n"
    ) in out
    assert "- The scores are not scaled\n" in out
    assert "Seen in public: delzac/cntkx#10, SKaiNET-developers/SKaiNET#880\n" in out


def test_an_unknown_number(capsys):
    assert main(["mistakes", "M99"]) == 2
    assert capsys.readouterr().err == "There is no mistake M99: M01 to M47.\n"


def test_without_torch_it_says_so(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    assert "\nIt was not run: there is no module torch here.\n" in page(get("M40"))


def test_tables_stand_side_by_side_or_below_each_other():
    eye = np.eye(2)
    small = Shown("S.", (("what", eye, -eye), ("text", "yes", "no")))
    assert list(table(small)) == [
        "  what",
        "    right    wrong",
        "    1  0     -1   0",
        "    0  1      0  -1",
        "  text",
        "    right    wrong",
        "    yes      no",
    ]
    wide = Shown("S.", (("what", np.zeros(20), np.ones(20)),))
    assert [line.strip()[:5] for line in table(wide)] == [
        "what",
        "right",
        "0  0 ",
        "wrong",
        "1  1 ",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1 / 3, "0.333"),
        (0.0625, "0.0625"),
        (1e-17, "0"),
        (-0.0, "0"),
        (float("nan"), "NaN"),
        (float("inf"), "inf"),
        (2.0**-16, "1.53e-05"),
        (65504.0, "65504"),
        (1e9, "1.0e+09"),
        (True, "True"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_only_empty_rows_can_be_left_out_of_an_examination():
    told = {d.code for d in all_diseases().values() if "empty_rows=False" in d.probe}
    assert told == {"M14"}
