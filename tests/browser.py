"""JupyterLab in a headless browser, for tests and for `benchmarks/latency.py`.

Lab runs on a free port of 127.0.0.1 with a token, on copies of the notebooks, with
settings of its own: nothing of the user's Lab is read or changed. The process is
stopped by its handle. Whatever would leave 127.0.0.1 is stopped and noted.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browsers import find_browser

PLOTLY = "application/vnd.plotly.v1+json"
ALL_READY = """() =>
  [...document.querySelectorAll('.jp-OutputArea .attn')].every(figure =>
    (figure.dataset.ready || !figure.matches('.attnlib-workbench, [data-attn]')) &&
    figure.closest('.jp-RenderedHTMLCommon'))"""
# Milliseconds. Playwright would look at every frame, and so let the page draw sixty of
# them a second, with no graphics card: that took more than all of Lab.
POLL = 20
# What Chromium and Lab say about themselves, not about our figures.
NOT_OURS = (
    "favicon",
    "jupyterlab-jupytext",
    "WebSocket",
    "jupyter.widget-view+json",  # Lab warns before the widget manager is there
    # Our own stopping of outside requests, which are tested apart.
    *("net::ERR_NAME_NOT_RESOLVED", "net::ERR_INTERNET_DISCONNECTED"),
)
# The browser itself finds no other host, not even one that is given by its number. A
# handler for each request would do so, too, and switch off the browser's cache.
ONLY_HERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
HERE = ("http://127.0.0.1:", "ws://127.0.0.1:", "file:", "data:", "blob:")


@dataclass
class Lab:
    """A running JupyterLab."""

    url: str
    token: str
    folder: Path

    def get(self, path: str, method: str = "GET") -> Any:
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(self.url + path, None, headers, method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"null")

    def stop_kernel(self, notebook: str) -> None:
        for session in self.get("/api/sessions"):
            if session["path"] == notebook:
                self.get(f"/api/sessions/{session['id']}", "DELETE")

    def idle(self, notebook: str) -> bool:
        return any(
            session["path"] == notebook
            and (session["kernel"] or {}).get("execution_state") == "idle"
            for session in self.get("/api/sessions")
        )


def _settings(folder: Path, theme: str) -> None:
    extension = folder / "@jupyterlab" / "apputils-extension"
    extension.mkdir(parents=True)
    news = {"fetchNews": "false", "checkForUpdates": False}
    for name, content in {"notification": news, "themes": {"theme": theme}}.items():
        path = extension / f"{name}.jupyterlab-settings"
        path.write_text(json.dumps(content))


@contextmanager
def lab(folder: Path, scratch: Path, theme: str = "JupyterLab Light") -> Iterator[Lab]:
    """Serve `folder` for the length of a `with` block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    _settings(scratch / "settings", theme)
    environment = os.environ | {
        "JUPYTERLAB_SETTINGS_DIR": str(scratch / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(scratch / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "JUPYTER_DATA_DIR": str(scratch / "data"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "IPYTHONDIR": str(scratch / "ipython"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += ["--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={token}"]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.news_url="]
    running = Lab(f"http://127.0.0.1:{port}", token, folder)
    with (scratch / "lab.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            _wait_until_served(running, process, scratch / "lab.log")
            yield running
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_served(
    running: Lab, process: subprocess.Popen[bytes], log: Path
) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            running.get("/api/status")
            return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


@dataclass
class Watched:
    """A page, with what it complained about and where it wanted to go."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser for the length of a `with` block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        flags.append(ONLY_HERE)
        browser = playwright.chromium.launch(
            executable_path=find_browser(), headless=True, args=flags
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def profile(browser: Any, **options: Any) -> Iterator[Any]:
    """What one learner's browser keeps from page to page, such as Lab's own files."""
    kept = browser.new_context(viewport={"width": 1280, "height": 1000}, **options)
    try:
        yield kept
    finally:
        kept.close()


@contextmanager
def watched(home: Any, **options: Any) -> Iterator[Watched]:
    """A fresh page of a profile, or of a browser in a profile of its own."""
    if hasattr(home, "new_context"):
        with profile(home, **options) as own, watched(own) as result:
            yield result
        return
    page = home.new_page()
    result = Watched(page)

    def note(url: str) -> None:
        if not url.startswith(HERE):
            result.outside.append(url)

    def complain(kind: str, text: str) -> None:
        if not any(words in text for words in NOT_OURS):
            result.complaints.append(f"{kind}: {text[:400]}")

    page.on("request", lambda request: note(request.url))
    page.on("websocket", lambda socket: note(socket.url))
    page.on("console", lambda m: m.type == "error" and complain("console", m.text))
    page.on("pageerror", lambda error: complain("page", str(error)))
    try:
        yield result
    finally:
        page.close()


def eventually(page: Any, what: str, js: str, arg: Any = None) -> None:
    """Wait until the script gives true; a slow machine gets a minute."""
    from playwright.sync_api import TimeoutError as Late

    try:
        page.wait_for_function(js, arg=arg, timeout=60_000, polling=POLL)
    except Late:
        raise AssertionError(f"{what}: not within a minute") from None


def open_notebook(watch: Watched, running: Lab, notebook: str) -> None:
    """Open a notebook in Lab and wait for its cells and figures."""
    page = watch.page
    page.goto(f"{running.url}/doc/tree/{notebook}?token={running.token}&reset")
    # Lab draws the cells of a long notebook little by little.
    stored = json.loads((running.folder / notebook).read_text(encoding="utf-8"))
    bundles = [
        output.get("data", {})
        for cell in stored["cells"]
        for output in cell.get("outputs", [])
    ]
    expected = {
        ".jp-Notebook .jp-Cell": len(stored["cells"]),
        ".jp-OutputArea .attn": sum(
            "attnlib-" in "".join(data.get("text/html", "")) for data in bundles
        ),
        ".jp-OutputArea .jp-RenderedPlotly": sum(PLOTLY in data for data in bundles),
    }
    for selector, count in expected.items():
        eventually(
            page,
            f"{count} {selector} of {notebook}",
            "([s, n]) => document.querySelectorAll(s).length === n",
            [selector, count],
        )


def run_all(watch: Watched, running: Lab, notebook: str, timeout: float = 180) -> None:
    """Run all cells, and wait until the kernel has done them."""
    page = watch.page
    deadline = time.monotonic() + timeout
    while not running.idle(notebook):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{notebook}: the kernel is not there")
        page.wait_for_timeout(200)
    some = (
        "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]"
        ".some(prompt => prompt.textContent.includes('*'))"
    )
    # A short lesson may be done before we look, so the page itself takes note.
    page.evaluate(
        f"""() => {{
      window.began = false;
      new MutationObserver(() => {{ window.began = window.began || {some}; }}).observe(
        document.querySelector('.jp-Notebook'),
        {{subtree: true, childList: true, characterData: true}});
    }}"""
    )
    page.keyboard.press("Escape")
    page.click("div.lm-MenuBar-itemLabel:text-is('Run')")
    page.click("li.lm-Menu-item:has-text('Run All Cells')")
    eventually(page, f"{notebook} begins to run", "() => window.began")
    # Between two cells no prompt has a star for a moment. So all of them have numbers,
    # or there has been no star for a while: then a cell has failed.
    page.wait_for_function(
        f"""() => {{
      const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];
      window.calm = {some} ? null : window.calm ?? performance.now();
      return prompts.every(prompt => /\\d/.test(prompt.textContent))
        || (window.calm !== null && performance.now() - window.calm > 5000);
    }}""",
        timeout=1000 * timeout,
        polling=10 * POLL,
    )
    # Lab shows no star while a long cell prints, and between two cells the kernel is
    # idle for a moment: it is done when it has been idle for a second.
    idle = 0
    while idle < 10:
        if time.monotonic() > deadline + timeout:
            raise RuntimeError(f"{notebook}: the kernel does not come to rest")
        idle = idle + 1 if running.idle(notebook) else 0
        page.wait_for_timeout(100)
    # Explorers are ready when their script ran; a bench, when the kernel has put
    # plain tables in the place of the widget.
    eventually(page, f"the figures of {notebook}", ALL_READY)
