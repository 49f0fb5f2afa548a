"""`python -m torchlite completion`."""

import shutil
import subprocess

import pytest

from torchlite.__main__ import main, make_parser
from torchlite._cli.completion import SHELLS, list_commands


def script(capsys, shell):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_have_every_command_and_option(capsys, shell):
    said = script(capsys, shell)
    for name, (_, words) in list_commands(make_parser()).items():
        assert name in said
        for word in words:
            assert (f"-l {word[2:]} " if shell == "fish" and word.startswith("--") else word) in said
    assert "--list" in said if shell != "fish" else "-l list" in said  # of bench
    assert "build-kernels" in said and "%(default)s" not in said and "==SUPPRESS==" not in said


def test_hidden_options_are_not_completed():
    assert list(list_commands(make_parser())["build-kernels"][1]) == ["-h", "--help", "--level"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["torchlite", "de"], ["demo"]),
        (["torchlite", "demo", "--ep"], ["--epochs"]),
        (["torchlite", "show", "o"], ["op"]),
        (["torchlite", "bench", "f"], ["files"]),
        (["torchlite", "bench", "files", "--fo"], ["--folder"]),
        (["torchlite", "completion", ""], ["bash", "fish", "zsh"]),
        (["torchlite", "convert", "mod"], ["model.onnx"]),
        (["torchlite", "nosuch", "--x"], []),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash(capsys, tmp_path, words, found):
    (tmp_path / "model.onnx").touch()
    asked = f"COMP_WORDS=({' '.join(word or repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _torchlite; "
    code = script(capsys, "bash") + asked + 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == "" and sorted(set(done.stdout.split()) - {"-h", "--help"}) == found


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_valid(capsys, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=script(capsys, shell), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
