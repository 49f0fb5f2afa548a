"""Every command with good, bad and absent input, where nothing but the wheel is installed: `tox -e night -- bare`.

    python -m tests.bare_environment [--python python3.13] [--wheel WHEEL]

A command must end with the expected status, print the expected words, and write no traceback. An error is one line,
after the usage for a mistake in the command line. Building the kernels is left out, except for its refusals.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = """
import numpy, torchlite as torch
nn = torch.nn
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
image = torch.ones(1, 1, 4, 4)
torch.export.save(torch.export.export(net, (image,)), "net.pt2")
torch.onnx.export(net, (image,), "net.onnx", input_names=["image"], dynamo=True)
torch.jit.trace(net, image).save("net.pt")
torch.save(net.state_dict(), "weights.pt")
numpy.save("image.npy", numpy.ones((1, 1, 4, 4), "float32"))
numpy.save("wide.npy", numpy.ones((1, 1, 4, 5), "float32"))
open("cut.pt", "wb").write(open("net.pt", "rb").read()[:500])
open("text.onnx", "w").write("hello")
open("program.py", "w").write("import sys, torch\\nprint(torch.ones(2).sum().item(), sys.argv[1:])\\n")
open("fails.py", "w").write("import sys\\nsys.exit(7)\\n")
"""
# (command, status, words of its output or error)
COMMANDS: list[tuple[str, int, str]] = [
    ("", 2, "name a command"),
    ("--version", 0, "0."),
    ("--help", 0, "commands:"),
    ("nosuch", 2, "nosuch"),
    ("--nosuch", 2, "error: "),
    *((f"{name} --help", 0, "usage: ") for name in
      ("info", "demo", "run", "show", "convert", "bench", "build-kernels", "as-torch", "completion")),
    ("info", 0, "cpu"),
    ("info --json", 0, '"devices"'),
    ("info surplus", 2, "error: "),
    ("demo", 1, "pip install 'torchlite-nd[demo]'"),
    ("demo --epochs 0", 2, "--epochs"),
    ("demo --device nosuch", 2, "nosuch"),
    ("demo --device opencl", 1, "torchlite-nd[opencl]"),
    ("demo --device cuda", 1, "torchlite-nd[cuda12]"),
    ("demo --output /nonexistent/x.png", 1, "there is no folder /nonexistent"),
    ("run program.py a --b", 0, "2.0 ['a', '--b']"),
    ("run fails.py", 7, ""),
    ("run -c print(1+1)", 0, "2"),
    ("run -m platform", 0, "-"),
    ("run absent.py", 2, "No such file"),  # Python's own error
    ("run net.onnx", 0, "float32 [1, 3]"),
    ("run net.pt2", 0, "float32 [1, 3]"),
    ("run net.pt", 1, "does not say what shape"),
    ("run net.pt --shape 1x1x4x4", 0, "float32 [1, 3]"),
    ("run net.pt --shape 1x1xa", 2, "--shape 1x1xa"),
    ("run net.pt --shape 1x1x4x4:nosuch", 2, "there is no dtype 'nosuch'"),
    ("run net.onnx --input image.npy --output out.npz", 0, "out.npz"),
    ("run net.onnx --input other=image.npy", 1, "other"),
    ("run net.onnx --input wide.npy", 1, "[1, 1, 4, 5]"),
    ("run net.onnx --input absent.npy", 1, "absent.npy"),
    ("run net.onnx --input text.onnx", 1, "no .npy or .npz"),
    ("run net.onnx --time --repeat 2", 0, "conv"),
    ("run net.onnx --repeat 0", 2, "--repeat"),
    ("run net.onnx --device opencl", 1, "torchlite-nd[opencl]"),
    ("run net.onnx --output /nonexistent/x.npz", 1, "there is no folder /nonexistent"),
    ("run text.onnx", 1, "text.onnx"),
    ("run cut.pt --shape 1", 1, "cut.pt"),
    ("run weights.pt", 1, "weights.pt"),
    ("run absent.onnx", 1, "absent.onnx"),
    ("show op add", 0, "torch.add"),
    ("show op add --json", 0, '"schema"'),
    ("show op nosuch", 2, "nosuch"),
    ("show op add --device nosuch", 2, "nosuch"),
    ("show net.onnx", 0, "Conv 1"),
    ("show net.pt2 --json", 0, '"ops"'),
    ("show net.pt", 0, "--shape"),
    ("show weights.pt", 0, "0.weight"),
    ("show net.onnx --picture net.svg", 0, "net.svg"),
    ("show net.onnx --picture net.png", 2, ".svg"),
    ("show text.onnx", 1, "text.onnx"),
    ("show cut.pt", 1, "cut.pt"),
    ("show absent.onnx", 1, "absent.onnx"),
    ("convert net.onnx made.pt2", 0, "made.pt2"),
    ("convert net.pt2 made.onnx", 0, "made.onnx"),
    ("convert net.pt made.pt2", 1, "does not say what shape"),
    ("convert net.onnx made.py", 0, "made.py"),
    ("convert net.onnx made.xyz", 2, "made.xyz"),
    ("convert net.onnx /nonexistent/x.pt2", 1, "there is no folder /nonexistent"),
    ("convert weights.pt made.onnx", 1, "weights.pt"),
    ("convert net.onnx", 2, "target"),
    ("bench --list", 0, "small.add"),
    ("bench --only nosuch", 2, "nosuch"),
    ("bench --only small.add --rounds 1 --no-history", 0, "small.add"),
    ("bench --only small.add --rounds 0", 2, "--rounds"),
    ("bench files --list", 0, "silero"),
    ("bench files --only nosuch", 2, "nosuch"),
    ("bench --reference-python /nonexistent/python --only small.add", 2, "/nonexistent/python"),
    ("build-kernels --level nosuch", 2, "nosuch"),
    ("build-kernels", 1, "compiler"),
    ("as-torch", 2, "--install"),
    ("completion bash", 0, "complete"),
    ("completion zsh", 0, "compdef"),
    ("completion fish", 0, "complete"),
    ("completion nosuch", 2, "nosuch"),
]  # fmt: skip


def make_environment(python: str, wheel: str | None, folder: Path) -> str:
    """Install the wheel alone into an environment of `python`; return the environment's interpreter."""
    if wheel is None:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, check=True, cwd=ROOT)
        wheel = str(next(folder.glob("*.whl")))
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    found = str(folder / "venv" / "bin" / "python")
    subprocess.run([found, "-m", "pip", "install", "--quiet", wheel], check=True)
    return found


