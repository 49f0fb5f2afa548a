"""accelerate, Lightning and transformers over ranks that are started by hand: losses of one process."""

import importlib.util
import json
import re
import sys

import pytest

from tests.distributed.rank_launcher import ROOT, finish
from tests.distributed.test_by_hand import end, free_port, start
from tests.distributed.test_ray_train import torch_is_not_torchlite

PROGRAM = str(ROOT / "tests" / "distributed" / "trainers.py")
pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(bool(torch_is_not_torchlite()), reason=torch_is_not_torchlite() or "it is"),
]


def losses(output):
    return [json.loads(found) for found in re.findall(r"^losses (.*)$", output, re.MULTILINE)]


def one_process(kind, folder):
    ended = finish([sys.executable, PROGRAM, kind, str(folder)], seconds=240)
    assert ended.returncode == 0, ended.stdout
    (found,) = losses(ended.stdout)
    return found


@pytest.mark.parametrize("kind", ["accelerate", "transformers", "lightning", "lightning_full", "lightning_sharded"])
def test_two_ranks(kind, tmp_path):
    pytest.importorskip(kind.partition("_")[0])
    words = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    started = [
        start(PROGRAM, kind, tmp_path / str(rank), RANK=str(rank), LOCAL_RANK=str(rank), NODE_RANK="0", **words)
        for rank in range(2)
    ]
    codes, outputs = end(started, seconds=240)
    assert codes == [0, 0], outputs
    expected = one_process(kind, tmp_path / "alone")
    assert len(expected) == (16 if "_" in kind else 8)
    for output in outputs:
        assert losses(output) == [pytest.approx(expected, abs=1e-5)], output


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="accelerate is missing")
def test_the_debug_launcher(tmp_path):
    ended = finish([sys.executable, PROGRAM, "debug_launcher", str(tmp_path)], seconds=240)
    assert ended.returncode == 0, ended.stdout
    found, expected = losses(ended.stdout), one_process("accelerate", tmp_path)
    assert found == [pytest.approx(expected, abs=1e-5)] * 2
