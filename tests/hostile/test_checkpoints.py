"""Damaged and hostile checkpoints: a sample of `python -m tests.hostile`, and what it takes for granted."""

import collections
import dataclasses
import enum
import io
import mmap
import pickle
import random
import struct
import subprocess
import sys
import tracemalloc
import typing
import warnings
import zipfile

import pytest

import torchlite as torch
from tests.hostile import corpus, damage
from torchlite._serialization.pickle_costs import Meter
from torchlite._serialization.pickle_globals import find_globals
from torchlite._serialization.resource_budget import Budget, BudgetExceeded

HARM = {**{name: corpus.around(code) for name, code in corpus.harm().items()}, **corpus.old_harm()}
HARM["overlapping records"] = corpus.overlapping()
FINE = ("deep list", "neg of one number seen often", "conj", "meta of text")


@pytest.mark.parametrize("name", [name for name in HARM if name not in FINE])
def test_harm_is_refused_soon(name):
    """One error of four types, which names a record."""
    with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError, ValueError)) as caught:
        torch.load(io.BytesIO(HARM[name]))
    assert caught.type in (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)
    assert len(str(caught.value)) < 3000
    assert any(
        word in str(caught.value).rpartition("WeightsUnpickler error")[2]
        for word in ("data.pkl", "data/", "magic number", "protocol version", "object", "storage")
    )


def test_a_sample_of_damaged_files():
    """Runs in a subprocess that reports executed code, writes, and memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.loader_process", "0", "0", "5", "1500", "each"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line for line in done.stdout.splitlines() if line.startswith("wrong")] == []


def test_a_sign_is_a_bit():
    """2**38 times the same number: as large as it is in the file, also where its elements are looked at."""
    found = torch.load(io.BytesIO(HARM["neg of one number seen often"]))
    assert found.shape == (2**38,) and found.stride() == (0,) and found.untyped_storage().nbytes() <= 16
    assert found.is_neg() and found[5].item() == 0


def test_two_records_of_one_name_are_refused():
    """Another reader could take the other one."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")
        for name in ("data.pkl", "version", "data.pkl"):
            archive.writestr(f"archive/{name}", b"\x80\x02N.")
    for read in (torch.load, torch.serialization.get_unsafe_globals_in_checkpoint):
        file.seek(0)
        with pytest.raises(RuntimeError, match=r"failed reading file data\.pkl: there are two records of this name"):
            read(file)


def test_load_copies_long_values_at_most_once():
    """The peak of a load is not more than twice what the file holds."""
    for value in ("a" * 4_000_000, b"a" * 4_000_000, bytearray(4_000_000), torch.zeros(1_000_000)):
        for protocol in (2, 5):
            file = io.BytesIO()
            torch.save(value, file, pickle_protocol=protocol)
            file.seek(0)
            tracemalloc.start()
            try:
                torch.load(file)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            # Protocol 2 has no bytes: it calls functions of a text, which is held as well.
            times = {(bytes, 2): 3, (bytearray, 2): 4}.get((type(value), protocol), 2)
            assert peak < times * len(file.getvalue()) + 300_000


def test_keys_that_checkpoints_have_are_read():
    value = {
        (1, (2, "a")): 1, frozenset((1, 2)): 2, 2.5: 3, None: 4, True: 5, b"k": 6, -1: 7, 2**70: 8,
        **{(i, i + 1): i for i in range(500)}, **{float(i): i for i in range(1000, 1500)},
    }  # fmt: skip
    file = io.BytesIO()
    torch.save(value, file, pickle_protocol=4)
    file.seek(0)
    assert torch.load(file) == value


def test_every_corpus_file_loads():
    for name, data in corpus.files().items():
        assert torch.load(io.BytesIO(data)) is not None, name


# -- names ---------------------------------------------------------------------------------


def told(code: bytes) -> list[str]:
    return torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(corpus.around(b"\x80\x04" + code + b".")))


