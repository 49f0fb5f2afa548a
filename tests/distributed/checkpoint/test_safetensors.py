"""Checkpoints as safetensors: of one process here, of ranks in `test_wrapped.py`."""

import json
import struct

import pytest

import torchlite as torch
import torchlite.distributed.checkpoint as dcp
from torchlite.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter

STATE = {
    "a": torch.arange(6.0).view(2, 3), "b": torch.ones(3, dtype=torch.bfloat16), "c": torch.tensor(7),
    "d": torch.tensor([True, False]), "e": torch.empty(0, 4), "f": torch.arange(12.0).view(3, 4).t(),
}  # fmt: skip


def save(folder, **options):
    dcp.save(dict(STATE), storage_writer=HuggingFaceStorageWriter(str(folder), **options), no_dist=True)


def load(folder):
    found = {name: torch.full_like(value, 5) for name, value in STATE.items()}
    dcp.load(found, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
    return found


@pytest.mark.parametrize(
    "options, files",
    [
        ({}, ["model-00001-of-00001"]),
        ({"fqn_to_index_mapping": {"a": 2}}, ["model-00001-of-00002", "model-00002-of-00002"]),
        ({"save_distributed": True}, ["shard-00001-model-00001-of-00001"]),
        ({"save_distributed": True, "enable_consolidation": True}, ["model-00001-of-00001"]),
    ],
)
def test_save_then_load(tmp_path, options, files):
    save(tmp_path, **options)
    assert sorted(path.stem for path in tmp_path.glob("*.safetensors")) == files
    for name, value in load(tmp_path).items():
        assert value.dtype is STATE[name].dtype and torch.equal(value, STATE[name]), name
    index = tmp_path / "model.safetensors.index.json"
    if files[0].startswith("model"):
        found = json.loads(index.read_text())
        assert set(found["weight_map"]) == set(STATE) and found["metadata"]["total_size"] == 24 + 6 + 8 + 2 + 48
    else:
        assert not index.exists()


def test_bytes_are_those_of_the_format(tmp_path):
    save(tmp_path)
    data = (tmp_path / "model-00001-of-00001.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0 and header["__metadata__"]["format"] == "pt"
    assert header["a"]["dtype"] == "F32" and header["b"]["dtype"] == "BF16" and header["f"]["shape"] == [4, 3]
    begin, end = (8 + length + place for place in header["a"]["data_offsets"])
    assert struct.unpack("<6f", data[begin:end]) == (0, 1, 2, 3, 4, 5)
    ends = sorted(about["data_offsets"] for name, about in header.items() if name != "__metadata__")
    assert ends[0][0] == 0 and ends[-1][1] == len(data) - 8 - length


def test_damaged_files(tmp_path):
    save(tmp_path)
    path = tmp_path / "model-00001-of-00001.safetensors"
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])

    def changed(**about):
        text = json.dumps({**header, "a": {**header["a"], **about}}).encode()
        return struct.pack("<Q", len(text)) + text + data[8 + length :]

    whole = changed()
    for wrong in (
        b"", data[:7], data[:20], data[:-30], struct.pack("<Q", 2**62) + data[8:], b"\x05\0\0\0\0\0\0\0[1,2]",
        changed(shape=[2**62, 2**62]),
        changed(shape=[-2, -3]), changed(data_offsets=[0, 2**40]), changed(data_offsets=[24, 0]), changed(dtype="X1"),
        changed(data_offsets=[header["f"]["data_offsets"][0], header["f"]["data_offsets"][0] + 24]),
        whole[:8] + whole[8:].replace(b'"b":', b'"a":', 1), data + b"\0",
        changed(shape=[True, 6]), struct.pack("<Q", 200_000) + b"[" * 200_000,
    ):  # fmt: skip
        path.write_bytes(wrong)
        with pytest.raises(dcp.api.CheckpointException, match="no whole file of safetensors"):
            load(tmp_path)
    text = json.dumps({**header, "__metadata__": {"DCP_SHARDING_INFO": '{"a": {"saved_offsets": [1, 0]}}'}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])
    with pytest.raises(dcp.api.CheckpointException, match="'a' is not all there"):
        load(tmp_path)


def test_save_rejects_unsupported_values(tmp_path):
    for value, words in ((3, "'x' is no tensor"), (torch.ones(1, dtype=torch.complex128), "has no dtype for 'x'")):
        with pytest.raises(dcp.api.CheckpointException, match=words):
            dcp.save({"x": value}, storage_writer=HuggingFaceStorageWriter(str(tmp_path)), no_dist=True)
