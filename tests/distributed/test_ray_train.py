"""Ray Train, Data and Tune with workers that Ray starts: losses of one process, runs resumed from their checkpoints."""

import importlib.metadata
import importlib.util
import json
import sys

import pytest

from tests.distributed.rank_launcher import ROOT, finish, needs_mpi

PROGRAM = str(ROOT / "tests" / "distributed" / "ray_training.py")


def torch_is_not_torchlite():
    """Why programs cannot import torchlite by the name torch, or ""."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return "" if "torchlite" in version else "the name torch is not torchlite's (tox -e ray-train)"


def why_not():
    if importlib.util.find_spec("ray") is None:
        return "ray is missing (tox -e ray-train)"
    return torch_is_not_torchlite()


pytestmark = [needs_mpi, pytest.mark.skipif(bool(why_not()), reason=why_not() or "it is there")]


def run(folder, *names, seconds):
    ended = finish([sys.executable, PROGRAM, str(folder), *names], seconds=seconds)
    assert ended.returncode == 0, ended.stdout
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"name"')]
    assert not names or [line["name"] for line in lines] == list(names)
    for line in lines:
        assert line["found"] == pytest.approx(line["expected"], abs=1e-5), line
    return lines


def test_two_workers(tmp_path):
    """What CI runs: DistributedDataParallel with a checkpoint after each step."""
    (line,) = run(tmp_path, "ddp", seconds=120)
    assert line["resumed"] == 0 and len(line["found"]) == 6


@pytest.mark.night
def test_all(tmp_path):
    lines = {line["name"]: line["resumed"] for line in run(tmp_path, seconds=900)}
    assert len(lines) == 11
    # A report that the controller had not registered is lost with the worker.
    assert lines.pop("ddp, killed") in (1, 2, 3) and lines.pop("fsdp, killed") in (1, 2) and not any(lines.values())
