"""The program `torchlite`: help, version, wrong commands, closed pipes, Ctrl-C, and exit statuses."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from torchlite import __main__ as program
from torchlite import __torchlite_version__
from torchlite._cli.command_line import CommandError, UsageError, check_output

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("info", "demo", "run", "show", "convert", "serve", "bench", "build-kernels", "as-torch", "completion")
PROGRAM = (sys.executable, "-m", "torchlite")


def called(capsys, *words):
    try:
        status = program.main(list(words))
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()


def test_the_console_script_is_the_program():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["torchlite"] == "torchlite.__main__:console" and callable(program.console)


def test_version(capsys):
    assert called(capsys, "--version") == (0, f"torchlite {__torchlite_version__} (API of PyTorch 2.13.0)\n", "")


def test_help_lists_every_command(capsys):
    status, out, err = called(capsys, "--help")
    assert (status, err) == (0, "")
    listed = [line.split()[0] for line in out.partition("  COMMAND\n")[2].splitlines() if line.startswith("    ")]
    assert [word for word in listed if word in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_its_own_usage_and_examples(command, capsys):
    status, out, err = called(capsys, command, "--help")
    assert (status, err) == (0, "")
    assert (
        out.startswith(f"usage: python -m torchlite {command} ")
        and "examples:\n" in out
        and f"torchlite {command}" in out
    )
    assert "PYTHONWARNINGS" not in out


def test_help_names_the_program_that_was_called(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/torchlite"])
    assert called(capsys, "info", "--help")[1].startswith("usage: torchlite info ")


def test_help_of_run_has_both_uses(capsys):
    out = called(capsys, "run", "--help")[1]
    for words in ("SCRIPT [ARGUMENT ...]", "-m MODULE", "-c CODE", "MODEL [--device DEVICE]", "--repeat"):
        assert words in out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "name a command: info, demo, "),
        (["dmeo"], "there is no command 'dmeo': did you mean demo?"),
        (["xyzzy"], "there is no command 'xyzzy': use info, "),
        (["--nonsense"], "COMMAND"),
        (["info", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["as-torch"], "--install --remove is required"),
        (["completion", "tcsh"], "invalid choice: 'tcsh'"),
        (["show"], "required: model"),
        (["show", "op"], "required: name"),
        (["run", "--time"], "required: model"),
        (["run", "model.onnx", "--repeat", "0"], "0 is not at least 1"),
        (["bench", "--rounds", "many"], "'many' is not a whole number"),
        (["bench", "--seconds", "soon"], "'soon' is not a number"),
        (["bench", "--device", "nosuch"], "there is no device 'nosuch': usable here "),
        (["bench", "--picture", "a.png"], "expected a name that ends in .svg"),
    ],
)
def test_wrong_arguments_are_one_line_and_status_2(words, error, capsys):
    status, out, err = called(capsys, *words)
    assert (status, out) == (2, "") and error in err
    assert err.startswith("python -m torchlite") and err.count("\n") == 1


def test_outputs_are_checked(tmp_path, monkeypatch):
    check_output("--output", str(tmp_path / "A.PNG"), (".png",))
    with pytest.raises(UsageError, match=r"ends in \.a, \.b or \.c"):
        check_output("--output", "x", (".a", ".b", ".c"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(CommandError, match="no permission to write"):
        check_output("--output", str(tmp_path / "a.png"), (".png",))


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("words", [("show", "op", "add"), ("--help",), ("completion", "zsh")])
def test_a_closed_pipe_is_silent(words):
    """The status is SIGPIPE's; argparse ignores the pipe itself when it prints help."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PROGRAM, *words], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == "" and done.returncode in ((-signal.SIGPIPE, 0) if "--help" in words else (-signal.SIGPIPE,))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, "info"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.endswith("error: cannot write: [Errno 28] No space left on device\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_is_silent():
    code = (
        "import signal, sys, time\n"
        "from torchlite import __main__ as program\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "def wait(arguments=None): print('begun', flush=True); time.sleep(60)\n"
        "program.main = wait\n"
        "program.console()\n"
    )
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "begun\n"
    start = time.monotonic()
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=30) == ("", "")
    assert running.returncode == 130 and time.monotonic() - start < 20


def test_a_command_imports_its_own_modules():
    from torchlite.__main__ import _MODULES, make_parser

    def names(command):
        (subparsers,) = [one for one in make_parser(command)._actions if one.dest == "command"]
        return list(subparsers.choices)

    assert names("") == names("--help") == names("completion") == list(_MODULES)
    for command in set(_MODULES) - {"completion"}:
        assert command in names(command) and len(names(command)) < len(_MODULES)
    code = (
        "import sys; from torchlite.__main__ import make_parser; make_parser('serve')\n"
        "print(*[name for name in sys.modules if name.startswith('torchlite._cli.') and name.count('.') == 2])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["torchlite._cli.command_line", "torchlite._cli.models"]
