"""Reading notebooks: every flavour that a student may hand in, and what is none."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.grading import letters, skim
from attnlib.grading import notebook as reader
from attnlib.grading.notebook import Cell, Notebook, Unreadable, read

ANSWER = "def softmax(x):\n    return x  # 分数\n"


def code(source: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {}} | more


def text(source: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def v4(*cells: Any, **more: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | more


def dumped(document: Any, encoding: str = "utf-8") -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode(encoding)


def sources(data: bytes, name: str = "a.ipynb") -> list[str]:
    return [cell.source for cell in read(data, name).cells]


def v3(*cells: Any) -> dict[str, Any]:
    return {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}]}


@pytest.mark.parametrize(
    "document",
    [
        v4(code(ANSWER)),
        v4(code(ANSWER.splitlines(keepends=True))),
        v4(code(ANSWER.split("\n"))),  # lines without their ends
        v4(code(ANSWER), nbformat=5),
        v4(code(ANSWER), nbformat="9", nbformat_minor=None),
        v4(code(ANSWER, id="same"), text("x"), code("", id="same")),
        v4({"cell_type": "code", "source": ANSWER}),
        {"cells": [code(ANSWER)]},
        {"cells": [code(ANSWER, metadata=None, outputs=None)]},
        {"cells": [code(ANSWER, metadata={"vscode": {"languageId": "python"}})]},
        {"cells": [code(ANSWER, metadata={"id": "hJ", "colab": {"base_uri": ""}})]},
        {"cells": [{"source": ANSWER, "outputs": [], "execution_count": 2}]},
        v3({"cell_type": "code", "input": ANSWER, "language": "python"}),
        v3({"cell_type": "code", "input": ANSWER.splitlines(keepends=True)}),
        {"nbformat": 1, "cells": [{"cell_type": "code", "code": ANSWER}]},
        v4(code(ANSWER), metadata={"kernelspec": {"name": "conda-env-foo-py"}}),
        v4(code(ANSWER.replace("\n", "\r\n"))),
    ],
)
def test_every_format_gives_the_same_code(document: Any) -> None:
    found = [source for source in sources(dumped(document)) if source]
    assert [source.rstrip("\n") for source in found] == [ANSWER.rstrip("\n")]


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030"],
)
def test_every_encoding_gives_the_same_code(encoding: str) -> None:
    found = read(dumped(v4(code(ANSWER)), encoding), "a.ipynb")
    assert [cell.source for cell in found.cells] == [ANSWER]
    assert bool(found.notes) == (not encoding.startswith("utf-8"))


def test_western_letters_are_not_taken_for_chinese() -> None:
    source = "# déjà vu, café\ndef softmax(x):\n    return 'é'\n"
    assert sources(dumped(v4(code(source)), "cp1252")) == [source]
    # Why that matters: GBK takes é and a backslash for one letter.
    assert b"\xe9\\n".decode("gbk") == "閈n"


def test_a_spot_in_utf8_costs_one_letter() -> None:
    data = dumped(v4(code("# 一二三四五六七八九十\nx = 1"))).replace(
        b"\x80", b"\xff", 1
    )
    assert sources(data)[0].endswith("\nx = 1")


def test_chinese_letters_with_a_backslash_in_them_spoil_nothing() -> None:
    tricky = "誠俗" * 20  # some of GBK's second bytes are \ and {
    document = v4(code(f"# {tricky}\nx = 1", outputs=[{"text": tricky}]), code("y = 2"))
    data = dumped(document, "gbk")
    assert b"\\" in tricky.encode("gbk")
    assert sources(data) == [f"# {tricky}\nx = 1", "y = 2"]


def test_cells_are_numbered_as_the_student_counts_them() -> None:
    data = dumped(v4(text("# Title"), code("a = 1"), text("b"), code("c = 3")))
    assert [cell.number for cell in read(data).cells] == [2, 4]


def test_tags_are_kept() -> None:
    tagged = code("x = ...", metadata={"tags": ["exercise", 3]})
    assert read(dumped(v4(tagged))).cells == (Cell(1, "x = ...", ("exercise",)),)


def test_cells_of_another_language_are_left_out_with_a_word() -> None:
    shell = code("pip install x", metadata={"vscode": {"languageId": "shellscript"}})
    found = read(dumped(v4(shell, code("x = 1"))))
    assert [cell.source for cell in found.cells] == ["x = 1"]
    assert found.notes == ("Cell 1 is written in shellscript; unread.",)


def test_a_function_in_a_markdown_cell_is_told() -> None:
    found = read(dumped(v4(text("def softmax(x):\n    return x"), text("# Title"))))
    assert found.notes == ("Cell 1 is a markdown cell with a function in it; unread.",)


def test_what_is_no_cell_is_left_out() -> None:
    odd = [None, 3, [], "x", {}, {"cell_type": ["code"]}, {"cell_type": "code"}]
    assert sources(dumped(v4(*odd, code(None), code({"a": 1}), code(["x", 3])))) == [
        "",
        "",
        "",
        "x",
    ]


def test_halves_of_letters_and_zeros_do_not_stay() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\\u0000\'"}]}'
    (source,) = sources(data)
    compile(source, "cell", "exec")


def test_text_after_the_end_is_told() -> None:
    data = dumped(v4(code("x = 1")))
    assert read(data + b"\n\0\0\n").notes == ()
    assert len(read(data + b'}{"x": 1}').notes) == 1


# Outputs


def test_outputs_are_cut_out_unread() -> None:
    inside = {"data": {'"outputs": [': ['] }"\\', {"outputs": ["[{"]}]}}
    source = 'print("\\"outputs\\": [", {"outputs": [1]})'
    document = v4(
        code("a = 1", outputs=[inside, "["]), code(source, outputs=[]), code("b = 2")
    )
    for data in (dumped(document), json.dumps(document).encode()):
        assert sources(data) == ["a = 1", source, "b = 2"]
        cut = json.loads(skim.without_outputs(data))
        assert [cell["outputs"] for cell in cut["cells"][:2]] == [[], []]


def test_sixty_megabytes_of_outputs_cost_little() -> None:
    line = "ein Ergebnis 结果 \\n \\u001b[0m" + "x" * 70
    outputs = [{"output_type": "stream", "text": [line] * 600_000}]
    data = dumped(v4(code(ANSWER, outputs=outputs), code("y = 2")))
    assert len(data) > 60_000_000
    tracemalloc.start()
    try:
        assert sources(data) == [ANSWER, "y = 2"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


# What is no notebook


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "The file is empty."),
        (b" \n\t ", "The file is empty."),
        (b"\0" * 100, "The file has zeros only, as after a failed copy."),
        (b"%PDF-1.7 ...", "The file is no notebook: it is a PDF."),
        (b"\n<!DOCTYPE html>", "The file is no notebook: it is a web page (HTML or "),
        (b"PK\x03\x04", "The file is no notebook: it is a zip archive (or an Office "),
        (b"{", "The file ends in the middle: it was cut off, perhaps while uploading."),
        (b'{"cells": [{"source": "x', "The file ends in the middle: it was cut off"),
        (b'{"cells": [1 2]}', "The file is damaged: it is not valid JSON (Expecting"),
        (b"[1, 2]", "The file is JSON, but no notebook: it has no cells."),
        (b'{"cells": 3}', "The file is JSON, but no notebook: it has no cells."),
        (b'{"a": 1}', "The file is JSON, but no notebook: it has no cells."),
        (b"hello", "The file is no notebook: a notebook is JSON, and begins with {."),
        (b'{"cells": ' + b"[" * 100_000, "The file has too many brackets inside "),
        (
            b'{\n<<<<<<< HEAD\n"cells": []\n=======\n>>>>>>> theirs\n}',
            "The file has the marks of a merge conflict (<<<<<<<) in it.",
        ),
        (b'{"cells": [' + b"1" * 100_000 + b"]}", ""),
    ],
)
def test_what_is_no_notebook_is_said_in_a_sentence(data: bytes, sentence: str) -> None:
    if not sentence:
        assert read(data).cells == ()
        return
    with pytest.raises(Unreadable) as raised:
        read(data, "a.ipynb")
    assert str(raised.value).startswith(sentence)
    assert str(raised.value).endswith(".")


def test_limits_have_sentences_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dumped(v4(code("x = 1"), text("y" * 200), code("z = 1")))
    for module, limit, value, words in (
        (reader, "LARGEST", 100, "more than the"),
        (skim, "MOST_TEXT", 100, "even without its outputs"),
        (reader, "MOST_CODE", 5, "characters of code"),
        (reader, "MOST_CELLS", 1, "2 cells of code"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, limit, value)
            with pytest.raises(Unreadable, match=words):
                read(data)
    assert len(read(data).cells) == 2


BITS = [b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"1", b"\xe9", b"x", b"null"]
BITS += [b'"outputs"', b'"cells"', b'"source"', b"\xff\xfe", b"\0"]


@settings(derandomize=True, deadline=None, max_examples=400)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.text(max_size=200).map(lambda s: s.encode("utf-8", "surrogatepass")),
        st.lists(
            st.sampled_from(BITS),
            max_size=30,
        ).map(b"".join),
    ),
    st.sampled_from(["a.ipynb", "a.py", ""]),
    st.sampled_from([b"", b'{"cells": [', b'{"outputs": [', b"\xef\xbb\xbf{"]),
)
def test_any_bytes_give_an_answer_or_unreadable(
    data: bytes, name: str, head: bytes
) -> None:
    try:
        found = read(head + data, name)
    except Unreadable:
        return
    assert isinstance(found, Notebook)
    for cell in found.cells:
        cell.source.encode("utf-8")


KEYS = ["cells", "worksheets", "source", "input", "code", "cell_type", "metadata"]
KEYS += ["tags", "outputs", "language", "vscode", "languageId"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(VALUES)
def test_any_json_gives_an_answer_or_unreadable(document: Any) -> None:
    for whole in (document, {"cells": document}, {"cells": [document]}):
        with contextlib.suppress(Unreadable):
            read(json.dumps(whole).encode())


@pytest.mark.parametrize(
    "data",
    [
        b'{"cells": ["' + b'\\"' * 2_000_000,  # a string that never ends
        b'{"outputs": [' + b'"\\\\' * 1_000_000,
        b'{"cells": [' + b'"outputs",' * 500_000 + b"1]}",
        b'{"outputs": [' * 300_000,
        b'{"cells": [' + b"[]," * 1_000_000 + b"1]}",
        b'{"cells": [' + b'{"cell_type": "code"},' * 200_000 + b"1]}",
        b"\xe9" * 3_000_000,
        b'{"cells": [' + b" " * 5_000_000,
        b'{"cells": [1.' + b"1" * 3_000_000 + b"]}",
    ],
    ids=range(9),
)
def test_no_bytes_make_it_slow(data: bytes) -> None:
    # Each takes about a second; a search that begins anew at every quote takes hours.
    with contextlib.suppress(Unreadable):
        read(data, "a.ipynb")


# Python files

PERCENT = """# ---
# jupyter: jupytext
# ---

