"""course.py: every sentence a newcomer may meet, without a network or an install.

The environment under test is a real, empty venv in a temporary folder, with a pip of
our own that does what the test tells it: what it prints and how it ends.
"""

import ast
import errno
import os
import socket
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import course
from tools import commands, environment

ROOT = Path(__file__).resolve().parent.parent
OFFLINE = (
    "WARNING: Retrying ... NewConnectionError('Failed to establish a new connection')"
    "\nERROR: No matching distribution found for torch==2.13.0+cpu"
)
# What runs before the classroom has packages of its own.
CLASSROOM = ("start", "needs", "place", "running", "follow", "family", "memory")
FAKE_PIP = """
import os, sys
from pathlib import Path

def install():
    plan = Path(os.environ["FAKE_PIP"])
    (plan.parent / "asked").open("a").write(" ".join(sys.argv[1:]) + chr(10))
    step, _, rest = plan.read_text().partition(chr(0))
    plan.write_text(rest)
    here = Path(__file__).parent
    for name in ("numpy", "jupyterlab", "attnlib"):
        (here / (name + ".py")).touch()
    if step == "broken":
        (here / "attnlib.py").write_text("import nowhere")
    elif step == "cuda":
        (here / "nvidia_cublas").mkdir()
    elif step:
        print(step)
        sys.exit(1)

if __name__ == "__main__":
    install()
"""


