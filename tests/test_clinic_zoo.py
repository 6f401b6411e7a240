"""The clinic on its zoo, once: every mistake alone, every right one, some pairs.

One seed, float64 and float32 by turns; `benchmarks/clinic.py` takes many.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import attnlib.clinic

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import clinic
from zoo import tally
from zoo.everyone import everyone, kind_of

SEED = 0
ONE_PAIR_IN = 40
ZOO = everyone()
SINGLES = [s for s in ZOO if kind_of(s) == "singles"]
RIGHT = [s for s in ZOO if kind_of(s) == "right"]
PAIRS = [s for s in ZOO if kind_of(s) == "pairs"][::ONE_PAIR_IN]

examining = pytest.mark.skipif(
    not callable(getattr(attnlib.clinic, "examine", None)),
    reason="attnlib.clinic.examine is to come",
)
# FlexAttention says that it would be faster compiled.
quiet = pytest.mark.filterwarnings("ignore:flex_attention called without")


def parametrised(specimens):
    """Each specimen with a type, by turns; a failure names the specimen."""
    cases = [
        pytest.param(s, clinic.DTYPES[i % 2], id=f"{s.name}, {clinic.DTYPES[i % 2]}")
        for i, s in enumerate(specimens)
    ]
    return pytest.mark.parametrize(("specimen", "dtype"), cases)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@examining
@quiet
@parametrised(SINGLES)
def test_single_is_found_and_named(specimen, dtype):
    outcome = clinic.examined(specimen, SEED, dtype)
    assert outcome.found, outcome.said
    assert outcome.exact, f"{specimen.codes}, and what was said is: {outcome.said}"


@examining
@quiet
@parametrised(RIGHT)
def test_right_is_not_accused(specimen, dtype):
    outcome = clinic.examined(specimen, SEED, dtype)
    assert outcome.healthy, outcome.said


@examining
@quiet
@parametrised(PAIRS)
def test_pair_is_found(specimen, dtype):
    outcome = clinic.examined(specimen, SEED, dtype)
    assert outcome.found, outcome.said


# What runs of many seeds found, and no other did.
SEEN_ONCE = (
    ("module Qwen with QK-norm, M33: concatenated", 3),  # a key shorter than others,
    ("module Qwen with QK-norm, M26: k by pairs", 3),  # so that a norm's epsilon shows
    ("module Qwen with QK-norm, M27: only k turned", 3),
    ("module ViT with QK-norm, M38: k_norm never called", 5),
    ("right: other kind, linear, relu", 18),  # a query whose products are all 0
    ("switched module, plain: batch second and out no bias", 14),  # an examination fell
    ("M12 function: bias in baddbmm", 5),  # -20, so that added is not put in place of
)


@examining
@quiet
@pytest.mark.parametrize(("name", "seed"), SEEN_ONCE)
def test_what_one_seed_found(name, seed):
    (specimen,) = (each for each in ZOO if each.name == name)
    outcome = clinic.examined(specimen, seed, clinic.DTYPES[0])
    assert outcome.good, outcome.said


def test_names_differ_and_there_is_enough():
    names = [specimen.name for specimen in ZOO]
    assert len(set(names)) == len(names)
    assert not [name for name in names if name.endswith(")") and name[:-4] in names]
    assert len(RIGHT) >= 60


def outcome(codes="", named="", *, healthy=False, kind=None, **more):
    codes, named = tuple(codes.split()), tuple(named.split())
    more = {"unknown": "", "refused": "", "seconds": 0.5, "name": "one"} | more
    kind = kind or ("right", "singles", "pairs")[len(codes)]
    return tally.Outcome(
        kind=kind,
        codes=codes,
        named=named,
        seed=0,
        dtype="float64",
        healthy=healthy,
        **more,
    )


@pytest.mark.parametrize(
    ("case", "found", "exact", "among", "one", "good"),
    [
        (outcome("M01", "M01"), True, True, True, True, True),
        (outcome("M01", "M01 M02"), True, False, True, True, False),
        (outcome("M01", "M02"), True, False, False, False, False),
        (outcome("M01", unknown="law"), True, False, False, False, False),
        (outcome("M01", healthy=True), False, False, False, False, False),
        (outcome("M01", refused="no"), False, False, False, False, False),
        (outcome("M01 M07", "M01 M07"), True, True, True, True, True),
        (outcome("M01 M07", "M07"), True, False, False, True, True),
        (outcome("M01 M07", healthy=True), False, False, False, False, False),
        (outcome(healthy=True), False, False, False, False, True),
        (outcome(named="M01"), False, False, False, False, False),
        (outcome(refused="no"), False, False, False, False, False),
    ],
)
def test_what_counts(case, found, exact, among, one, good):
    got = case.found, case.exact, case.among, case.one, case.good
    assert got == (found, exact, among, one, good)


def test_aims():
    right, single = outcome(healthy=True), outcome("M01", "M01")
    pair, lost = outcome("M01 M07", "M07"), outcome("M01 M07", healthy=True)
    assert tally.holds([right, single] + [pair] * 49 + [lost])
    assert not tally.holds([right, single] + [pair] * 48 + [lost] * 2)
    assert not tally.holds([right, outcome("M01", "M01 M02"), pair])
    assert not tally.holds([outcome(named="M02"), single, pair])


def test_tables_and_numbers():
    seen = [
        outcome("M01", "M01", name="a"),
        outcome("M01", "M02", name="b", seconds=2.0, alone=True),
        outcome("M01 M07", "M07", name="c"),
        outcome(named="M14", name="d"),
    ]
    numbers = tally.summary(seen)
    assert numbers["singles"]["M01"] == {
        "specimens": 2,
        "of": 2,
        "found": 2,
        "exact": 1,
        "among": 1,
        "one": 1,
    }
    assert numbers["right"] == {"specimens": 1, "of": 1, "accused": 1, "refused": 0}
    assert [row["specimen"] for row in numbers["failures"]] == ["d", "b", "c"]
    assert not numbers["aims"]
    assert numbers["seconds"] == {
        "alone": {"median": 2.0, "95 %": 2.0, "largest": 2.0, "under 1 s": 0.0},
        "after others": {"median": 0.5, "95 %": 0.5, "largest": 0.5, "under 1 s": 1.0},
    }
    text = "\n".join(tally.tables(seen))
    assert "THE AIMS ARE NOT REACHED." in text
    assert "in part: c [0, float64]: M07" in text
    assert list(tally.tables([])) == ["nothing was examined."]


def test_choosing(capsys):
    assert clinic.main(["--only", "no such specimen"]) == 2
    assert "no specimen of the zoo is like that" in capsys.readouterr().err
    assert all("M02" in s.codes for s in clinic.chosen("m02", "singles"))
    assert (
        clinic.chosen("sdpa, math", "right")[0].name
        == "right: torch, SDPA, math backend"
    )
    two = clinic.chosen("right: torch, sdpa", "right")[:2]
    assert [j.dtype for j in clinic.jobs_for(two, 3, True)] == ["float64", "float32"]
    assert len(clinic.jobs_for(two, 3, False)) == 12
    pairs = [s for s in everyone() if kind_of(s) == "pairs"][:8]
    jobs = clinic.jobs_for(pairs, 4, False, turns=4)
    assert {job.name for job in jobs} == {s.name for s in pairs}
    assert len(jobs) == 16
    assert {job.seed for job in jobs} == {0, 1, 2, 3}


def test_a_stopped_benchmark_counts_whole_seeds():
    jobs = [clinic.Job("one", seed, "float64") for seed in range(3)]
    done = [replace(outcome(healthy=True), seed=seed) for seed in range(3)]
    assert clinic.whole_seeds(jobs, done) == 3
    assert clinic.whole_seeds(jobs, [done[0], done[2]]) == 1
    assert clinic.whole_seeds(jobs, []) == 0


def test_a_benchmark_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    made = []

    def one(specimen, seed, dtype, alone=False):
        made.append((specimen.name, seed, dtype))
        if len(made) == 3:
            raise KeyboardInterrupt
        return replace(
            outcome(healthy=True), name=specimen.name, seed=seed, dtype=dtype
        )

    monkeypatch.setattr(clinic, "examined", one)
    file, numbers = tmp_path / "outcomes.jsonl", tmp_path / "numbers.json"
    asked = ["--only", "right: torch, SDPA, math", "--seeds", "3", "-j", "1"]
    asked += ["--journal", str(file), "--out", str(numbers)]
    assert clinic.main(asked) == 130
    assert "stopped; 2 of 6 were examined." in capsys.readouterr().out
    with file.open("a") as cut_off:
        cut_off.write('{"name": "right: to')
    assert clinic.main(asked) == 0
    assert "2 of them stand in" in capsys.readouterr().out
    assert len(made) == 3 + 4
    assert json.loads(numbers.read_text())["right"]["of"] == 6
    assert clinic.main(asked) == 0  # nothing is left to do
    assert len(made) == 3 + 4
    assert clinic.main([*asked[:6], "--again", str(file)]) == 2
    assert "no specimen" in capsys.readouterr().err  # all were as they should be
    file.write_text(file.read_text().replace("true", "false", 1))
    assert clinic.main([*asked[:6], "--again", str(file)]) == 0
    assert len(made) == 3 + 4 + 6
    assert clinic.main(["--again", str(numbers)]) == 2
    assert "no journal" in capsys.readouterr().err
    file.write_text(file.read_text().replace('"numpy": "', '"numpy": "0.'))
    assert clinic.main(asked) == 2
    assert "another version" in capsys.readouterr().err
