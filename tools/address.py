"""Write the public address of the course into every file that links to it.

    python tools/address.py           rewrite the links
    python tools/address.py --check   say which files would change

The address stands once, as `Repository` under [project.urls] in pyproject.toml. In the
files below, each link made from it stands between two comment lines, and this tool
writes what is between them:

    <!-- address: binder -->
    <!-- /address -->
"""

import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "TEACHING.md")
START = "notebooks/00_start_here.ipynb"
BLOCK = re.compile(
    r"(?P<open>^<!-- address: (?P<name>\w+) -->\n).*?(?P<close>^<!-- /address -->$)",
    re.MULTILINE | re.DOTALL,
)


def address() -> str:
    """The one address, from pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]["urls"]["Repository"].rstrip("/")


def binder(url: str) -> str:
    """The launch badge; Binder names each host in its own way."""
    parts = urlsplit(url)
    path = parts.path.strip("/")
    if parts.netloc == "github.com":
        source = f"gh/{path}"
    elif parts.netloc == "gitlab.com":
        source = f"gl/{quote(path, safe='')}"
    else:
        source = f"git/{quote(url, safe='')}"
    launch = f"https://mybinder.org/v2/{source}/HEAD?urlpath=lab/tree/{START}"
    return f"[![Open in Binder](https://mybinder.org/badge_logo.svg)]({launch})"


def clone(url: str) -> str:
    """The lines that fetch the course."""
    folder = url.rsplit("/", 1)[-1].removesuffix(".git")
    return f"```\ngit clone {url}\ncd {folder}\n```"


def pull_link(hub: str, repo: str, folder: str = "", start: str = START) -> str:
    """What brings a repository into an account of a JupyterHub and opens a lesson.

    A folder is what the repository is called there, if not as in its address.
    """
    name = folder or repo.rsplit("/", 1)[-1].removesuffix(".git")
    opens = quote(f"lab/tree/{name}/{start}", safe="")
    pull = f"repo={quote(repo, safe='')}&branch=main&urlpath={opens}"
    target = f"&targetpath={quote(folder, safe='')}" if folder else ""
    return f"{hub}/hub/user-redirect/git-pull?{pull}{target}"


def classroom(url: str) -> str:
    """The nbgitpuller link, which fetches the course into a JupyterHub account."""
    return f"```\n{pull_link('https://YOUR-HUB', url)}\n```"


def issues(url: str) -> str:
    """Where to report."""
    return f"[Report a mistake or a problem]({url}/issues)."


def history(url: str) -> str:
    """The history behind the changelog."""
    return f"Every change: [{url}/commits/main]({url}/commits/main)."


WRITERS = {
    writer.__name__: writer for writer in (binder, clone, classroom, issues, history)
}


def rewrite(text: str, url: str) -> str:
    """The text with every block between address comments written anew."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in WRITERS:
            raise ValueError(
                f"<!-- address: {name} --> is not one of {', '.join(WRITERS)}."
            )
        return f"{match['open']}{WRITERS[name](url)}\n{match['close']}"

    return BLOCK.sub(block, text)


def stale(root: Path, url: str) -> dict[Path, str]:
    """Each file that does not have this address -> what it should hold."""
    texts = {root / name: (root / name).read_text(encoding="utf-8") for name in FILES}
    fresh = {path: rewrite(text, url) for path, text in texts.items()}
    return {path: text for path, text in fresh.items() if text != texts[path]}


def main(arguments: list[str]) -> int:
    """Rewrite the files, or only name those that would change."""
    files = stale(ROOT, address())
    for path, text in files.items():
        if arguments == ["--check"]:
            print(f"{path.name} has another address: run `python tools/address.py`.")
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"{path.name}: written.")
    return int(arguments == ["--check"] and bool(files))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