SYSTEM = corpus.text("os"), corpus.text("system")
DECOY = corpus.text("collections") + corpus.text("OrderedDict")


@pytest.mark.parametrize(
    "code",
    [
        b"".join(SYSTEM) + b"\x93",
        b"".join(SYSTEM) + DECOY + b"00\x93",
        b"".join(SYSTEM) + b"(" + DECOY + b"1\x93",
        SYSTEM[0] + b"q\x07" + SYSTEM[1] + b"q\x08" + DECOY + b"0000h\x07h\x08\x93",
        DECOY + b"q\x010" + SYSTEM[0] + b"q\x0100h\x01" + SYSTEM[1] + b"\x93",
        SYSTEM[0] + b"\x94" + SYSTEM[1] + b"\x94" + DECOY + b"0000g0\ng1\n\x93",
        SYSTEM[0] + SYSTEM[1] + b"20\x93",
        b"(ios\nsystem\n",
        b"cos\nsystem\n",
        b"U\x02osU\x06system\x93",
    ],
)
def test_names_are_found_however_they_are_written(code):
    assert told(code) == ["os.system"]


def test_computed_names_are_reported():
    assert told(DECOY + b"]0\x93") == [] and told(corpus.text("os") + b")\x93") == ["os.?"]
    assert told(b"\x82\x07") == ["copyreg.extension 7"]
    assert told(b"(cos\nsystem\n" + corpus.text("true") + b"o") == ["os.system"]


def test_damaged_names_are_one_error():
    for code in (b"\x93", b"h\x05", b"X\xff\xff\xff\x7fab", b"t", b"c\xff\n\n", b"\xff", b"", b"00", b"I x\n"):
        with pytest.raises(pickle.UnpicklingError, match=r"\(in the record data\.pkl\)$"):
            told(code)
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by torch.save"):
        torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"no archive"))
    kinds = {kind_of_error(damage.file(3, index)[1]) for index in range(330)}
    assert kinds <= {None, pickle.UnpicklingError, RuntimeError, ValueError} and pickle.UnpicklingError in kinds


def kind_of_error(data: bytes):
    try:
        torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    except Exception as error:
        return type(error)
    return None


def test_every_opcode_is_known():
    assert (
        find_globals(pickle.dumps([{1: (2, "a", b"b", 3.5)}, {4}, frozenset((5,)), bytearray(b"c"), None, True], 5))
        == set()
    )


@pytest.mark.parametrize(
    "version, said",
    [(b"", "Couldn't parse"), (b"x", "Couldn't parse"), (b"0", "minimum"), (b"-1", "minimum"), (b"11", "maximum")]
    + [(b"9" * 400, "maximum"), (b"3", ""), (b" 3x", ""), (b"10", "")],
)
def test_versions_of_the_format(version, said):
    """Those that PyTorch reads, and its error for others."""
    whole = io.BytesIO()
    torch.save([1], whole)
    changed = io.BytesIO()
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, version if name.endswith("/version") else old.read(name))
    if not said:
        assert torch.load(io.BytesIO(changed.getvalue())) == [1]
        return
    with pytest.raises(RuntimeError, match=said) as caught:
        torch.load(io.BytesIO(changed.getvalue()))
    assert "version" in str(caught.value) and len(str(caught.value)) < 300


def test_attributes_that_would_hide_methods_are_refused():
    held = collections.OrderedDict(a=torch.ones(1))
    held.popitem = 3
    with pytest.raises(pickle.UnpicklingError, match="'popitem' would hide a method"):
        _loaded(held)
    for made in (torch.ones(1), torch.nn.Parameter(torch.ones(1))):
        made.sum = 3  # in the state of _rebuild_from_type_v2 and of _rebuild_parameter_with_state
        with pytest.raises(pickle.UnpicklingError, match="'sum' would hide a method"):
            _loaded(made)
        del made.sum
        made.tag = 4
        assert _loaded(made).tag == 4
    held = collections.OrderedDict(a=torch.ones(1))
    held._metadata = {"": {"version": 1}}
    assert _loaded(held)._metadata == {"": {"version": 1}}


