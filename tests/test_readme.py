"""Pages for readers: commands that exist, links that lead somewhere, one address."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tools import address, commands

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "notebooks/source").glob("*.md"))
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
FENCE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and JupyterLab make them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.replace(" ", "-"))
    return found | set(re.findall(r'(?:id|name)="([^"]+)"', text))


def dead_links(page: Path, text: str) -> list[str]:
    """The relative links of a page that lead nowhere."""
    # A lesson is read as notebooks/NN.ipynb, so its links start there.
    base = page.parent.parent if page.parent.name == "source" else page.parent
    dead = []
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = unquote(link).partition("#")
        target = (base / place).resolve() if place else page
        if target.suffix == ".ipynb":
            source = target.parent / "source" / f"{target.stem}.md"
            target = source if source.exists() else target
        known = target.exists()
        if known and anchor and target.suffix == ".md":
            known = anchor in anchors(target.read_text(encoding="utf-8"))
        if not known:
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "link", ["nowhere.md", "GLOSSARY.md#nothing", "#nothing", "notebooks/99_none.ipynb"]
)
def test_a_dead_link_is_seen(link: str) -> None:
    text = f"[one](GLOSSARY.md#mask), [two]({link})"
    assert dead_links(ROOT / "README.md", text) == [link]


def test_a_lessons_links_start_in_notebooks() -> None:
    lesson = ROOT / "notebooks/source/01_any.md"
    assert dead_links(lesson, "[mask](../GLOSSARY.md#mask)") == []
    assert dead_links(lesson, "[mask](../../GLOSSARY.md#mask)") != []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_commands_of_the_pages_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    used = set(re.findall(r"course\.py\s+([a-z]\w*)", text))
    assert {"lab", "test"} <= used <= commands.COMMANDS.keys()


def test_every_command_is_explained() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"python course.py {name} " in text for name in commands.COMMANDS)


def test_ci_tests_as_the_readme_says() -> None:
    tests = re.search(r"Run every test:\n\n```\n(.+)\n```", README)
    assert tests
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == tests[1]


def test_the_sentences_under_troubleshooting_are_said() -> None:
    said = [
        (ROOT / "tools" / name).read_text(encoding="utf-8")
        for name in ("commands.py", "environment.py")
    ] + [(ROOT / "course.py").read_text(encoding="utf-8")]
    text = re.sub(r'"\s*(\+\s*)?f?"', "", "".join(said))
    text = re.sub(r"\{port\}", "8888", text)
    table = README.partition("## When something")[2].partition("\n\n`attnlib")[0]
    for sentence in re.findall(r"^\| `([^`]+)`", table, re.MULTILINE):
        if not sentence.startswith("Running as root"):  # JupyterLab says that
            assert sentence in text, f"course.py does not say {sentence!r}"


def test_every_lesson_stands_in_the_readme() -> None:
    for source in (ROOT / "notebooks/source").glob("[0-9][0-9]_*.md"):
        assert f"(notebooks/{source.stem}.ipynb)" in README


def test_contributing_is_short_and_begins_with_what_to_edit() -> None:
    lines = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    assert "notebooks/source/*.md" in lines[0]
    assert "attnlib/" in lines[0]


# --- the one address -----------------------------------------------------------------


def test_every_page_has_the_address_of_pyproject() -> None:
    assert address.stale(ROOT, address.address()) == {}, "run tools/address.py"


def test_another_address_reaches_every_link() -> None:
    url = "https://github.com/someone/attention"
    changed = address.stale(ROOT, url)
    assert {path.name for path in changed} == set(address.FILES)
    for text in changed.values():
        assert address.address() not in text
        assert address.address().rpartition("//")[2].partition("/")[2] not in text
    readme = changed[ROOT / "README.md"]
    assert "mybinder.org/v2/gh/someone/attention/HEAD?urlpath=lab/tree/" in readme
    assert f"git clone {url}\ncd attention\n" in readme


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://github.com/a/b", "gh/a/b/HEAD"),
        ("https://gitlab.com/a/b", "gl/a%2Fb/HEAD"),
        ("https://git.example.org/a/b.git", "git/https%3A%2F%2Fgit.example.org%2Fa%2F"),
    ],
)
def test_binder_names_each_host_in_its_way(url: str, source: str) -> None:
    assert f"/v2/{source}" in address.binder(url)


def test_no_page_links_to_the_repository_by_hand() -> None:
    for page in PAGES:
        text = address.BLOCK.sub("", page.read_text(encoding="utf-8"))
        assert address.address() not in text, f"{name(page)}: use an address block"


def test_an_unknown_block_is_refused() -> None:
    text = "<!-- address: nothing -->\n<!-- /address -->"
    with pytest.raises(ValueError, match="nothing --> is not one of binder, clone"):
        address.rewrite(text, address.address())


# --- the glossary --------------------------------------------------------------------


def test_every_term_has_its_chinese_name_and_a_sentence() -> None:
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    entries = re.findall(r"^### (.+)\n\n(.+)", text, re.MULTILINE)
    assert len(entries) == text.count("\n### ") >= 45
    for term, entry in entries:
        assert re.match(r"\*\*.*[\u4e00-\u9fff].*\.\*\* \S.+\.$", entry), term
        assert term == term.lower(), f"{term}: JupyterLab's anchors keep capitals"
