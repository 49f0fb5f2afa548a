"""Files that `torch.save` leaves on the disk; the old format; options of `save` and `load`."""

import argparse
import copy
import io
import mmap
import os
import pickle
import pickletools
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import torchlite as torch
from tests.hostile import corpus
from torchlite import nn
from torchlite._serialization import atomic_files
from torchlite._tensor.pickling import set_state
from torchlite.serialization import LoadEndianness, safe_globals, skip_data

posix = pytest.mark.skipif(os.name == "nt", reason="modes, links and users of POSIX")


def saved(value, **options) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def round_trip(value, weights_only=True, **options):
    return torch.load(io.BytesIO(saved(value, **options)), weights_only=weights_only)


# -- saves leave nothing behind, and write where PyTorch can write --------------------------------

KILLED = """
    import os, signal, sys
    import torchlite as torch
    from torchlite._serialization import zip_archive

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    zip_archive.ArchiveWriter.finish = die
    torch.save(torch.zeros(10), sys.argv[1])
"""


@posix
def test_partial_files_of_a_killed_save_are_removed_by_the_next(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), path)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path)], check=False)
        assert done.returncode < 0
    left = [name for name in os.listdir(tmp_path) if name != "x.pt"]
    assert len(left) == 1 and torch.equal(torch.load(path), torch.ones(2))  # the second cleared what the first left
    torch.save(torch.zeros(3), tmp_path / "the next epoch.pt")
    assert sorted(os.listdir(tmp_path)) == ["the next epoch.pt", "x.pt"]
    torch.save(torch.zeros(3), path)
    assert sorted(os.listdir(tmp_path)) == ["the next epoch.pt", "x.pt"] and len(torch.load(path)) == 3


@posix
def test_errors_of_files_that_cannot_be_written(tmp_path):
    """RuntimeError in the format of today; the old one, and names that are not ASCII, have the system's errors."""
    loop = tmp_path / "loop"
    os.symlink("loop", loop)
    for path, kind in (
        (tmp_path / "none" / "x", FileNotFoundError),
        (str(tmp_path) + "/", IsADirectoryError),
        (tmp_path / ("a" * 256), OSError),
        (loop, OSError),
    ):
        with pytest.raises(RuntimeError):
            torch.save(torch.ones(1000), path)
        with pytest.raises(kind):
            torch.save(torch.ones(1000), path, _use_new_zipfile_serialization=False)
    with pytest.raises(OSError, match="No space left"):
        torch.save(torch.ones(1000), "/dev/full")
    with pytest.raises(OSError, match="File name too long"):
        torch.save(torch.ones(2), tmp_path / ("\u00e4" * 128))
    assert os.listdir(tmp_path) == ["loop"]


@posix
def test_a_save_under_way_is_not_disturbed_by_another(tmp_path):
    path = str(tmp_path / "x.pt")
    with torch.serialization._open_zipfile_writer(path) as first:
        torch.save(torch.ones(2), path)
        assert torch.equal(torch.load(path), torch.ones(2)) and len(os.listdir(tmp_path)) == 2
        first.write_record("a", b"1", 1)
    assert os.listdir(tmp_path) == ["x.pt"] and torch.serialization.PyTorchFileReader(path).get_record("a") == b"1"


@posix
@pytest.mark.parametrize(
    "name",
    ["a" * 243, "a" * 252 + ".pt", "ä" * 127, "☃" * 84 + ".pt", "a\udcff.pt", ".hidden", "a.b.c", "x"],
    ids=ascii,
)
def test_any_name_that_a_file_can_have(tmp_path, name):
    for _ in range(2):
        torch.save({"a": torch.ones(2)}, tmp_path / name)
        assert torch.equal(torch.load(tmp_path / name)["a"], torch.ones(2))
    assert os.listdir(tmp_path) == [name]
    with zipfile.ZipFile(tmp_path / name) as archive:
        stem = os.path.splitext(name)[0]
        assert archive.namelist()[0] == f"{stem if name.isascii() else 'archive'}/data.pkl"
    with pytest.raises(RuntimeError, match="File name too long"):
        torch.save(1, tmp_path / ("a" * 256))
    for nothing in ("", f"{tmp_path}/absent/", f"{tmp_path}/"):
        with pytest.raises(RuntimeError, match="invalid file name"):
            torch.save(1, nothing)


