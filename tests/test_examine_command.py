"""`attnlib examine`: what it loads, what it asks, what it prints, how it ends."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnlib.__main__ import main
from attnlib.clinic.report import Finding, Report, Unknown
from attnlib.commands.load import LoadError, load

SICK = Finding("M01", "scale_missing", "Not scaled", "So.", "4, not 1.", 4.0, 1.0)
MODEL = """\
import types
import numpy as np
from torch import nn

print("hello from the model")

def attention(q, k, v, mask=None):
    return v

inner = types.SimpleNamespace(deep=attention)

class Plain:
    def __init__(self, width):
        self.width = width

class Two(nn.Module):
    def __init__(self, dim, heads=8, dim_head=64, dropout=0.1):
        super().__init__()
        self.sizes = (dim, heads, dim_head, dropout)

class Configured(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.sizes = (config.n_embd, config.n_head, config.block_size, config.bias)

class Ready(nn.Module):
    def __init__(self, d_model=48):
        super().__init__()
        self.d_model = d_model

class Shared(nn.Module):
    def __init__(self, d_model, /, num_heads, num_kv_heads, head_dim, *more, **names):
        super().__init__()
        self.sizes = (d_model, num_heads, num_kv_heads, head_dim)

class Broken(nn.Module):
    def __init__(self, d_model):
        raise RuntimeError("no room")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a user's own, with a model in it; what it imports is forgotten."""
    (tmp_path / "a_users_model.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def examined(monkeypatch):
    """A stand-in for `examine` that gives a report and notes what it was asked."""
    asked: list[dict[str, object]] = []

    def answer(report: Report) -> list[dict[str, object]]:
        def examine(attention: object, **intent: object) -> Report:
            print("said while it was examined")
            asked.append({"attention": attention, **intent})
            return report

        module = importlib.import_module("attnlib.clinic.examine")
        monkeypatch.setattr(module, "examine", examine)
        return asked

    return answer


# How it ends.


@pytest.mark.parametrize(
    ("report", "status"),
    [
        (Report("f"), 0),
        (Report("f", cautions=(SICK,)), 0),
        (Report("f", (SICK,)), 1),
        (Report("f", unknown=Unknown("law", "broken")), 1),
        (Report("f", refused="It is a number."), 2),
    ],
)
def test_the_exit_status_says_how_it_ended(folder, examined, capsys, report, status):
    examined(report)
    assert main(["examine", "a_users_model.py:attention"]) == status
    out, err = capsys.readouterr()
    assert out == f"{report}\n"
    assert err == "hello from the model\nsaid while it was examined\n"


def test_wrong_usage_ends_with_two(capsys):
    for arguments in (["examine"], ["examine", "m:f", "--mask", "upside-down"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (
        "attnlib examine: the following arguments are required: WHAT. See attnlib "
        "examine --help"
    )
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--d-model abc", "--d-model: 'abc' is no whole number; write one, such as 8."),
        ("--n-heads 2.5", "--n-heads: '2.5' is no whole number; write one, such as 8."),
        ("--n-kv-heads 0", "--n-kv-heads: 0 is no size; write 1 or more."),
        ("--window -3", "--window: -3 is no size; write 1 or more."),
        ("--scale 0,5", "--scale: '0,5' is no number; write one, such as 0.5."),
        ("--scale -1", "--scale: -1 is not above 0."),
        ("--softcap nan", "--softcap: 'nan' is no number; write one, such as 0.5."),
        ("--rope-base inf", "--rope-base: 'inf' is no number; write one, such as 0.5."),
        ("--seconds 0", "--seconds: 0 is not above 0."),
        ("--seed -1", "--seed: '-1' is no whole number from 0 on; write one, such as"),
        ("--seed", "--seed: expected one argument."),
        ("--dtype fp16", "--dtype: invalid choice: 'fp16' (choose from "),
        ("--d-modle 3", "--d-modle 3 is not known; is --d-model meant? See attnlib"),
        ("extra", "extra is not known."),
    ],
)
def test_an_option_that_cannot_be_is_one_sentence(folder, capsys, option, said):
    with pytest.raises(SystemExit) as caught:
        main(["examine", "a_users_model.py:attention", *option.split()])
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert (
        err.removeprefix("attnlib examine: ").removeprefix("attnlib: ").startswith(said)
    ), err
    assert "_size" not in err


def test_words_may_be_written_with_a_dash_or_without(folder, examined):
    asked = examined(Report("f"))
    what = ["examine", "a_users_model.py:attention"]
    main([*what, "--mask", "may look", "--part", "alibi-slopes"])
    assert asked[0]["mask"] == "may look"
    assert asked[0]["part"] == "alibi_slopes"


def test_a_part_that_does_not_exist_is_said(folder, capsys):
    what = ["examine", "a_users_model.py:attention", "--part", "zzz"]
    assert main(what) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("part must be one of 'alibi_bias', ")


def test_a_value_that_the_clinic_does_not_know_is_one_sentence(
    folder, capsys, monkeypatch
):
    module = importlib.import_module("attnlib.clinic.examine")

    def examine(attention, **intent):
        raise ValueError("window must be odd.")

    monkeypatch.setattr(module, "examine", examine)
    assert main(["examine", "a_users_model.py:attention", "--window", "4"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "window must be odd."


def test_a_fault_of_the_clinic_is_no_verdict(folder, monkeypatch, capsys):
    def examine(attention, **intent):
        raise IndexError("no such row")

    module = importlib.import_module("attnlib.clinic.examine")
    monkeypatch.setattr(module, "examine", examine)
    assert main(["examine", "a_users_model.py:attention"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("The clinic itself failed: IndexError: no such row (line ")


# What it asks.


def test_only_what_was_said_is_handed_on(folder, examined):
    asked = examined(Report("f"))
    main(["examine", "a_users_model.py:attention"])
    assert set(asked[0]) == {"attention"}


def test_every_option_is_a_keyword_of_examine(folder, examined):
    import inspect

    from attnlib.clinic.examine import examine as real

    asked = examined(Report("f"))
    command = (
        "examine a_users_model.py:attention --n-heads 6 --n-kv-heads 2 --scale 0.5 "
        "--mask may-look --causal --window 3 --softcap 20 --no-qk-norm --rope half "
        "--rope-base 500 --no-alibi --no-empty-rows --dtype float16 --part rope "
        "--seed 5 --seconds 2.5"
    )
    main(command.split())
    said = asked[0]
    said.pop("attention")
    assert said == {
        "n_heads": 6,
        "n_kv_heads": 2,
        "scale": 0.5,
        "mask": "may look",
        "causal": True,
        "window": 3,
        "softcap": 20.0,
        "qk_norm": False,
        "rope": "half",
        "rope_base": 500.0,
        "alibi": False,
        "empty_rows": False,
        "dtype": "float16",
        "part": "rope",
        "seed": 5,
        "seconds": 2.5,
    }
    assert {"attention", *said} == set(inspect.signature(real).parameters)


def test_the_heads_that_a_class_was_made_with_are_known(folder, examined):
    asked = examined(Report("f"))
    main(["examine", "a_users_model.py:Two"])
    assert asked[0]["n_heads"] == 4
    main(["examine", "a_users_model.py:Ready"])
    assert "n_heads" not in asked[1]


# What it prints and writes.

SCHEMA = {
    "subject": str,
    "healthy": bool,
    "codes": list,
    "mistakes": list,
    "cautions": list,
    "unknown": dict,
    "untested": list,
    "features": list,
    "weights": list,
    "right_weights": list,
    "refused": str,
    "meant": list,
}
FINDING = {
    "code": "M01",
    "key": "scale_missing",
    "name": "Not scaled",
    "sentence": "So.",
    "evidence": "4, not 1.",
    "measured": 4.0,
    "expected": 1.0,
    "mend": "",
    "reports": [],
}


def test_json_has_all_of_the_report_and_no_nan(folder, examined, capsys):
    report = Report(
        "f",
        (SICK,),
        (Finding("M45", "k", "n", "s", "e", float("nan"), None),),
        Unknown("law", "broken", "x = 1"),
        ("masks",),
        ("RoPE",),
        np.array([[np.nan, 1.0]]),
        np.array([[0.5, np.inf]]),
    )
    examined(report)
    assert main(["examine", "a_users_model.py:attention", "--json"]) == 1
    text = capsys.readouterr().out
    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert {name: type(value) for name, value in found.items()} == SCHEMA
    assert found["codes"] == ["M01"]
    assert found["mistakes"] == [FINDING]
    assert found["cautions"][0]["measured"] == "nan"
    assert found["cautions"][0]["expected"] is None
    law = {"law": "law", "sentence": "broken", "example": "x = 1"}
    assert found["unknown"] == law
    assert found["weights"] == [["nan", 1.0]]
    assert found["right_weights"] == [[0.5, "inf"]]


def test_json_of_a_healthy_one_has_the_same_keys(folder, examined, capsys):
    examined(Report("f"))
    main(["examine", "a_users_model.py:attention", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert list(found) == list(SCHEMA)
    assert found["weights"] is None
    assert found["unknown"] is None


def test_a_page_is_written_and_escaped(folder, examined, capsys):
    examined(Report("<script>alert(1)</script>", (SICK,)))
    command = ["examine", "a_users_model.py:attention", "--html", "report.html"]
    assert main(command) == 1
    page = Path("report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("&lt;script&gt;") == 2  # the title, the verdict
    assert "<script" not in page
    assert "not healthy" in capsys.readouterr().out


def test_a_page_that_cannot_be_written_is_said(folder, examined, capsys):
    examined(Report("f"))
    command = ["examine", "a_users_model.py:attention", "--html", "no/such.html"]
    assert main(command) == 2
    assert "such.html could not be written: " in capsys.readouterr().err


# What it loads.


def test_a_module_of_this_folder_a_file_and_a_name_inside(folder):
    for where in ("a_users_model:attention", "a_users_model.py:attention"):
        assert load(where)[0].__name__ == "attention"
    assert load("a_users_model:inner.deep")[0].__name__ == "attention"
    assert load(f"{folder / 'a_users_model.py'}:attention")[0].__name__ == "attention"
    assert load("torch.nn.functional:softmax")[0].__name__ == "softmax"


def test_a_file_may_import_its_neighbours(folder, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a_users_neighbour.py").write_text("x = 3\n", encoding="utf-8")
    (inner / "a_users_file.py").write_text(
        "from dataclasses import dataclass\nimport a_users_neighbour\n"
        "@dataclass\nclass D:\n    y: 'int' = 0\nf = lambda: a_users_neighbour.x\n",
        encoding="utf-8",
    )
    assert load("inner/a_users_file.py:f")[0]() == 3


def test_a_class_is_made_with_the_sizes_it_asks_for(folder):
    made, heads = load("a_users_model:Two")
    assert (made.sizes, heads) == ((32, 4, 64, 0.1), 4)
    made, heads = load("a_users_model:Two", d_model=24, n_heads=3)
    assert (made.sizes, heads) == ((24, 3, 64, 0.1), 3)
    assert load("a_users_model:Configured")[0].sizes == (32, 4, 64, True)
    assert load("a_users_model:Configured", n_heads=2)[1] == 2
    assert load("a_users_model:Two", n_heads=5)[0].sizes == (40, 5, 64, 0.1)
    assert load("a_users_model:Two", d_model=30)[0].sizes == (30, 3, 64, 0.1)
    assert load("a_users_model:Ready", n_heads=5)[0].d_model == 40
    assert load("a_users_model:Shared", n_kv_heads=2)[0].sizes == (32, 4, 2, 8)
    assert load("a_users_model:Ready")[0].d_model == 48
    assert load("a_users_model:Ready", d_model=8)[0].d_model == 8
    attention, heads = load("torch.nn:MultiheadAttention")
    assert (attention.embed_dim, attention.num_heads, heads) == (32, 4, 4)


def test_make_is_an_expression_in_the_names_of_the_file(folder):
    made, heads = load("a_users_model.py", make="Two(64, heads=2)", n_heads=2)
    assert (made.sizes[:2], heads) == ((64, 2), 2)
    assert load("a_users_model.py:attention", make="inner.deep")[0].__name__


SOURCES = {
    "needs.py": "import a_module_that_is_nowhere\n",
    "wrong.py": "def f(:\n",
    "zero.py": "x = 1\n\n1 / 0\n",
    "leaves.py": "raise SystemExit('bye')\n",
    "mute.py": "class E(Exception):\n    def __str__(self):\n        1 / 0\nraise E\n",
}


@pytest.mark.parametrize(
    ("where", "make", "text"),
    [
        ("nowhere.py:f", None, "There is no file nowhere.py."),
        (
            "no_such_module:f",
            None,
            "There is no module no_such_module in this folder or among the installed "
            "packages.",
        ),
        (
            "a_users_model.sub:f",
            None,
            "There is no module a_users_model.sub in this folder or among the "
            "installed packages.",
        ),
        (
            "a_users_model:atention",
            None,
            "There is no atention in a_users_model. Did you mean attention?",
        ),
        (
            "a_users_model",
            None,
            "Write module:name or file.py:name, such as model.py:Attention; found "
            "'a_users_model'.",
        ),
        (
            r"C:\model.py",
            None,
            "Write module:name or file.py:name, such as model.py:Attention; found "
            r"'C:\\model.py'.",
        ),
        (
            "needs.py:f",
            None,
            "needs.py could not be imported: ModuleNotFoundError: No module named "
            "'a_module_that_is_nowhere' (line 1 of needs.py).",
        ),
        (
            "needs:f",
            None,
            "needs could not be imported: ModuleNotFoundError: No module named "
            "'a_module_that_is_nowhere' (line 1 of needs.py).",
        ),
        (
            "wrong.py:f",
            None,
            "wrong.py could not be imported: SyntaxError: invalid syntax (wrong.py, "
            "line 1).",
        ),
        (
            "zero:f",
            None,
            "zero could not be imported: ZeroDivisionError: division by zero (line 3 "
            "of zero.py).",
        ),
        (
            "leaves.py:f",
            None,
            "leaves.py could not be imported: SystemExit: bye (line 1 of leaves.py).",
        ),
        ("mute.py:f", None, "mute.py could not be imported: E (line 4 of mute.py)."),
        (
            "a_users_model:Plain",
            None,
            "Plain asks for `width`, which cannot be guessed: write "
            '--make "Plain(...)".',
        ),
        (
            "a_users_model:Broken",
            None,
            "Broken(d_model=32) failed: RuntimeError: no room (line {line} of "
            'a_users_model.py). Say how it is made: --make "Broken(...)".',
        ),
        (
            "a_users_model",
            "Too(3)",
            "--make 'Too(3)' failed: NameError: name 'Too' is not defined.",
        ),
        (
            "a_users_model",
            "Two(",
            "--make 'Two(' failed: SyntaxError: '(' was never closed (<string>, line "
            "1).",
        ),
    ],
)
def test_what_cannot_be_loaded_is_said_in_one_sentence(folder, where, make, text):
    for name, source in SOURCES.items():
        (folder / name).write_text(source, encoding="utf-8")
    line = MODEL.split("no room")[0].count("\n") + 1
    with pytest.raises(LoadError) as caught:
        load(where, make=make)
    assert str(caught.value) == text.format(line=line)


def test_no_traceback_of_ours_from_a_process_of_its_own(folder):
    (folder / "zero.py").write_text("1 / 0\n", encoding="utf-8")
    command = [sys.executable, "-m", "attnlib", "examine", "zero.py:f"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "zero.py could not be imported: ZeroDivisionError: division by zero (line 1 "
        "of zero.py).\n"
    )


def test_a_real_examination_from_the_command_line(folder):
    (folder / "mine.py").write_text(
        "import numpy as np\n"
        "def attention(q, k, v):\n"
        "    s = q @ np.swapaxes(k, -1, -2)\n"
        "    e = np.exp(s - s.max(-1, keepdims=True))\n"
        "    return e / e.sum(-1, keepdims=True) @ v\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "attnlib", "examine", "mine.py:attention"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert run.stdout.startswith("attention is not healthy: one mistake.\n\nM01 ")
    assert run.stderr == ""


def test_a_class_with_the_sizes_given_here_shows_which_root_was_taken(folder):
    (folder / "mine.py").write_text(
        "from torch import nn\n"
        "class Heads(nn.Module):\n"
        "    def __init__(self, d_model, n_heads):\n"
        "        super().__init__()\n"
        "        self.qkv = nn.Linear(d_model, 3 * d_model)\n"
        "        self.proj = nn.Linear(d_model, d_model)\n"
        "        self.h = n_heads\n"
        "    def forward(self, x):\n"
        "        b, n, d = x.shape\n"
        "        q, k, v = (a.view(b, n, self.h, -1).transpose(1, 2)\n"
        "                   for a in self.qkv(x).chunk(3, -1))\n"
        "        w = (q @ k.transpose(-1, -2) / d**0.5).softmax(-1)\n"
        "        return self.proj((w @ v).transpose(1, 2).reshape(b, n, d))\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "attnlib", "examine", "mine.py:Heads", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert json.loads(run.stdout)["codes"] == ["M02"]