@pytest.mark.parametrize("name", ["_tl_signs", "_tl_is_sparse", "_tl_is_plain", "_tl_array", "_tl_meta", "grad"])
def test_attributes_of_every_tensor_are_none_of_a_file(name):
    """`_tl_signs` would make a tensor negative for some readers, and not for others."""
    state = b"}" + corpus.text(name) + b"K\x02s"
    for kind in (("torch", "Tensor"), ("torch.nn.parameter", "Parameter")):
        args = corpus.tuple_of(corpus.number(4)), b"K\x01\x85"
        code = corpus.tuple_of(corpus.named("torch._utils", "_rebuild_tensor_v2"), corpus.named(*kind),
                               corpus.rebuilt(*args).partition(b"\n_rebuild_tensor_v2\n")[2][:-1], state)  # fmt: skip
        with pytest.raises((pickle.UnpicklingError, RuntimeError), match="every tensor has|Invalid serialized state"):
            torch.load(io.BytesIO(_archive(b"\x80\x02" + corpus.named("torch._tensor", "_rebuild_from_type_v2") + code
                                           + b"R.", storage=bytes(16))))  # fmt: skip


@pytest.mark.parametrize("name", ["__array_interface__", "__array_struct__", "__array_priority__", "__len__"])
def test_attributes_that_python_and_numpy_ask_for_are_refused(name):
    """`__array_interface__` of an instance would let `numpy.asarray` read memory at any address."""
    interface = {"version": 3, "shape": (4,), "typestr": "<f4", "data": (16, False)}
    for made in (torch.ones(1), torch.nn.Parameter(torch.ones(1)), collections.OrderedDict(a=torch.ones(1))):
        made.__dict__[name] = interface
        with pytest.raises(pickle.UnpicklingError, match="has a meaning beyond the file|would hide a method"):
            _loaded(made)


def test_the_state_of_a_member_of_an_enumeration_is_the_process_s():
    data = pickle.dumps(_Color.RED, protocol=2).removesuffix(b".") + b"}X\x07\x00\x00\x00_value_K\x07sb."
    with (
        torch.serialization.safe_globals([_Color]),
        pytest.raises(pickle.UnpicklingError, match="belongs to the process"),
    ):
        torch.load(io.BytesIO(_archive(data)), weights_only=True)
    assert _Color.RED.value == 1


def test_keys_that_meet_each_other_have_a_budget():
    """Numbers of one hash, each of which is compared with all before it; numbers at random are no more than usual."""
    with pytest.raises(BudgetExceeded):
        Meter(Budget(1000)).fill(set(), (k * sys.hash_info.modulus for k in range(50_000)))
    source = random.Random(0)
    for numbers in ([source.getrandbits(62) for _ in range(50_000)], [source.random() for _ in range(50_000)]):
        assert Meter(Budget(600_000)).fill(set(), numbers) == set(numbers)
        held = dict.fromkeys(numbers, 1)
        assert _loaded(held) == held


def test_states_within_functions_that_rebuild_are_checked():
    """`_rebuild_from_type_v2` may call the function that makes a parameter with a state."""
    state = b"}" + corpus.text("__array_interface__") + b"}s"
    of_parameter = corpus.tuple_of(
        corpus.rebuilt(corpus.tuple_of(corpus.number(4)), b"K\x01\x85"), b"\x89", b"}", state
    )
    function = corpus.named("torch._utils", "_rebuild_parameter_with_state")
    args = corpus.tuple_of(function, corpus.named("torch.nn.parameter", "Parameter"), of_parameter, b"}")
    code = corpus.named("torch._tensor", "_rebuild_from_type_v2") + args + b"R."
    with pytest.raises(pickle.UnpicklingError, match="has a meaning beyond"):
        torch.load(io.BytesIO(_archive(b"\x80\x02" + code, storage=bytes(16))))


class _Color(enum.Enum):
    RED = 1