@posix
def test_hard_links_stay_and_both_names_see_the_new_file(tmp_path):
    torch.save(torch.ones(1000), tmp_path / "a.pt")
    os.link(tmp_path / "a.pt", tmp_path / "b.pt")
    torch.save(torch.zeros(2), tmp_path / "a.pt")
    assert os.path.samefile(tmp_path / "a.pt", tmp_path / "b.pt")
    assert torch.equal(torch.load(tmp_path / "b.pt"), torch.zeros(2)) and len(os.listdir(tmp_path)) == 2
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save(lambda: 1, tmp_path / "a.pt")
    assert torch.equal(torch.load(tmp_path / "b.pt"), torch.zeros(2))


AS_SOMEBODY = """
    import io, os, sys
    import torchlite as torch
    file = io.BytesIO()
    torch.save(torch.ones(1), file)
    file.seek(0)
    torch.load(file).tolist()  # all is imported while it can be read
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    os.chdir(sys.argv[1])
    torch.save(torch.zeros(3), "folder/mine.pt")
    assert torch.load("folder/mine.pt").tolist() == [0, 0, 0]
    for name in ("folder/new.pt", "read_only.pt"):
        try:
            torch.save(1, name)
        except RuntimeError as error:
            assert "open file failed with strerror: Permission denied" in str(error)
        else:
            raise AssertionError(name)
    print(sorted(os.listdir(".")), os.listdir("folder"))
"""


@posix
def test_a_file_that_can_be_written_in_a_folder_that_cannot():
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are not for others
        os.chmod(place, 0o755)
        in_a_folder_that_cannot_be_written(Path(place))


def in_a_folder_that_cannot_be_written(place):
    folder = place / "folder"
    folder.mkdir()
    for path in (folder / "mine.pt", place / "read_only.pt"):
        torch.save(torch.ones(100), path)
    os.chmod(folder / "mine.pt", 0o666)
    os.chmod(place / "read_only.pt", 0o444)
    os.chmod(folder, 0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(AS_SOMEBODY), str(place)],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.chmod(folder, 0o755)
    assert done.stdout.strip() == "['folder', 'read_only.pt'] ['mine.pt']", done.stderr


@posix
def test_pipes_and_links_to_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    torch.save(torch.ones(2), tmp_path / "pipe")
    assert torch.equal(torch.load(io.BytesIO(os.read(reader, 1 << 16))), torch.ones(2))
    os.close(reader)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    os.symlink("there.pt", tmp_path / "link.pt")
    torch.save(3, tmp_path / "link.pt")
    assert torch.load(tmp_path / "there.pt") == 3 and (tmp_path / "link.pt").is_symlink()
    os.symlink("absent/there.pt", tmp_path / "lost.pt")
    with pytest.raises(RuntimeError, match="No such file or directory"):
        torch.save(3, tmp_path / "lost.pt")


# -- the old format --------------------------------------------------------------------------------


