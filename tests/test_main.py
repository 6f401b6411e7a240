import os
import subprocess
import sys

import pytest

import attnlib
from attnlib import doctor
from attnlib.__main__ import main
from attnlib.doctor import Finding


def test_the_doctor_says_that_all_is_well(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda tests: (Finding("git", "ok", ""),))
    monkeypatch.setattr(doctor, "torch_build", lambda: "CPU")
    monkeypatch.setattr(doctor, "models", lambda: (Finding("Frog", "ok", "croaks"),))
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == (
        "ok      git\n\nreal models, optional:\nhere     Frog: croaks\n\nAll is well.\n"
    )


def test_a_machine_without_real_models_is_well(capsys, monkeypatch):
    monkeypatch.setattr(doctor.checkpoints, "here", lambda name: False)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "\nnot here Whisper tiny.en: speech to text" in out
    assert "\nTo get them, run `python course.py models` in the folder" in out
    assert out.endswith("\nAll is well.\n")


def test_the_doctor_says_what_to_do_and_fails(capsys, monkeypatch):
    findings = (Finding("git", "missing", "install it"), Finding("numpy", "ok", ""))
    monkeypatch.setattr(doctor, "examine", lambda tests: findings)
    monkeypatch.setattr(doctor, "torch_build", lambda: "CUDA")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("missing git: install it\nok      numpy\n")
    assert "torch is a CUDA build" in out
    assert out.endswith("\n1 thing is left to do.\n")


def test_versions_only_where_they_are_asked_for(capsys):
    numpy = doctor.versions()["numpy"]
    main(["doctor"])
    assert numpy not in capsys.readouterr().out
    main(["doctor", "--versions", "--tests"])
    out = capsys.readouterr().out
    assert f"numpy {numpy}" in out
    assert "nbval" in out


def test_without_a_command_it_explains_itself(capsys):
    assert main([]) == 0
    assert "doctor" in capsys.readouterr().out


def test_wrong_usage_exits_with_two(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["frog"])
    assert caught.value.code == 2
    assert "invalid choice: 'frog'" in capsys.readouterr().err


def test_python_m_attnlib():
    command = [sys.executable, "-m", "attnlib", "--version"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.strip() == attnlib.__version__, run.stderr
    assert run.returncode == 0


def test_a_pipe_that_knows_no_root_sign_is_no_error():
    command = [sys.executable, "-m", "attnlib", "mistakes", "M02"]
    narrow = os.environ | {"PYTHONIOENCODING": "cp1252"}
    run = subprocess.run(command, capture_output=True, env=narrow)
    assert run.returncode == 0, run.stderr
    assert b"M02 Divided by ?d_model, where ?d_k is meant." in run.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end in another way there")
@pytest.mark.parametrize(
    "arguments", ["mistakes", "mistakes M14", "doctor", "--help", "examine --help"]
)
def test_a_reader_that_goes_away_is_no_error(arguments):
    command = [sys.executable, "-m", "attnlib", *arguments.split()]
    reader, writer = os.pipe()
    os.close(reader)
    held = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    run = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, env=held
    )
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, "")


def test_an_interrupt_is_one_word(capsys, monkeypatch):
    def interrupted(tests):
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine", interrupted)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_an_option_of_another_command_is_said(capsys):
    with pytest.raises(SystemExit):
        main(["mistakes", "--json"])
    assert capsys.readouterr().err == (
        "attnlib: --json is no option of this command. See attnlib --help\n"
    )


@pytest.mark.parametrize("written", ["2", "m2", "M02"])
def test_a_number_of_the_catalogue_in_short(capsys, written):
    assert main(["mistakes", written]) == 0
    assert capsys.readouterr().out.startswith("M02 Divided by ")