def _archive(data: bytes, storage: bytes = b"") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", data)
        archive.writestr("a/version", b"3\n")
        archive.writestr("a/data/0", storage)
    return out.getvalue()


def _loaded(value):
    held = io.BytesIO()
    torch.save(value, held)
    return torch.load(io.BytesIO(held.getvalue()), weights_only=True)


# -- archives whose directory and headers disagree -------------------------------------------------


def _checkpoint() -> bytes:
    held = io.BytesIO()
    torch.save({"a": torch.arange(4.0)}, held)
    return held.getvalue()


def _entry(data: bytes, name: bytes) -> int:
    """Where the directory's entry of a record begins."""
    return data.index(name, data.index(b"PK\1\2")) - 46


def test_a_header_with_another_name_than_the_directory_is_refused():
    data = _checkpoint()
    at = data.index(b"archive/data.pkl")
    with pytest.raises(RuntimeError, match="its header has another name than the directory"):
        torch.load(io.BytesIO(data[:at] + b"archive/DATA.pkl" + data[at + 16 :]))


def test_archives_after_one_another_are_refused(tmp_path):
    """From a path: PyTorch reads the first of two archives, and zipfile the last one. From a stream the archive at its
    position is the one.
    """
    first, second = _checkpoint(), corpus.archive({"data.pkl": b"\x80\x02N.", "version": b"3\n"})
    comment = bytearray(first)
    comment[-2:] = len(second).to_bytes(2, "little")
    for data in (first + second, bytes(comment) + second, b"#!/bin/sh\n" + first):
        (tmp_path / "data.pt").write_bytes(data)
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match="central directory|Unsupported operand"):
            torch.load(tmp_path / "data.pt")
    want = torch.load(io.BytesIO(first))
    assert torch.load(io.BytesIO(first + second))["a"].equal(want["a"])


def test_records_outside_of_the_folder_are_refused():
    data = bytearray(_checkpoint())
    at = data.rindex(b"archive/byteorder")
    data[at : at + 7] = b"Archive"
    with pytest.raises(RuntimeError, match="is not in its folder"):
        torch.load(io.BytesIO(bytes(data)))


def test_records_over_each_other_are_refused():
    data = bytearray(_checkpoint())
    entry, other = _entry(bytes(data), b"archive/data/0"), _entry(bytes(data), b"archive/data.pkl")
    data[entry + 42 : entry + 46] = data[other + 42 : other + 46]
    with pytest.raises(RuntimeError, match="lies over the record"):
        torch.load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("offset", [0xFFFFFF0, 5])
def test_a_file_that_is_mapped_as_shared_is_checked_before_it_is_changed(offset, tmp_path):
    data = bytearray(_checkpoint())
    entry = _entry(bytes(data), b"archive/data/0")
    data[entry + 42 : entry + 46] = offset.to_bytes(4, "little")
    path = tmp_path / "m.pt"
    path.write_bytes(data)
    before = torch.serialization.get_default_mmap_options()
    torch.serialization.set_default_mmap_options(mmap.MAP_SHARED)
    try:
        with pytest.raises(RuntimeError, match="failed reading file"):
            torch.load(path, mmap=True)
    finally:
        torch.serialization.set_default_mmap_options(before)
    assert path.read_bytes() == bytes(data)


def test_checkpoints_within_a_file_spend_its_budget():
    budget = Budget(100)
    held = io.BytesIO()
    torch.save([collections.OrderedDict() for _ in range(500)], held)
    assert len(torch.serialization._load_part(held.getvalue(), budget)) == 500
    work = budget.work
    with pytest.raises(pickle.UnpicklingError, match="asks for more work"):
        for _ in range(100):
            torch.serialization._load_part(held.getvalue(), budget)
    assert work < Budget(100).work


@dataclasses.dataclass(frozen=True)
class _Frozen:
    inside: object


@dataclasses.dataclass(frozen=True, slots=True)
class _FrozenSlots:
    inside: object