def old(value, weights_only=True, protocol=2):
    return round_trip(value, weights_only, _use_new_zipfile_serialization=False, pickle_protocol=protocol)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_old_format_is_written(protocol, tmp_path):
    x = torch.arange(12.0).reshape(3, 4)
    value = {
        "x": x, "rows": x[1:], "columns": x.t(), "p": nn.Parameter(torch.ones(2)), "h": torch.ones(2).half(),
        "b": torch.tensor([True, False]), "c": torch.tensor([1 + 2j]), "u": torch.ones(2).to(torch.uint16),
        "size": torch.Size([1]), "plain": [1, "a", (2.5, None)], "dtype": torch.int8,
    }  # fmt: skip
    found = old(value, protocol=protocol)
    for name in ("x", "rows", "columns", "p", "h", "b", "c", "u"):
        assert torch.equal(found[name], value[name]) and found[name].stride() == value[name].stride()
    assert isinstance(found["p"], nn.Parameter) and found["plain"] == value["plain"] and found["dtype"] is torch.int8
    found["rows"][0, 0] = 100
    assert found["x"][1, 0] == 100 and found["columns"][0, 1] == 100
    torch.save(value, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    assert torch.equal(torch.load(tmp_path / "x.pt", weights_only=False)["columns"], x.t())
    assert os.listdir(tmp_path) == ["x.pt"]


def test_the_parts_of_an_old_file():
    """As PyTorch reads them: five pickles, then each storage's number of elements and its bytes, sorted by name."""
    data = saved([torch.arange(3), torch.ones(2)], _use_new_zipfile_serialization=False)
    stream, values = io.BytesIO(data), []
    for number in range(5):
        if number == 3:
            names = [arg for op, arg, _ in pickletools.genops(stream) if op.name == "GLOBAL"]
        else:
            values.append(pickle.load(stream))
    assert values == [
        0x1950A86A20F9469CFC6C,
        1001,
        {
            "protocol_version": 1001,
            "little_endian": sys.byteorder == "little",
            "type_sizes": {"short": 2, "int": 4, "long": 4},
        },
        ["0", "1"],
    ]
    assert names == [
        "torch._utils _rebuild_tensor_v2", "torch LongStorage", "collections OrderedDict", "torch FloatStorage",
    ]  # fmt: skip
    assert stream.read() == b"\3" + bytes(7) + b"".join(i.to_bytes(8, "little") for i in range(3)) + b"\2" + bytes(
        7
    ) + 2 * (b"\0\0\x80?")


def test_old_files_one_after_the_other_and_elsewhere():
    file = io.BytesIO(b"head")
    file.seek(4)
    for value in (torch.ones(2), torch.zeros(3)):
        torch.save(value, file, _use_new_zipfile_serialization=False)
    for where in (None, "meta"):
        file.seek(4)
        first, second = (torch.load(file, map_location=where) for _ in range(2))
        assert (first.shape, second.shape) == ((2,), (3,)) and first.device.type == (where or "cpu")
    x = torch.arange(4.0)
    found = torch.load(
        io.BytesIO(saved({"a": (x, x[1:])}, _use_new_zipfile_serialization=False)), map_location=lambda s, where: s
    )["a"]
    found[0].zero_()
    assert found[1].sum() == 0


def test_parts_of_storages_as_before_0_4():
    """Ids of storages with the key, first element and length of a part, which PyTorch no longer writes."""
    storage, four = corpus.tuple_of, struct.pack("<q", 4) + np.arange(4, dtype=np.float32).tobytes()

    def part(key: str, first: int, count: int) -> bytes:
        view = corpus.tuple_of(corpus.text(key), corpus.number(first), corpus.number(count))
        whole = corpus.text("storage"), corpus.named("torch", "FloatStorage"), corpus.text("0"), corpus.text("cpu")
        return storage(*whole, corpus.number(4), view) + b"Q"

    data = corpus.old(
        part("a", 0, 1) + part("b", 1, 3) + part("a", 0, 1) + b"\x87", b"]" + corpus.text("0") + b"a", four
    )
    first, rest, again = torch.load(io.BytesIO(data))
    assert first is again and type(first) is type(rest) is torch.TypedStorage
    first, rest = first._untyped_storage, rest._untyped_storage
    assert bytes(first.tolist()) == four[8:12] and bytes(rest.tolist()) == four[12:]
    assert first.data_ptr() + 4 == rest.data_ptr()
    with pytest.raises(pickle.UnpicklingError, match="reaches beyond it"):
        torch.load(io.BytesIO(corpus.old(part("a", 3, 2), b"]" + corpus.text("0") + b"a", four)))


class Changing(nn.Module):
    pass


def test_the_source_of_modules_is_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = saved([Changing(), Changing()], _use_new_zipfile_serialization=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(torch.load(io.BytesIO(data), weights_only=False)[1], Changing)
    other = data.replace(b"class Changing(nn.Module):\n    pass", b"class Changing(nn.Module):\n    word")
    assert other != data
    with pytest.warns(torch.serialization.SourceChangeWarning, match="source code of class .*Changing' has changed"):
        torch.load(io.BytesIO(other), weights_only=False)
    with pytest.raises(pickle.UnpicklingError, match="Changing was not an allowed global by default"):
        torch.load(io.BytesIO(data))


# -- options -----------------------------------------------------------------------------------------


def test_files_without_a_byte_order_record():
    values = torch.tensor([1.5, -2.0])
    silent = saved(values, _disable_byteorder_record=True)
    assert torch.equal(torch.load(io.BytesIO(silent)), values)
    set_order, order = torch.serialization.set_default_load_endianness, torch.serialization.get_default_load_endianness
    assert order() is None
    try:
        for endianness, same in (
            (LoadEndianness.NATIVE, True),
            (LoadEndianness.LITTLE, sys.byteorder == "little"),
            (LoadEndianness.BIG, sys.byteorder == "big"),
        ):
            set_order(endianness)
            assert order() is endianness and torch.equal(torch.load(io.BytesIO(silent)), values) is same
            assert torch.equal(round_trip(values), values)  # which says its own
    finally:
        set_order(None)
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        set_order("little")


@posix
def test_mmap_options(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(3), path)
    get, put = torch.serialization.get_default_mmap_options, torch.serialization.set_default_mmap_options
    assert get() == mmap.MAP_PRIVATE
    torch.load(path, mmap=True)[0] = 5
    assert torch.load(path).tolist() == [1, 1, 1]
    with put(mmap.MAP_SHARED):
        torch.load(path, mmap=True)[0] = 5
    assert get() == mmap.MAP_PRIVATE and torch.load(path).tolist() == [5, 1, 1]
    with pytest.raises(ValueError, match=r"expected mmap\.MAP_PRIVATE or mmap\.MAP_SHARED, but got 7"):
        put(7)


def test_config_follows_the_setters(tmp_path):
    from torchlite.utils.serialization import config

    torch.save(torch.ones(3), tmp_path / "x.pt")
    try:
        config.load.mmap = True
        assert torch.equal(torch.load(tmp_path / "x.pt"), torch.ones(3))
        with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
            torch.load(io.BytesIO())
        torch.serialization.set_crc32_options(False)
        config.save.storage_alignment = 4096
        data = saved(torch.ones(3))
        assert config.save.compute_crc32 is False
        reader = torch._C.PyTorchFileReader(io.BytesIO(data))
        assert reader.get_record_offset("data/0") % 4096 == 0 and reader.get_record(".storage_alignment") == b"4096"
    finally:
        config.load.mmap, config.save.compute_crc32, config.save.storage_alignment = False, True, 64


def test_skip_data_leaves_room():
    x = torch.ones(100)
    with skip_data():
        data = saved({"x": x, "view": x[10:]})
        with pytest.raises(RuntimeError, match="Cannot use skip_data=True with _use_new_zipfile_serialization=False"):
            saved(x, _use_new_zipfile_serialization=False)
    found = torch.load(io.BytesIO(data))
    assert found["x"].sum() == 0 and len(data) == len(saved({"x": x, "view": x[10:]}))
    found["view"][0] = 7
    assert found["x"][10] == 7
    with skip_data():
        assert torch.load(io.BytesIO(saved(torch.ones(2)))).shape == (2,)
    assert torch.equal(round_trip(x), x)


def test_archives_record_by_record(tmp_path):
    parts = {"a": b"12039810948234589", "c/d": b"94589480984058"}
    for where in (tmp_path / "x.zip", io.BytesIO()):
        with torch.serialization._open_zipfile_writer(where) as writer:
            for name, data in parts.items():
                writer.write_record(name, data, len(data))
            writer.write_record("t", torch.ones(2), 8)
            writer.write_record("s", "text", 4)
            writer.write_record_metadata("hole", 5)
            assert writer.get_all_written_records() == ["a", "c/d", "t", "s", "hole"]
            assert writer.archive_name() == ("x" if where == tmp_path / "x.zip" else "archive")
        with torch.serialization._open_zipfile_reader(where) as reader:
            assert all(reader.get_record(name) == data for name, data in parts.items())
            assert torch.equal(reader.get_storage_from_record("t", 2, torch.float32), torch.ones(2))
            assert reader.get_record("hole") == bytes(5) and reader.get_record_size("s") == 4
            assert reader.has_record("a") and not reader.has_record("b") and len(reader.serialization_id()) == 40
    (tmp_path / "y.zip").write_bytes(b"before")

    def fails():
        with torch.serialization._open_zipfile_writer(tmp_path / "y.zip") as writer:
            writer.write_record("a", b"1", 1)
            raise KeyError("a")

    with pytest.raises(KeyError):
        fails()
    assert (tmp_path / "y.zip").read_bytes() == b"before" and len(os.listdir(tmp_path)) == 2


def test_file_likes():
    for mode, kind in (
        ("rb", torch.serialization._open_buffer_reader),
        ("wb", torch.serialization._open_buffer_writer),
    ):
        assert isinstance(torch.serialization._open_file_like(io.BytesIO(), mode), kind)
    with pytest.raises(RuntimeError, match="Expected 'r' or 'w' in mode but got a"):
        torch.serialization._open_file_like(io.BytesIO(), "a")
    with pytest.raises(AttributeError, match="has no callable attribute 'write'"):
        torch.serialization._open_zipfile_writer(5)
    fake = io.BytesIO(saved(torch.tensor([80, 75, 5, 6], dtype=torch.uint8), _use_new_zipfile_serialization=False))
    assert torch.serialization._is_zipfile(io.BytesIO(saved(1))) and not torch.serialization._is_zipfile(fake)


def test_environment_variables(monkeypatch):
    data = saved(nn.Linear(1, 1))
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        assert isinstance(torch.load(io.BytesIO(data)), nn.Linear)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(data), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="should be set, but both were set"):
        torch.load(io.BytesIO(data))


def test_errors_of_user_functions_pass_through():
    def where(storage, location):
        raise KeyError("mine")

    for legacy in (False, True):
        data = saved(torch.ones(1), _use_new_zipfile_serialization=not legacy)
        with pytest.raises(KeyError, match="mine"):
            torch.load(io.BytesIO(data), map_location=where)
        with pytest.raises(TypeError, match="'int' object is not callable"):
            torch.load(io.BytesIO(data), map_location=3)
    with pytest.raises(AttributeError, match=r"(pickle|get) local object"):
        saved(lambda: 1)
    with pytest.raises(RuntimeError, match="Invalid device string: 'cuda:x'"):
        torch.load(io.BytesIO(saved(torch.ones(1))), map_location="cuda:x")
    with (
        pytest.warns(UserWarning, match="pickle_load_args only works if"),
        pytest.raises(TypeError, match="argument 'x'"),
    ):
        torch.load(io.BytesIO(saved(1)), x=1)


def test_functions_are_saved_under_the_names_that_pytorch_has():
    functions = [
        torch.add,
        torch.zeros,
        nn.functional.relu,
        torch.linalg.det,
        torch.fft.fft,
        torch.special.erf,
        torch.div,
    ]
    data = saved(functions)
    assert all(a is b for a, b in zip(torch.load(io.BytesIO(data), weights_only=False), functions, strict=True))
    names = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    assert "torch.linalg.det" in names and "torch.add" in names and "torch.nn.functional.relu" in names
    theirs = b"\x80\x02](c__builtin__\ngetattr\nctorch._C\n_VariableFunctionsClass\nX\x03\0\0\0add\x86R"
    theirs += b"ctorch._C._linalg\nlinalg_det\ne."
    assert torch.load(io.BytesIO(corpus.around(theirs)), weights_only=False) == [torch.add, torch.linalg.det]
    assert torch.add.__name__ == "add" and torch.zeros.__name__ == "zeros"


# -- what is saved ------------------------------------------------------------------------------------


def test_storages_are_saved_and_share_again():
    x = torch.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = [x, x.storage(), x[1:]]
    for legacy in (False, True):
        found, typed, tail = round_trip(values, _use_new_zipfile_serialization=not legacy)
        assert isinstance(typed, torch.TypedStorage) and typed.dtype is torch.float32
        found.zero_()
        assert tail.sum() == 0 and typed._untyped_storage.data_ptr() == found.untyped_storage().data_ptr()
        assert round_trip(x.untyped_storage(), _use_new_zipfile_serialization=not legacy).tolist() == list(
            x.numpy().tobytes()
        )


@pytest.mark.parametrize("protocol", range(2, 6))
def test_plain_pickle_and_copies(protocol):
    marked = torch.ones(2, requires_grad=True)
    marked.note = "kept"
    parameter = nn.Parameter(torch.ones(2))
    parameter.note = "kept"
    values = [marked, parameter, torch.arange(6).reshape(2, 3).t(), torch.ones(2).half(), nn.Buffer(torch.ones(1))]
    for value in values:
        for again in (
            pickle.loads(pickle.dumps(value, protocol)),
            copy.deepcopy(value),
            copy.copy(value),
            round_trip(value, weights_only=False, pickle_protocol=protocol),
        ):
            assert type(again) is type(value) and torch.equal(again, value) and again.dtype is value.dtype
            assert again.requires_grad is value.requires_grad
        for again in (pickle.loads(pickle.dumps(value, protocol)), copy.copy(value)):
            assert getattr(again, "note", "") == getattr(value, "note", "")
    # PyTorch's copies of parameters leave attributes behind.
    assert copy.deepcopy(marked).note == "kept" and not hasattr(copy.deepcopy(parameter), "note")


def test_pickles_keep_the_order_in_memory_and_make_leaves():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for value in (
        x.permute(2, 0, 1),
        x[:, ::2],
        x[0, 0, :1].expand(3),
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
    ):
        again = pickle.loads(pickle.dumps(value))
        assert torch.equal(again, value)
        assert again.stride() == value.stride() and again.storage_offset() == value.storage_offset()
        assert again.untyped_storage().nbytes() == value.untyped_storage().nbytes()
    computed = torch.ones(2, requires_grad=True) * 2
    again = pickle.loads(pickle.dumps(computed))
    assert again.is_leaf and again.requires_grad and torch.equal(again, computed)
    meta = pickle.loads(pickle.dumps(torch.empty(3, 2, device="meta").t()))
    assert meta.device.type == "meta" and meta.stride() == (1, 2)


def test_copies_share_memory():
    for value in (
        torch.ones(2, requires_grad=True),
        torch.ones(2, requires_grad=True) * 2,
        nn.Parameter(torch.ones(2)),
    ):
        value.note = "kept"
        again = copy.copy(value)
        assert again.data_ptr() == value.data_ptr() and again.is_leaf and again.requires_grad
        assert again.note == "kept" and type(again) is type(value)
        again.note = "other"
        assert value.note == "kept"


def test_a_copy_of_a_conjugate_shares_its_memory():
    x = torch.tensor([1 + 2j, 3 - 1j])
    again = copy.copy(x.conj())
    assert again.is_conj() and again.data_ptr() == x.data_ptr() and torch.equal(again, x.conj())
    assert torch.equal(pickle.loads(pickle.dumps(x.conj())), x.conj()) and round_trip(x.conj()).is_conj()


def test_hooks_are_not_saved():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad)
    for way in (pickle.dumps, saved):
        with pytest.warns(UserWarning, match="on tensor will not be serialized"):
            way(x)
    y = torch.ones(2, requires_grad=True)
    y.register_hook(torch.utils.hooks.unserializable_hook(lambda grad: grad))
    assert pickle.loads(pickle.dumps(y)).requires_grad and round_trip(y).requires_grad


