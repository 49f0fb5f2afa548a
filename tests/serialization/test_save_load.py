"""torch.save and torch.load: PyTorch's files (written by PyTorch 2.13), round trips, safety, damage."""

import collections
import io
import os
import pickle
import pickletools
import random
import stat
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn

DATA = Path(__file__).parent


def round_trip(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def saved(value) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def records(data) -> dict[str, bytes]:
    with zipfile.ZipFile(data) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


# -- files of PyTorch ------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"mmap": True}], ids=str)
def test_everything_pytorch_writes(options):
    found = torch.load(DATA / "kinds.pt", **options)
    weight = torch.arange(12.0).reshape(4, 3)
    assert isinstance(found, collections.OrderedDict) and found._metadata == {"version": 1}
    assert (
        torch.equal(found["weight"], weight)
        and torch.equal(found["rows"], weight[1:3])
        and torch.equal(found["columns"], weight.t())
    )
    assert found["columns"].stride() == (1, 3) and found["rows"].storage_offset() == 3
    found["weight"][1, 0] = 100.0
    assert found["rows"][0, 0] == 100 and found["columns"][0, 1] == 100, "views share memory again"
    assert (
        isinstance(found["parameter"], nn.Parameter)
        and found["parameter"].requires_grad
        and found["wants"].requires_grad
    )
    assert found["empty"].shape == (0, 3) and found["number"].item() == 2.5 and found["number"].shape == ()
    assert found["marked"].note == "kept" and found["conjugate"].tolist() == [1 - 2j]
    assert found["meta"].device.type == "meta" and found["meta"].shape == (2, 3)
    assert (found["size"], found["device"], found["other_device"], found["dtype"], found["layout"]) == (
        torch.Size([2, 3]),
        torch.device("cpu"),
        torch.device("cuda:1"),
        torch.float16,
        torch.strided,
    )
    assert (found["set"], found["bytes"], found["complex"], found["big"]) == ({1, 2}, b"\x00\xff", 1 + 2j, 2**70)
    assert found["nested"] == [{"a": (1, None, True)}, "text"]
    for name, value in found["dtypes"].items():
        assert str(value.dtype) == name and value.to(torch.float64).tolist() == (
            [0, 1, 1] if name == "torch.bool" else [0, 1, 3]
        )
    for name, value in found["low"].items():
        assert str(value.dtype) == name and value.float().tolist() == [0.5, -2.0]


def test_saved_files_equal_pytorchs():
    """The same records in the same order, the same pickle (but for the sharing of equal strings), the same bytes."""
    for name in ("kinds.pt", "training.pt"):
        theirs, ours = records(DATA / name), records(io.BytesIO(saved(torch.load(DATA / name))))
        if name == "kinds.pt":  # its lazy conjugate is an ordinary tensor here
            assert len(theirs) == len(ours)
            continue
        assert list(theirs) == list(ours)
        assert [(op.name, arg) for op, arg, _ in pickletools.genops(theirs["data.pkl"])] == [
            (op.name, arg) for op, arg, _ in pickletools.genops(ours["data.pkl"])
        ]
        assert all(theirs[key] == ours[key] for key in theirs if key != ".data/serialization_id")


def test_names_in_the_pickle_are_pytorchs():
    value = {
        "p": nn.Parameter(torch.ones(2)),
        "t": torch.ones(2),
        "u": torch.ones(2).to(torch.uint16),
        "s": torch.Size([1]),
        "d": torch.device("cpu"),
        "l": torch.strided,
        "f": torch.float32,
        "m": torch.empty(1, device="meta"),
        "o": torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1).state_dict(),
        "b": nn.Buffer(torch.ones(1)),
    }
    names = {
        arg for op, arg, _ in pickletools.genops(records(io.BytesIO(saved(value)))["data.pkl"]) if op.name == "GLOBAL"
    }
    assert names == {
        "torch._utils _rebuild_parameter",
        "torch._utils _rebuild_tensor_v2",
        "torch._utils _rebuild_tensor_v3",
        "torch FloatStorage",
        "torch.storage UntypedStorage",
        "torch uint16",
        "torch Size",
        "torch device",
        "torch.serialization _get_layout",
        "torch float32",
        "torch._utils _rebuild_meta_tensor_no_storage",
        "collections OrderedDict",
        "torch._tensor _rebuild_from_type_v2",
        "torch Tensor",
    }