class _Named(typing.NamedTuple):
    inside: object


@pytest.mark.parametrize("kind", [_Frozen, _FrozenSlots, _Named])
def test_keys_of_classes_that_the_user_allowed(kind):
    """Their hashes visit what they hold."""
    name = corpus.named(__name__, kind.__qualname__)
    make = {
        _Frozen: lambda inside: name + b")\x81}" + corpus.text("inside") + inside + b"sb",
        _FrozenSlots: lambda inside: name + b")\x81]" + inside + b"ab",
        _Named: lambda inside: name + inside + b"\x85\x81",
    }[kind]
    with torch.serialization.safe_globals([kind]):
        for inside in (corpus.doubled(60), corpus.nested(200)):
            code = b"\x80\x02}" + make(inside) + b"Ns."
            with pytest.raises(pickle.UnpicklingError, match="more work|too many times|100 deep"):
                torch.load(io.BytesIO(_archive(code)))
        ((found, value),) = torch.load(io.BytesIO(_archive(b"\x80\x02}" + make(b"K\x05") + b"Ns."))).items()
    assert found == kind(5) and value is None


class _Sub(torch.Tensor):
    pass


class _Plain:
    pass


class _Pair(typing.NamedTuple):
    first: object
    second: object


_INTERFACE = b"}" + corpus.text("__array_interface__") + b"}s"
_TENSOR = corpus.rebuilt(corpus.tuple_of(corpus.number(4)), b"K\x01\x85")


class _Words(str):
    pass


class _Items(list):
    pass


class _Bytes(bytearray):
    pass


class _Registry(dict):
    def __setitem__(self, key, value):
        hash(value)
        super().__setitem__(key, value)


class _WithState:
    def __setstate__(self, state):
        hash(state)
        self.state = state


class _Node:
    """Of a tree, which knows the node above it."""

    def __init__(self, above):
        self.above, self.below = above, []

    def __setstate__(self, state):
        vars(self).update(state)


class _Reduced:
    def __init__(self, values, number):
        self.values, self.number = values, number

    def __reduce__(self):
        return _Reduced, (self.values, self.number)


_BYTES = b"B" + struct.pack("<I", 100_000) + bytes(100_000) + b"q\x000"
_ATTRIBUTES = b"}(" + b"".join(corpus.text(f"a{i}") + b"N" for i in range(1000)) + b"uq\x000"

# A list of two lists that are one, and so on: 2**60 at the end.
_PLACES = [struct.pack("<I", 900 + i) for i in range(60)]
_LISTS = b"]" + b"".join(b"r" + place + b"0](" + (b"j" + place) * 2 + b"e" for place in _PLACES)


def _from_type(cls: bytes, state: bytes) -> bytes:
    args = b"(" + _TENSOR.removeprefix(corpus.named("torch._utils", "_rebuild_tensor_v2"))[1:-1]
    function = corpus.named("torch._utils", "_rebuild_tensor_v2")
    return corpus.named("torch._tensor", "_rebuild_from_type_v2") + corpus.tuple_of(function, cls, args, state) + b"R"


def _of(cls: type) -> bytes:
    return corpus.named(__name__, cls.__qualname__)