def test_lazy_parameters_are_saved():
    model = nn.LazyLinear(3)
    found = round_trip(model.state_dict(), weights_only=False)["weight"]
    assert isinstance(found, nn.UninitializedParameter) and found.requires_grad


class Marked(torch.Tensor):
    pass


def test_subclasses():
    value = torch.ones(2).as_subclass(Marked)
    value.note = [1]
    with pytest.raises(pickle.UnpicklingError, match="Marked was not an allowed global by default"):
        round_trip(value)
    with safe_globals([Marked]):
        found = round_trip(value)
    assert type(found) is Marked and found.note == [1] and torch.equal(found, value)
    assert type(pickle.loads(pickle.dumps(value))) is Marked


class Slotted(torch.Tensor):
    __slots__ = ("inside", "unset")


class WithState(torch.Tensor):
    def __getstate__(self):
        return "state", self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state[1])
        self.told = state[0]


def test_subclasses_with_slots_and_setstate():
    value = torch.empty(2, device="meta").as_subclass(Slotted)
    value.inside, value.note = torch.ones(2), "kept"
    with safe_globals([Slotted, WithState]):
        for again in (round_trip(value), pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
            assert type(again) is Slotted and again.note == "kept" and again.device.type == "meta"
            assert torch.equal(again.inside, value.inside) and not hasattr(again, "unset")
        value = torch.ones(2).as_subclass(WithState)
        value.note = "kept"
        for again in (round_trip(value), pickle.loads(pickle.dumps(value)), copy.copy(value)):
            assert type(again) is WithState and (again.note, again.told) == ("kept", "state")
        hostile = torch.ones(2).as_subclass(Slotted)
        with pytest.raises(RuntimeError, match="Invalid serialized state"):
            set_state(hostile, ({}, {"data": torch.zeros(1)}))


class Reduced(torch.Tensor):
    def __reduce_ex__(self, protocol):
        return restored, (self.tolist(),)


def restored(values):
    return torch.tensor(values).as_subclass(Reduced)


def test_a_subclass_may_override_reduce():
    found = round_trip(torch.ones(2).as_subclass(Reduced), weights_only=False)
    assert type(found) is Reduced and found.tolist() == [1, 1]


class Packed(torch.Tensor):
    """A tensor of two others with a state of its own, as packages for quantization have it."""

    @staticmethod
    def __new__(cls, codes, scale):
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype, device=codes.device)

    def __init__(self, codes, scale):
        self.codes, self.scale = codes, scale

    def __setstate__(self, state):
        torch._utils._set_obj_state(self, state)
        self.restored = True

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].codes, args[0].scale)
        raise NotImplementedError(func)