class Course:
    """A course in a temporary folder, and what its fake pip was asked."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.venv = root, root / ".venv"
        for name in ("pyproject.toml", "pins.txt"):
            (root / name).write_bytes((ROOT / name).read_bytes())
        for module in (environment, commands):
            monkeypatch.setattr(module, "ROOT", root)
            monkeypatch.setattr(module, "VENV", self.venv)
        self.stamp = self.venv / "course-installed"
        monkeypatch.setattr(environment, "STAMP", self.stamp)
        monkeypatch.setattr(environment, "make", self.make)
        monkeypatch.setenv("FAKE_PIP", str(root / "plan"))
        self.made = 0
        self.plan()

    def plan(self, *steps: str) -> None:
        """What the next pips print before they fail; nothing means success."""
        (self.root / "plan").write_text("\0".join(steps))

    def make(self) -> None:
        self.made += 1
        venv.create(self.venv, clear=True, symlinks=os.name != "nt")
        packages = next(self.venv.glob("[Ll]ib/**/site-packages"))
        (packages / "pip.py").write_text(FAKE_PIP)

    def asked(self) -> list[str]:
        log = self.root / "asked"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    return Course(tmp_path, monkeypatch)


# --- the door ------------------------------------------------------------------------


@pytest.mark.parametrize("version", [(2, 7), (3, 6), (3, 10), (3, 15)])
def test_a_wrong_python_gets_one_sentence(version: tuple[int, int]) -> None:
    sentence = course.python_error((*version, 0))
    assert "needs Python 3.11, 3.12, 3.13 or 3.14" in sentence
    assert "this is Python {}.{}:".format(*version) in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_the_pythons_of_the_course_are_welcome(minor: int) -> None:
    assert course.python_error((3, minor, 0)) is None


def test_the_door_can_be_parsed_by_every_old_python() -> None:
    text = (ROOT / "course.py").read_text(encoding="utf-8")
    assert text.isascii()
    assert not modern(text)


def modern(text: str) -> list[str]:
    """The kinds of syntax in a text that Python 2.7 does not know."""
    kinds = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef)
    found = [
        type(n).__name__ for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            a = node.args
            annotated = node.returns or any(arg.annotation for arg in a.args)
            found += ["def"] if annotated or a.kwonlyargs or a.posonlyargs else []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            found += ["print"] if node.keywords or len(node.args) != 1 else []
    return found


@pytest.mark.parametrize("line", ['f"{1}"', "print(1, flush=True)", "def f(a: int): 1"])
def test_the_guard_on_the_door_sees_new_syntax(line: str) -> None:
    assert modern(line)


def test_course_and_its_tools_need_the_standard_library_alone() -> None:
    for name in (
        "course.py",
        "tools/browsers.py",
        "tools/commands.py",
        "tools/environment.py",
        "tools/models.py",
        "tools/address.py",
        *(f"tools/classroom/{name}.py" for name in CLASSROOM),
        "attnlib/__init__.py",
        "attnlib/checkpoints.py",
    ):
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for module in names:
                top = module.partition(".")[0]
                ours = module == "tools" or module.startswith("tools.")
                ours = ours or module == "attnlib.checkpoints"  # itself in the list
                assert ours or top in sys.stdlib_module_names, (
                    f"{name} imports {module}, which a fresh machine does not have"
                )


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["--help"], course.__doc__ or "") == 0
    text = capsys.readouterr().out
    assert all(f"course.py {name}" in text for name in commands.COMMANDS)


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main([], "usage of course.py") == 2
    assert "usage" in capsys.readouterr().out


def test_an_unknown_command_gets_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["tset"], "") == 2
    assert capsys.readouterr().err == (
        "course.py: there is no command 'tset' (did you mean test?); the commands are "
        "lab, models, test, notebooks, check, bench, classroom.\n"
    )


# --- the environment -----------------------------------------------------------------


def test_a_fresh_install_asks_for_the_cpu_build_alone_and_first(fresh: Course) -> None:
    environment.ensure("notebooks")
    torch, rest = fresh.asked()
    assert "--no-deps" in torch
    if sys.platform == "darwin":
        assert torch.endswith(" torch==2.13.0")
    else:
        assert "--index-url https://download.pytorch.org/whl/cpu" in torch
        assert torch.endswith(" torch==2.13.0+cpu")
    assert rest.endswith("-c pins.txt -e .[notebooks]")


def test_a_finished_install_is_not_done_again(fresh: Course) -> None:
    environment.ensure("dev")
    environment.ensure("dev")
    environment.ensure("notebooks")  # dev holds what the notebooks need
    assert fresh.made == 1
    assert len(fresh.asked()) == 2


@pytest.mark.parametrize("name", ["pins.txt", "pyproject.toml"])
def test_changed_packages_are_installed(fresh: Course, name: str) -> None:
    environment.ensure("dev")
    text = (fresh.root / name).read_text(encoding="utf-8")
    changed = text.replace("numpy>=2.2", "numpy>=2.3").replace("six==", "six==9")
    (fresh.root / name).write_text(changed, encoding="utf-8")
    environment.ensure("dev")
    assert fresh.made == 1
    assert len(fresh.asked()) == 4


def test_an_install_cut_off_is_never_taken_for_finished(fresh: Course) -> None:
    environment.ensure("dev")
    pins = (fresh.root / "pins.txt").read_text(encoding="utf-8")
    (fresh.root / "pins.txt").write_text(pins + "\n", encoding="utf-8")
    fresh.plan("", OFFLINE)
    with pytest.raises(environment.CourseError):
        environment.ensure("dev")
    (fresh.root / "pins.txt").write_text(pins, encoding="utf-8")
    assert not environment.installed("dev")


def test_notebooks_alone_do_not_serve_the_tests(fresh: Course) -> None:
    environment.ensure("notebooks")
    environment.ensure("dev")
    assert fresh.made == 1
    assert fresh.asked()[-1].endswith(".[dev]")


def test_no_network_is_said_and_the_next_run_goes_on(
    fresh: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh.plan(OFFLINE)
    assert commands.main(["lab"], "") == 2
    assert capsys.readouterr().err == (
        "course.py: PyTorch could not be downloaded, because the package index did not "
        "answer: check the network (or the proxy) and run the same command again, "
        "which goes on where this one stopped.\n"
    )
    assert not fresh.stamp.exists()
    environment.ensure("notebooks")
    assert "an earlier install did not finish" in capsys.readouterr().out
    assert fresh.made == 1
    assert fresh.stamp.exists()


def test_no_disk_while_installing(fresh: Course) -> None:
    fresh.plan("", "ERROR: [Errno 28] No space left on device")
    with pytest.raises(environment.CourseError, match="not enough disk space"):
        environment.ensure("dev")


def test_no_disk_before_installing(
    fresh: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = environment.shutil.disk_usage(fresh.root)._replace(free=400_000_000)
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda path: usage)
    wanted = r"needs about 3.3 GB and 0.4 GB are free at .*; make room"
    with pytest.raises(environment.CourseError, match=wanted):
        environment.ensure("dev")
    assert not fresh.made


def test_no_disk_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(extra: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(commands, "ensure", full)
    assert commands.main(["check"], "") == 2
    assert "not enough disk space" in capsys.readouterr().err


def test_no_cpu_build_for_this_python(fresh: Course) -> None:
    fresh.plan("ERROR: No matching distribution found for torch==2.13.0+cpu")
    wanted = "PyTorch has no CPU build for Python .* use conda instead"
    with pytest.raises(environment.CourseError, match=wanted):
        environment.ensure("notebooks")


def test_a_cuda_package_is_refused(fresh: Course) -> None:
    fresh.plan("cuda")
    with pytest.raises(environment.CourseError, match=r"CUDA build .*nvidia_cublas"):
        environment.ensure("notebooks")
    assert not fresh.stamp.exists()


def test_another_failure_of_pip_names_its_error_and_keeps_the_log(
    fresh: Course,
) -> None:
    fresh.plan("", "building\nERROR: the wheel is bad")
    with pytest.raises(environment.CourseError, match=r"\(ERROR: the wheel is bad\)"):
        environment.ensure("notebooks")
    assert "building" in (fresh.venv / "install.log").read_text()


def test_a_broken_reused_environment_is_made_afresh(fresh: Course) -> None:
    environment.ensure("notebooks")
    fresh.stamp.unlink()  # as if the install had been cut off
    fresh.plan("", "ERROR: uninstall-no-record-file")
    environment.ensure("notebooks")
    assert fresh.made == 2
    assert fresh.stamp.exists()


def test_what_is_installed_must_start(fresh: Course) -> None:
    fresh.plan("", "broken")
    wanted = "does not start: ModuleNotFoundError: No module named 'nowhere'"
    with pytest.raises(environment.CourseError, match=wanted):
        environment.ensure("notebooks")
    assert not fresh.stamp.exists()


@pytest.mark.parametrize("damage", ["no python", "not a python", "no pip", "empty"])
def test_a_half_made_environment_is_made_again(fresh: Course, damage: str) -> None:
    fresh.make()
    interpreter = Path(environment.python())
    if damage == "empty":
        environment.shutil.rmtree(fresh.venv)
        fresh.venv.mkdir()
    elif damage == "no pip":
        next(fresh.venv.glob("[Ll]ib/**/pip.py")).unlink()
    else:
        interpreter.unlink()
    if damage == "not a python":
        interpreter.write_text("")
    environment.ensure("notebooks")
    assert fresh.made == 2
    assert fresh.stamp.exists()


def test_a_python_without_venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def debian(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        said = "... not created successfully because ensurepip is not available."
        return subprocess.CompletedProcess(command, 1, said, "")

    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment.subprocess, "run", debian)
    with pytest.raises(environment.CourseError, match="sudo apt install python3-venv"):
        environment.make()


def test_an_intel_mac_is_sent_to_conda(
    fresh: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment.sys, "platform", "darwin")
    monkeypatch.setattr(environment.platform, "machine", lambda: "x86_64")
    with pytest.raises(environment.CourseError, match="Intel Macs: use conda"):
        environment.ensure("notebooks")


def test_a_broken_environment_cannot_replace_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment.sys, "prefix", str(tmp_path / ".venv"))
    with pytest.raises(environment.CourseError, match="with a Python outside"):
        environment.make()


def test_the_users_own_python_does_not_reach_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in environment.LEAKS:
        monkeypatch.setenv(name, "somewhere")
    assert not environment.LEAKS & environment.variables().keys()


# --- the commands --------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], dict]]:
    """What the commands would run, with the variables they would change."""
    made: list[tuple[tuple[str, ...], dict]] = []

    def call(*command: str, **changes: str) -> int:
        made.append((command, changes))
        return 0

    monkeypatch.setattr(commands, "ensure", lambda extra: None)
    monkeypatch.setattr(commands, "call", call)
    monkeypatch.setattr(commands, "become", call)
    return made


def test_lab_opens_the_first_lesson_and_passes_options_on(
    fresh: Course, calls: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fresh.root / "tools").mkdir()
    (fresh.root / "tools/lab_overrides.json").write_text("{}")
    (fresh.root / "notebooks").mkdir()
    (fresh.root / "notebooks/00_start_here.ipynb").write_text("{}")
    fresh.venv.mkdir()
    assert commands.lab(["--no-browser", "--port", "0"]) == 0
    assert commands.lab(["--port=0"]) == 0
    trusting, first, second = (command for command, _ in calls)  # trusted only once
    assert trusting[:3] == ("-m", "jupyter", "trust")
    assert first[-3:] == ("--no-browser", "--port", "0")
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in second
    assert (fresh.venv / "share/jupyter/lab/settings/overrides.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no root")
@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_lab_starts_for_root_too(
    fresh: Course,
    calls: list,
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    allowed: bool,
) -> None:
    """In a container one is root, and there JupyterLab alone would refuse."""
    (fresh.root / "tools").mkdir()
    (fresh.root / "tools/lab_overrides.json").write_text("{}")
    fresh.venv.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert commands.lab(["--port=0"]) == 0
    assert ("--allow-root" in calls[-1][0]) is allowed


def test_the_lesson_that_lab_opens_exists() -> None:
    assert (ROOT / commands.START).exists()


def test_a_taken_port_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        commands.look_at_port(["--no-browser", f"--port={port}"])
    assert f"port {port} is taken" in capsys.readouterr().out


@pytest.mark.parametrize("port", [[], [""], ["lab"], ["70000"], ["-1"]])
def test_a_port_is_a_number(port: list[str]) -> None:
    with pytest.raises(environment.CourseError, match="--port wants a number"):
        commands.look_at_port(["--port", *port])


def test_a_port_that_is_not_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: socket.socket, address: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse, raising=False)
    with pytest.raises(environment.CourseError, match="may not open port 80:"):
        commands.look_at_port(["--port", "80"])


def test_the_tests_run_on_one_thread_in_two_workers(
    calls: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "find_browser", lambda: None)
    monkeypatch.setattr(commands.models, "fetch", set)
    assert commands.test(["-k", "masks"]) == 0
    ((command, changes),) = calls
    assert " ".join(command) == "-m pytest -n 3 --dist loadfile -k masks"
    assert changes["OMP_NUM_THREADS"] == "1"
    assert "NO BROWSER FOUND" in capsys.readouterr().out


def test_the_tests_run_without_real_models_where_they_cannot_be_had(
    calls: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> set[str]:
        raise environment.CourseError("the package index did not answer.")

    monkeypatch.setattr(commands, "find_browser", lambda: "a browser")
    monkeypatch.setattr(commands.models, "fetch", fail)
    assert commands.test([]) == 0
    assert capsys.readouterr().out == (
        "course.py: WITHOUT REAL MODELS, so what needs them is skipped: the package "
        "index did not answer.\n"
    )
    assert len(calls) == 1


def test_check_runs_all_three_tools_and_names_what_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "ensure", lambda extra: None)
    monkeypatch.setattr(commands, "call", lambda *command, **_: command[1] == "ruff")
    assert commands.check([]) == 1
    said = capsys.readouterr().out
    assert "course.py: mypy\n" in said
    assert "failed: ruff check ., ruff format --check ." in said


def test_bench_runs_every_benchmark_and_knows_their_names(
    calls: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "generic")
    assert commands.bench([]) == 0
    ran = {Path(command[0]).stem for command, _ in calls}
    assert {"imports", "check_speed", "lessons"} <= ran
    assert not {"ratios", "memory"} & ran  # they help the others measure
    assert "OPENBLAS_CORETYPE" not in environment.variables()
    with pytest.raises(environment.CourseError, match="no benchmark 'import'"):
        commands.bench(["import"])
    with pytest.raises(environment.CourseError, match="no benchmark ''"):
        commands.bench([""])
    calls.clear()
    assert commands.bench(["clinic", "--quick", "--seeds", "3"]) == 0
    assert [command[1:] for command, _ in calls] == [("--quick", "--seeds", "3")]


def test_help_of_bench_runs_nothing(
    calls: list, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.bench(["--help"]) == 0
    assert not calls
    assert "Benchmarks: " in capsys.readouterr().out


def test_ctrl_c_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(extra: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "ensure", stop)
    assert commands.main(["notebooks"], "") == 130
    assert "the same command goes on from here" in capsys.readouterr().err


def test_the_help_of_lab_needs_no_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "ensure", lambda extra: pytest.fail("installed"))
    assert commands.lab(["--help"]) == 0
    assert "--no-browser" in capsys.readouterr().out