@pytest.mark.parametrize(
    "allowed, code, said",
    [
        ([_Color], _of(_Color) + corpus.doubled(60) + b"\x85R", "too many times"),
        ([_Words], _of(_Words) + corpus.doubled(60) + b"\x85R", "too many times"),
        ([_Sub], _of(_Sub) + b"]" + corpus.doubled(60) + b"a\x85R", "too many times"),
        ([_Frozen], b"}" + _of(_Frozen) + b")\x81}" + corpus.text("inside") + _LISTS + b"sbNs", "more work"),
        (
            [_Items],
            b"](" + b"]" + b"K\x01a" * 20_000 + b"q\x000" + (_of(_Items) + b"h\x00\x85R") * 500 + b"e",
            "more objects|more work|more time",
        ),
        ([_Pair], _TENSOR + _of(_Pair) + _INTERFACE + b"N\x86\x81b", "has a meaning beyond the file"),
        ([_Sub], _from_type(_of(_Sub), b"}") + _INTERFACE + b"b", "has a meaning beyond the file"),
        ([_Plain], _of(_Plain) + b")\x81](" + corpus.doubled(60) + b"N\x86eb", "must be a dict"),
        ([_Plain], _of(_Plain) + b")\x81}" + corpus.doubled(60) + b"Nsb", "more work"),
        ([set], corpus.named("builtins", "set") + b"](" + corpus.doubled(60) + b"e\x85R", "more work"),
        (
            [collections.defaultdict],
            corpus.named("collections", "defaultdict") + b"N](" + corpus.doubled(60) + b"N\x86e\x86R",
            "too many times",
        ),
        (
            [_Color],
            corpus.named("torch._tensor", "_rebuild_from_type_v2")
            + corpus.tuple_of(_of(_Color), corpus.named("torch", "Tensor"), corpus.doubled(60) + b"\x85", b"}")
            + b"R",
            "too many times",
        ),
        ([_Bytes], _BYTES + b"](" + (_of(_Bytes) + b"h\x00\x85R") * 2_000 + b"e", "more objects|more time"),
        (
            [_Plain],
            _ATTRIBUTES + b"](" + (_of(_Plain) + b")\x81h\x00b") * 2_000 + b"e",
            "more objects|more work|more time",
        ),
        ([_Registry], _of(_Registry) + b")\x81" + corpus.text("a") + corpus.doubled(60) + b"s", "too many times"),
        ([_WithState], _of(_WithState) + b")\x81" + corpus.doubled(60) + b"b", "too many times"),
        (
            [_WithState],
            _BYTES + b"](" + (_of(_WithState) + b")\x81h\x00\x85b") * 2_000 + b"e",
            "more objects|more time",
        ),
        (
            [collections.defaultdict],
            b"]("
            + b"K\x01" * 4_000
            + b"eq\x000"
            + corpus.named("collections", "defaultdict")
            + b"(N"
            + b"h\x00" * 40_000
            + b"tR",
            "more work|more objects|too many times",
        ),
        (
            [(torch._utils._rebuild_from_type_v2, "torch._tensor._rebuild_from_type_v2")],
            _from_type(corpus.named("torch", "Tensor"), _INTERFACE),
            "has a meaning beyond the file",
        ),
    ],
    ids=[
        "enum",
        "text",
        "tensor",
        "lists",
        "copies",
        "named_tuple_as_state",
        "subclass",
        "list_as_state",
        "key_of_a_state",
        "set",
        "defaultdict",
        "function_that_rebuilds",
        "copies_of_bytes",
        "copies_of_attributes",
        "set_item",
        "own_state",
        "bytes_in_a_state",
        "many_lists",
        "allowed_again",
    ],
)
def test_allowed_globals_are_checked(allowed, code, said):
    with torch.serialization.safe_globals(allowed), pytest.raises(pickle.UnpicklingError, match=said):
        torch.load(io.BytesIO(_archive(b"\x80\x02" + code + b".", storage=bytes(16))))


def test_ends_of_archives_that_lie_are_refused(tmp_path):
    """Junk instead of the end record, and a zip64 end record away from the place that its locator names."""
    first = _checkpoint()
    second = corpus.archive({"data.pkl": b"\x80\x02N.", "version": b"3\n"})
    place = len(first) + int.from_bytes(second[-6:-2], "little")
    junk = bytes(16) + place.to_bytes(4, "little") + bytes(2)
    end = second[:-22] + struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 2, 2, 100, place)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    for data in (first + second + junk, first + end + locator + second[-22:]):
        (tmp_path / "data.pt").write_bytes(data)
        with pytest.raises(RuntimeError, match="central directory"):
            torch.load(tmp_path / "data.pt")


