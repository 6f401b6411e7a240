"""A student as a program: logs in, pulls the course, runs a lesson, hands it in.

It speaks to a hub as a browser does: a session with cookies, and the kernel's socket.
For the rehearsal and the tests; it needs packages of the course's .venv.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
import websocket

PATIENCE = 240  # seconds for whatever a slow and busy machine does


class Unwell(Exception):
    """The hub did not do what it should; the message says what."""


class Student:
    """One of them, at one hub."""

    def __init__(self, hub: str, name: str) -> None:
        self.hub, self.name = hub, name
        self.base = f"{hub}/user/{name}"
        self.web = requests.Session()
        self.web.trust_env = False  # no proxy of the user's between us and loopback
        self.kernels: list[Kernel] = []

    def __enter__(self) -> Student:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the browser, so to speak: the server and the kernels go on."""
        for kernel in self.kernels:
            kernel.socket.close()
        self.web.close()

    # --- the hub ---------------------------------------------------------------------

    def log_in(self, password: str) -> bool:
        """Through the form of the login page. Returns whether it let us in."""
        self.web.get(f"{self.hub}/hub/login", timeout=PATIENCE)
        form = {"username": self.name, "password": password}
        form["_xsrf"] = self._token("/hub/")
        answer = self.web.post(
            f"{self.hub}/hub/login", form, timeout=PATIENCE, allow_redirects=False
        )
        return answer.status_code == 302

    def start(self) -> str:
        """Start my server and wait for its JupyterLab. Returns the page."""
        self.web.get(f"{self.hub}/hub/spawn", timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            page = self.web.get(f"{self.base}/lab", timeout=PATIENCE)
            if page.ok and urlsplit(page.url).path.startswith(f"/user/{self.name}/"):
                return page.text
            time.sleep(0.3)
        raise Unwell(f"{self.name}: no JupyterLab after {PATIENCE} s, {page.url}.")

    def pull(self, link: str) -> str:
        """Click the link of the course. Returns the address that it opens then."""
        page = self.web.get(link, timeout=PATIENCE)
        if not page.ok:
            raise Unwell(f"{self.name}: {link} gave {page.status_code}.")
        wish = {key: value[0] for key, value in parse_qs(urlsplit(link).query).items()}
        opens = wish.pop("urlpath")
        wish["_xsrf"] = self._token()
        api = f"{self.base}/git-pull/api"
        said = []
        with self.web.get(api, params=wish, timeout=PATIENCE, stream=True) as events:
            for line in events.iter_lines():
                if line.startswith(b"data:"):
                    event = json.loads(line[5:])
                    said.append(str(event.get("output") or event.get("message") or ""))
                    if event["phase"] == "finished":
                        return f"{self.base}/{opens}"
                    if event["phase"] == "error":
                        break
        raise Unwell(f"{self.name}: the pull failed: {' '.join(said)[-500:]}")

    # --- my server -------------------------------------------------------------------

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        """Ask my server's interface; the answer as JSON."""
        answer = self.web.request(
            method,
            f"{self.base}/api/{path}",
            json=content,
            headers={"X-XSRFToken": self._token()},
            timeout=PATIENCE,
        )
        if not answer.ok:
            told = answer.text[:300]
            raise Unwell(
                f"{self.name}: {method} {path} gave {answer.status_code} {told}"
            )
        return answer.json() if answer.content else None

    def notebook(self, path: str) -> dict[str, Any]:
        """What is stored of a notebook."""
        found: dict[str, Any] = self.ask("GET", f"contents/{path}")["content"]
        return found

    def save(self, path: str, notebook: dict[str, Any]) -> None:
        """Store it, as JupyterLab does."""
        stored = {"type": "notebook", "format": "json", "content": notebook}
        self.ask("PUT", f"contents/{path}", stored)

    def open(self, path: str) -> Kernel:
        """Start a kernel for a notebook."""
        wish = {"path": path, "name": path, "type": "notebook"}
        session = self.ask("POST", "sessions", wish | {"kernel": {"name": "python3"}})
        self.kernels.append(Kernel(self, session["id"], session["kernel"]["id"]))
        return self.kernels[-1]

    def run(self, path: str) -> tuple[Kernel, dict[str, Any]]:
        """Run a notebook from top to bottom and save it. Its kernel stays."""
        notebook, kernel = self.notebook(path), self.open(path)
        count = 0
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell["outputs"] = kernel.do("".join(cell["source"]))
                cell["execution_count"] = count
        self.save(path, notebook)
        return kernel, notebook

    # --- cookies ---------------------------------------------------------------------

    def _token(self, path: str = "") -> str:
        """Each part of the hub has a cookie of its own against forged requests."""
        path = path or f"/user/{self.name}/"
        for cookie in self.web.cookies:
            if cookie.name == "_xsrf" and cookie.path == path:
                return cookie.value or ""
        raise Unwell(f"{self.name}: there is no _xsrf cookie for {path}.")

    def cookies(self, path: str) -> str:
        """The cookies that a browser would send there."""
        sent = [c for c in self.web.cookies if path.startswith(c.path)]
        return "; ".join(f"{c.name}={c.value}" for c in sent)


class Kernel:
    """A kernel of a student's server, and its socket."""

    def __init__(self, student: Student, session: str, kernel: str) -> None:
        self.student, self.session = student, session
        path = f"/user/{student.name}/api/kernels/{kernel}/channels"
        self.socket = websocket.create_connection(
            f"ws{student.hub.removeprefix('http')}{path}",
            cookie=student.cookies(path),
            timeout=PATIENCE,
        )

    def do(self, code: str) -> list[dict[str, Any]]:
        """Run a cell. Returns its outputs, as a notebook stores them."""
        number = uuid.uuid4().hex
        message = {
            "header": {
                "msg_id": number,
                "msg_type": "execute_request",
                "version": "5.3",
                "username": self.student.name,
                "session": self.session,
                "date": "",
            },
            "parent_header": {},
            "metadata": {},
            "content": {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            },
            "channel": "shell",
        }
        self.socket.send(json.dumps(message))
        outputs: list[dict[str, Any]] = []
        while True:
            heard = self.socket.recv()
            if isinstance(heard, bytes):  # a buffer of a widget: nothing to store
                continue
            answer = json.loads(heard)
            if answer["parent_header"].get("msg_id") != number:
                continue
            kind, told = answer["msg_type"], answer["content"]
            if kind in ("stream", "error", "display_data", "execute_result"):
                told.pop("transient", None)
                outputs.append({"output_type": kind, **told})
            if kind == "status" and told["execution_state"] == "idle":
                return outputs

    def stop(self) -> None:
        """Shut it down, as the menu of JupyterLab does."""
        self.socket.close()
        self.student.ask("DELETE", f"sessions/{self.session}")


def text(outputs: list[dict[str, Any]]) -> str:
    """What outputs say to a reader."""
    parts = []
    for output in outputs:
        data = output.get("data", {})
        parts.append(output.get("text") or data.get("text/plain") or "")
        parts += output.get("traceback", [])
    return "".join("".join(part) for part in parts)
