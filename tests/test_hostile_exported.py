"""Damaged and hostile `.pt2` files: a sample of `python -m tests.hostile.exported`."""

import io
import json
import subprocess
import sys

import pytest

import torchlite as torch
from tests.hostile import exported


def test_a_sample_of_damaged_programs():
    """In a process of its own, which tells what is executed, written, and how much memory is taken."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.exported", "--last", "300"], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == "300 files, 0 wrong", done.stderr[-2000:]
    assert [line for line in lines if line.startswith("wrong")] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda j: j["schema_version"].update(major=9), "schema is of version 9"),
        (lambda j: j["graph_module"]["graph"]["nodes"][0].update(target="os.system"), "the op 'os.system' is unknown"),
        (
            lambda j: j["graph_module"]["graph"]["nodes"][0].update(target="torch.ops.aten.add.__class__"),
            "node 0 .*is unknown to torchlite",
        ),
        (lambda j: j["graph_module"]["graph"]["nodes"][0]["outputs"][0]["as_tensor"].update(name="a b"), "cannot be"),
        (lambda j: j["graph_module"]["signature"]["input_specs"].pop(), "its inputs are not those of the signature"),
        (
            lambda j: j["graph_module"]["module_call_graph"][0]["signature"].update(forward_arg_names=["x=exit()"]),
            "cannot be the name of a value",
        ),
    ],
)
def test_what_is_wrong_is_named(change, said):
    records = exported._records(exported.sample(False))
    name = next(n for n in records if n.endswith("models/model.json"))
    loaded = json.loads(records[name])
    change(loaded)
    records[name] = json.dumps(loaded).encode()
    with pytest.raises(RuntimeError, match=said):
        torch.export.load(io.BytesIO(exported._packed(records)))