def why_wrong(done: subprocess.CompletedProcess[str], command: str, status: int, words: str) -> str:
    """Return what is wrong with a command's end, or "" """
    if "Traceback" in done.stderr:
        return "it wrote a traceback"
    if done.returncode != status:
        return f"its status is {done.returncode} instead of {status}"
    if words not in (done.stderr or done.stdout if status else done.stdout + done.stderr):
        return f"{words!r} is missing"
    if status == 0 and "--json" in command:
        json.loads(done.stdout)
    lines = [line for line in done.stderr.splitlines() if ": error: " in line]
    if status == 1 and (done.stderr.count("\n") != 1 or len(lines) != 1):
        return "the error is not one line"
    return "" if status != 2 or words == "No such file" or len(lines) == 1 else "the error is not one line"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--wheel")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = make_environment(options.python, options.wheel, folder)
        program = str(Path(python).with_name("torchlite"))
        plain = {
            k: v for k, v in os.environ.items() if not k.startswith("TORCHLITE_") and k not in ("PYTHONPATH", "CXX")
        }
        empty = folder / "empty"  # no compiler is found
        empty.mkdir()
        plain |= {"TORCHLITE_CACHE_DIR": str(folder / "cache"), "PATH": str(empty)}
        work = folder / "work"
        work.mkdir()
        subprocess.run([python, "-c", FILES], check=True, cwd=work, env=plain)
        wrong = 0
        for command, status, words in COMMANDS:
            done = subprocess.run(
                [program, *command.split()], capture_output=True, text=True, cwd=work, env=plain, timeout=300,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            why = why_wrong(done, command, status, words)
            if why:
                wrong += 1
                print(f"torchlite {command}: {why}\n{done.stdout[-500:]}{done.stderr[-1500:]}", flush=True)
        print(f"{len(COMMANDS)} commands, {wrong} wrong, in {options.python}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