# %% [markdown]
# Title

# %% tags=["exercise"]
x = 1

#%%
y = 2
"""


def test_a_python_file_has_cells_at_its_marks() -> None:
    found = read(PERCENT.encode(), "alice.py").cells
    assert found == (Cell(2, "x = 1\n\n", ("exercise",)), Cell(3, "y = 2\n"))


def test_a_python_file_without_marks_is_one_cell() -> None:
    assert sources(ANSWER.encode("gbk"), "Alice.PY") == [ANSWER]
    assert sources(b"import os\n# In[2]:\nx = 1\n", "a.py") == [
        "import os\n",
        "x = 1\n",
    ]


def test_a_notebook_that_was_renamed_to_py_is_a_notebook() -> None:
    assert sources(dumped(v4(code(ANSWER))), "a.py") == [ANSWER]


# Letters


@pytest.mark.parametrize(
    ("raw", "text_"),
    [
        ("李雷".encode("gbk"), "李雷"),
        ("Jürgen".encode("cp1252"), "Jürgen"),
        ("Zoë".encode(), "Zoë"),
        (b"plain", "plain"),
        (b"", ""),
    ],
)
def test_names_in_any_letters(raw: bytes, text_: str) -> None:
    assert letters.decode(raw)[0] == text_


def test_a_clean_name_stays_on_its_line() -> None:
    assert letters.clean(" a\nb\x1b[31m\u202e\ud800 ") == "a\ufffdb\ufffd[31m\ufffd?"
    assert letters.clean("Zoe\u0308") == "Zoë"
    assert letters.key("ZOE\u0308") == letters.key("zoë")