def test_a_subclass_with_torch_function_is_saved_as_pytorch_does():
    value = Packed(torch.tensor([1, 2], dtype=torch.int8), torch.ones(1))
    with zipfile.ZipFile(io.BytesIO(saved({"weight": value}))) as archive:
        data = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    names = {argument for opcode, argument, _ in pickletools.genops(data) if opcode.name == "GLOBAL"}
    assert {"torch._tensor _rebuild_from_type_v2", "torch._utils _rebuild_wrapper_subclass"} <= names
    with safe_globals([Packed]):
        again = round_trip({"weight": value})["weight"]
    assert type(again) is Packed and again.restored and again.shape == (2,)
    assert again.codes.tolist() == [1, 2] and again.codes.dtype is torch.int8
    assert type(pickle.loads(pickle.dumps(value))) is Packed
    for state in (({}, {}, {}), {"_tl_array": None}):
        with pytest.raises(RuntimeError, match="Invalid serialized state"):
            torch._utils._set_obj_state(value, state)
    assert torch._utils._get_obj_state(value)["scale"] is value.scale
    plain = torch._utils._set_obj_state(argparse.Namespace(), ({"a": 1}, {"b": 2}))
    assert (plain.a, plain.b) == (1, 2) and torch._utils._get_obj_state(plain) == {"a": 1, "b": 2}


@posix
def test_a_file_keeps_its_owner(tmp_path, monkeypatch):
    path, given = tmp_path / "x.pt", []
    path.write_bytes(b"")
    plain = os.lstat(path)
    other = os.stat_result((*plain[:4], plain.st_uid + 1, *plain[5:]))
    monkeypatch.setattr(atomic_files.os, "chown", lambda name, user, group: given.append((name, user, group)))
    assert atomic_files._copy_ownership(str(path), other) and atomic_files._copy_ownership(str(path), plain)
    assert given == [(str(path), plain.st_uid + 1, plain.st_gid)]