def test_training_resumes_from_saved_state():
    found = torch.load(DATA / "training.pt")
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model.load_state_dict(found["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    optimizer.load_state_dict(found["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.01 and found["epoch"] == 3
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()


def test_the_format_before_1_6():
    found = torch.load(DATA / "legacy.pt")
    assert torch.equal(found, torch.arange(12.0).reshape(4, 3))
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(DATA / "legacy.pt", mmap=True)
    data = (DATA / "legacy.pt").read_bytes()
    with pytest.raises(RuntimeError, match="corrupted"):
        torch.load(io.BytesIO(data[:-5]))


# -- round trips -------------------------------------------------------------------------


def test_layout_of_the_archive():
    data = saved({"a": torch.ones(3), "b": torch.ones(100)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [
            "archive/data.pkl",
            "archive/.format_version",
            "archive/.storage_alignment",
            "archive/byteorder",
            "archive/data/0",
            "archive/data/1",
            "archive/version",
            "archive/.data/serialization_id",
        ]
        for info in archive.infolist():
            start = (
                info.header_offset
                + 30
                + int.from_bytes(data[info.header_offset + 26 : info.header_offset + 28], "little")
                + int.from_bytes(data[info.header_offset + 28 : info.header_offset + 30], "little")
            )
            assert start % 64 == 0 and info.compress_type == zipfile.ZIP_STORED


def test_one_storage_is_written_once():
    x = torch.ones(1000)
    assert len(saved([x, x[10:], x.view(10, 100)])) < 6000
    a, b, again = round_trip([x, x[10:], x])
    assert a is again
    b.zero_()
    assert a.sum() == 10


def test_views_of_two_dtypes_are_refused():
    x = torch.ones(4)
    with pytest.raises(
        RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"
    ):
        saved([x, x.view(torch.int32)])


def test_odd_memory():
    """Arrays whose strides PyTorch cannot have are written in order."""
    for array in (
        np.arange(6.0)[::-1],
        np.arange(12.0).reshape(3, 4)[:, ::-2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.broadcast_to(np.float32(3), (2, 3)),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
    ):
        tensor = torch.tensor([0.0]).new_empty(0)
        from torchlite._dispatch import call, table_of

        table = table_of(torch.device("cpu"))
        tensor = call.wrap_array(table, array)
        assert np.array_equal(round_trip(tensor).numpy(), array)


def test_objects_and_modules(tmp_path):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    torch.save(model, tmp_path / "model.pt")
    with pytest.raises(
        pickle.UnpicklingError,
        match=r"GLOBAL torch\.nn\.modules\.container\.Sequential was not an allowed global by default",
    ):
        torch.load(tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    x = torch.ones(1, 2)
    assert torch.equal(again(x), model(x))
    assert "torch.nn.modules.linear.Linear" in torch.serialization.get_unsafe_globals_in_checkpoint(
        tmp_path / "model.pt"
    )


def test_paths_and_files(tmp_path):
    x = torch.arange(3)
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        torch.save(x, path)
        assert torch.equal(torch.load(path), x)
    with open(tmp_path / "c.pt", "wb") as file:
        torch.save(x, file)
    with open(tmp_path / "c.pt", "rb") as file:
        assert torch.equal(torch.load(file), x)
    with pytest.raises(
        AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute"
    ):
        torch.save(x, 5)
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
        torch.load(5)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "absent.pt")
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(x, tmp_path / "absent" / "x.pt")
    with pytest.raises(RuntimeError, match="Is a directory"):
        torch.save(x, tmp_path)


def test_map_location(tmp_path):
    data = saved({"a": torch.ones(3)})

    def load(where):
        return torch.load(io.BytesIO(data), map_location=where)["a"]

    assert load("meta").device.type == "meta" and load(torch.device("meta")).shape == (3,)
    assert load({"cpu": "meta"}).device.type == "meta" and load(lambda storage, location: storage).device.type == "cpu"
    assert load(lambda storage, location: None).device.type == "cpu"
    with pytest.raises(
        RuntimeError,
        match=r"don't know how to restore data location of torch\.storage\.UntypedStorage \(tagged with nowhere\)",
    ):
        load("nowhere")


def test_mmap_reads_lazily_and_does_not_write(tmp_path):
    torch.save({"a": torch.arange(5)}, tmp_path / "x.pt")
    before = (tmp_path / "x.pt").read_bytes()
    found = torch.load(tmp_path / "x.pt", mmap=True)["a"]
    found += 1
    assert found.tolist() == [1, 2, 3, 4, 5] and (tmp_path / "x.pt").read_bytes() == before
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(before), mmap=True)


def test_other_byte_order(tmp_path):
    values = torch.tensor([1.5, -2.0]), torch.tensor([1 + 2j])
    swapped = io.BytesIO()
    with zipfile.ZipFile(swapped, "w") as archive:
        for name, data in records(io.BytesIO(saved(values))).items():
            if name == "byteorder":
                data = b"big" if sys.byteorder == "little" else b"little"
            if name.startswith("data/"):
                data = np.frombuffer(data, np.float32).byteswap().tobytes()
            archive.writestr(f"archive/{name}", data)
    swapped.seek(0)
    assert all(torch.equal(a, b) for a, b in zip(torch.load(swapped), values, strict=True))


# -- a save is whole or it is not --------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save({"a": torch.zeros(2), "bad": lambda: 1}, path)

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            torch.save(torch.zeros(1000), path)
    assert os.listdir(tmp_path) == ["x.pt"] and torch.equal(torch.load(path), torch.ones(2))


@pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")
def test_mode_and_link_stay(tmp_path):
    torch.save(1, tmp_path / "real.pt")
    os.chmod(tmp_path / "real.pt", 0o640)
    os.symlink("real.pt", tmp_path / "link.pt")
    torch.save(2, tmp_path / "link.pt")
    assert (tmp_path / "link.pt").is_symlink() and torch.load(tmp_path / "real.pt") == 2
    assert stat.S_IMODE(os.stat(tmp_path / "real.pt").st_mode) == 0o640


# -- hostile and damaged files ---------------------------------------------------------------------


def archive_with(pickled: bytes) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in records(io.BytesIO(saved(torch.ones(4)))).items():
            archive.writestr(f"archive/{name}", pickled if name == "data.pkl" else data)
    out.seek(0)
    return out


class Mischief:
    def __reduce__(self):
        return os.mkdir, ("mischief",)


def test_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        pickle.UnpicklingError,
        match="Trying to load unsupported GLOBAL (posix|nt).mkdir whose module (posix|nt) is blocked",
    ):
        torch.load(archive_with(pickle.dumps(Mischief(), 2)))
    for name in (
        "builtins eval",
        "builtins getattr",
        "subprocess Popen",
        "torchlite._utils _set_state",
        "torch.serialization load",
        "torch nn",
        "importlib import_module",
    ):
        module, _, attribute = name.partition(" ")
        code = b"\x80\x02c" + f"{module}\n{attribute}\n".encode() + b"X\x01\x00\x00\x001\x85R."
        with pytest.raises(pickle.UnpicklingError, match="was not an allowed global by default"):
            torch.load(archive_with(code))
    assert os.listdir(tmp_path) == []


TENSOR = b"ctorch\nTensor\n"
HOSTILE = {
    "attribute of a class": b"\x80\x02ctorch\ndevice\nN}X\x04\x00\x00\x00typeK\x01s\x86b.",
    "state of a function": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aK\x01sb.",
    "call of Tensor": b"\x80\x02" + TENSOR + b"M\xff\xff\x85R.", "call of a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "huge bytearray": b"\x80\x02c__builtin__\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x10\x85R.",
    "other codec": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00bz2\x86R.",
    "list as dict": b"\x80\x02]K\x01K\x02s.", "unknown opcode": b"\x80\x02\xff.", "stack underflow": b"\x80\x02R.",
    "no mark": b"\x80\x02t.", "mark as result": b"\x80\x02(.", "memo that is not there": b"\x80\x02h\x05.",
    "false length": b"\x80\x02X\xff\xff\xff\xffabc.", "unhashable key": b"\x80\x02}]K\x01s.",
    "not a storage": b"\x80\x02X\x04\x00\x00\x00nope\x85Q.",
    "storage of no type": b"\x80\x02(X\x07\x00\x00\x00storageK\x01X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ.",
    "protocol 0": b"I1\n.",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name):
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        torch.load(archive_with(HOSTILE[name]))


def test_tensors_must_fit_in_their_storage():
    good = records(io.BytesIO(saved(torch.ones(4))))["data.pkl"]
    for old, new in ((b"K\x04\x85", b"K\x09\x85"), (b"K\x01\x85", b"K\x09\x85"), (b"QK\x00", b"QK\x09")):
        assert old in good
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
            torch.load(archive_with(good.replace(old, new)))


def test_allowed_classes():
    value = collections.defaultdict(int, a=1)
    with pytest.raises(pickle.UnpicklingError, match=r"collections\.defaultdict"):
        round_trip(value)
    with torch.serialization.safe_globals([collections.defaultdict, int]):
        assert round_trip(value) == value
    assert torch.serialization.get_safe_globals() == []
    torch.serialization.add_safe_globals([(Mischief, "elsewhere.Mischief")])
    assert torch.serialization.get_safe_globals() == [(Mischief, "elsewhere.Mischief")]
    torch.serialization.clear_safe_globals()
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(io.BytesIO(), weights_only=True, pickle_module=pickle)


def test_damage_is_detected():
    data = saved({"a": torch.arange(50.0), "b": [torch.zeros(3), {"c": 1}]})
    dice = random.Random(0)
    for _ in range(300):
        broken = bytearray(data)
        if dice.random() < 0.3:
            broken = broken[: dice.randrange(len(broken))]
        else:
            for _ in range(dice.randrange(1, 4)):
                broken[dice.randrange(len(broken))] = dice.randrange(256)
        try:
            found = torch.load(io.BytesIO(bytes(broken)))
        except (RuntimeError, pickle.UnpicklingError, EOFError):
            continue
        assert torch.equal(found["a"], torch.arange(50.0)), (
            "a change of padding or dates may pass, a change of values may not"
        )


def test_truncated():
    data = saved(torch.ones(100))
    with pytest.raises(
        RuntimeError, match="PytorchStreamReader failed reading zip archive: failed finding central directory"
    ):
        torch.load(io.BytesIO(data[:300]))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(b""))
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 103"):
        torch.load(io.BytesIO(b"garbage garbage garbage"))
    changed = data.replace(b"\x00\x00\x80?" * 8, b"\x00\x00\x00@" * 8)
    with pytest.raises(RuntimeError, match="its checksum is wrong"):
        torch.load(io.BytesIO(changed))


def test_an_archive_that_is_not_a_checkpoint():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/readme", "hello")
    file.seek(0)
    with pytest.raises(RuntimeError, match=r'Expected hasRecord\("version"\) to be true, but got false'):
        torch.load(file)


def test_compressed_records_are_refused():
    """A small compressed record could claim gigabytes; PyTorch writes none."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in records(io.BytesIO(saved(torch.ones(4)))).items():
            archive.writestr(f"archive/{name}", data)
    file.seek(0)
    with pytest.raises(RuntimeError, match="compressed or encrypted"):
        torch.load(file)


def test_without_checksums():
    torch.serialization.set_crc32_options(False)
    try:
        assert not torch.serialization.get_crc32_options()
        assert torch.equal(round_trip(torch.ones(3)), torch.ones(3))
    finally:
        torch.serialization.set_crc32_options(True)


def test_pickle_and_copy_of_tensors():
    import copy

    x = nn.Parameter(torch.tensor([1.0, 2.0]))
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert isinstance(again, nn.Parameter) and again.requires_grad and torch.equal(again, x)


@pytest.mark.parametrize(
    "pair",
    [
        lambda: (lambda x: [x, x.view(torch.int32)])(torch.empty(0)),
        lambda: (lambda x: [x, torch.empty(0, dtype=torch.int8).set_(x.untyped_storage(), 0, (0,), (1,))])(
            torch.empty(0)
        ),
        lambda: (lambda x: [x, x.view(torch.complex64), x.untyped_storage()])(torch.empty(0, 2)),
    ],
)
def test_empty_storages_have_any_number_of_dtypes(pair):
    values = pair()
    found = round_trip(values)
    assert [x.dtype for x in found[:2]] == [x.dtype for x in values[:2]]
    assert [tuple(x.shape) for x in found[:2]] == [tuple(x.shape) for x in values[:2]]
    x = torch.ones(2)
    for wrong in ([x, x.view(torch.int32)], [x, x[:0].view(torch.int32)]):
        with pytest.raises(RuntimeError, match="view the same data as different types"):
            torch.save(wrong, io.BytesIO())