def test_names_that_differ_by_case_alone_are_refused():
    data = corpus.archive({"data.pkl": b"\x80\x02N.", "version": b"3\n", "data/a": b"1", "data/A": b"2"})
    with pytest.raises(RuntimeError, match="differs by case alone"):
        torch.load(io.BytesIO(data))


def test_a_directory_with_more_records_than_its_count_is_refused():
    data = bytearray(_checkpoint())
    count = struct.unpack_from("<H", data, len(data) - 12)[0]
    struct.pack_into("<2H", data, len(data) - 14, count - 1, count - 1)
    with pytest.raises(RuntimeError, match="central directory"):
        torch.load(io.BytesIO(bytes(data)))


def test_numbers_of_disks_are_those_of_one_file():
    """As PyTorch's reader wants them."""
    for place in (4, 6, 8):  # this disk, the directory's disk, and the entries on this disk
        data = bytearray(_checkpoint())
        struct.pack_into("<H", data, len(data) - 22 + place, 9)
        with pytest.raises(RuntimeError, match="central directory"):
            torch.load(io.BytesIO(bytes(data)))


def _index(number: int) -> bytes:
    return struct.pack("<I", number)


@pytest.mark.parametrize(
    "code",
    [
        # 30 sets of 100 numbers that have one hash, as the keys of a dict, and one of them again and again.
        b"".join(corpus.number(i * sys.hash_info.modulus + 5) + b"r" + _index(i) + b"0" for i in range(1, 140))
        + b"".join(
            b"(" + b"".join(b"j" + _index(i) for i in (*range(1, 100), 100 + t)) + b"\x91r" + _index(1000 + t) + b"0"
            for t in range(31)
        )
        + b"}("
        + b"".join(b"j" + _index(1000 + t) + b"N" for t in range(30))
        + (b"j" + _index(1030) + b"N") * 20_000
        + b"u",
        _ATTRIBUTES + b"](" + (corpus.named("collections", "OrderedDict") + b")Rh\x00b") * 2_000 + b"e",
        b"](" + (corpus.named("torch.nn.parameter", "Parameter") + b"q\x000" + b"h\x00)R" * 80_000) + b"e",
        b"(" + b"K\x01" * 20_000 + b"tq\x000" + corpus.named("torch", "Size") + b"q\x010](" + b"h\x01h\x00\x85R" * 999
        + b"e",
    ],
    ids=["sets_of_one_hash", "attributes", "parameters", "sizes"],
)  # fmt: skip
def test_small_files_that_repeat_expensive_values(code):
    with pytest.raises(pickle.UnpicklingError, match="more time|more work|more objects"):
        torch.load(io.BytesIO(_archive(b"\x80\x02" + code + b".")))


def test_table_conversions_charge_for_their_lookups():
    budget = Budget(300_000)
    before = budget.time
    Meter(budget).fill({}, [float(i) for i in range(2_000)])
    once = before - budget.time
    assert once > 0
    budget = Budget(300_000)
    budget.time = 2 * once
    with pytest.raises(BudgetExceeded, match="more time"):
        Meter(budget).fill({}, [float(i) for i in range(2_000)], again=10)


def test_an_index_of_the_memo_is_below_the_size_of_the_pickle():
    with pytest.raises(pickle.UnpicklingError, match="Memo index 1000 is larger than the pickle"):
        torch.load(io.BytesIO(_archive(b"\x80\x02Nr" + _index(1000) + b".")))


def test_trees_and_shared_arguments_load():
    """Each node of a tree knows the one above it; objects are called with one dict."""
    root = node = _Node(None)
    for _ in range(60):
        node.below.append(_Node(node))
        node = node.below[0]
    values = {f"v{i}": i for i in range(3000)}
    numbers = {frozenset(range(3000)): 1}
    with torch.serialization.safe_globals([_Node, _Reduced, frozenset]):
        assert _loaded(root).below[0].below[0].above.above.above is None
        assert [held.number for held in _loaded([_Reduced(values, i) for i in range(200)])] == [*range(200)]
        assert _loaded(numbers) == numbers
