"""The journal keeps what was graded, and goes on only where that is fair."""

from __future__ import annotations

import json
import os

import pytest
from grading_class import WRONG, grade, graded

from attnlib.grading import journal as journals
from attnlib.grading.journal import Journal, JournalError

SECRET = "correct horse battery staple"
ADA, BOB = graded("Ada", WRONG, grade("entropy", 250, 500)), graded("bob", grade())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def opened(path, secret=SECRET, version="1", asked="lesson 1", resume=True):
    return Journal(path, secret, version, asked, resume)


def kept(path, **more):
    journal = opened(path, **more)
    journal.close()
    return journal.kept


def write(path, *all_):
    journal = opened(path)
    for number, one in enumerate(all_):
        journal.add(one.student, f"hash {number}", one)
    journal.close()


def test_what_was_graded_comes_back(path):
    write(path, ADA, BOB)
    assert kept(path) == {"Ada": ("hash 0", ADA), "bob": ("hash 1", BOB)}


def test_a_submission_that_was_graded_again_counts_as_it_was_last(path):
    write(path, ADA)
    journal = opened(path)
    changed = graded("Ada", grade())
    journal.add("Ada", "other", changed)
    journal.close()
    assert kept(path) == {"Ada": ("other", changed)}


def test_each_line_is_on_the_disk_before_the_next_is_begun(path, monkeypatch):
    synced = []
    monkeypatch.setattr(
        journals.os, "fsync", lambda file: synced.append(os.fstat(file).st_size)
    )
    write(path, ADA, BOB)
    assert len(synced) == 3
    assert synced[-1] == path.stat().st_size


def test_the_seed_is_nowhere_in_it(path):
    write(path, ADA)
    assert SECRET not in path.read_text()
    (head, *_) = map(json.loads, path.read_text().splitlines())
    other = path.with_name("other.jsonl")
    write(other, ADA)
    again = json.loads(other.read_text().splitlines()[0])
    assert head["seed"] != again["seed"]  # another salt


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"secret": "another secret of mine"}, "another seed"),
        ({"version": "2"}, "another version"),
        ({"asked": "lesson 2"}, "another choice of exercises"),
    ],
)
def test_grades_that_would_not_be_fair_beside_each_other_are_refused(path, other, said):
    write(path, ADA)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=said) as refused:
        opened(path, **other)
    assert str(refused.value).count(". ") == 0  # one sentence
    assert path.read_bytes() == before


def test_without_resume_nothing_is_overwritten(path):
    write(path, ADA, BOB)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"2 submissions of an .* with --resume"):
        opened(path, resume=False)
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_half_a_line_of_a_run_that_was_killed_is_left_out(path, cut):
    write(path, ADA, BOB)
    os.truncate(path, path.stat().st_size - cut)
    journal = opened(path)
    assert list(journal.kept) == ["Ada"]
    journal.add("bob", "hash", BOB)
    journal.close()
    assert list(kept(path)) == ["Ada", "bob"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]\n", b"\xff\xfe\n"])
def test_a_journal_without_a_head_is_begun_anew(path, raw):
    path.write_bytes(raw)
    write(path, ADA)
    assert list(kept(path)) == ["Ada"]


def test_another_kind_of_file_is_refused(path):
    path.write_text('{"mine": 1}\n')
    with pytest.raises(JournalError, match="no journal"):
        opened(path)


def test_a_full_disk_leaves_whole_lines(path, monkeypatch):
    write(path, ADA)
    journal = opened(path)
    before = path.read_bytes()
    real = os.write

    def full(file, raw):
        if len(raw) < 20:
            raise OSError(28, "No space left on device")
        return real(file, raw[: len(raw) // 2])

    monkeypatch.setattr(journals.os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        journal.add("bob", "hash", BOB)
    monkeypatch.undo()
    journal.close()
    assert path.read_bytes() == before
    assert list(kept(path)) == ["Ada"]


def test_two_runs_do_not_write_at_once(path):
    journal = opened(path)
    with pytest.raises(JournalError, match="Another run is writing"):
        opened(path)
    journal.close()
    opened(path).close()


def test_the_version_knows_the_source_and_what_is_added():
    assert journals.version() == journals.version()
    assert journals.version() != journals.version("more")
