"""One notion of storage, offset and strides: views, as_strided, set_, resize_, storages and checkpoints go by it, and
no tensor reaches beyond its storage.
"""

import copy
import gc
import io
import pickle
import sys
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite._tensor import shared_memory, storage

OUT = r"out of bounds for storage of size"


@pytest.fixture(autouse=True)
def no_warning_of_typed_storages():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated", UserWarning)
        yield


# Tensors whose elements do not lie in the order of their storage, each with the bytes that the storage has.
LAYOUTS = {
    "transposed": lambda x: (x.t() + 1, 96),
    "clone of a transpose": lambda x: (x.t().clone(), 96),
    "permuted": lambda x: (x.reshape(2, 3, 4).permute(2, 0, 1) * 2, 96),
    "row": lambda x: (x[1], 96),
    "columns": lambda x: (x[:, 1:3], 96),
    "expanded columns": lambda x: (x[:, 1:3].expand(2, 4, 2), 96),
    "expanded steps": lambda x: (x.reshape(-1)[::2].expand(2, 12), 96),
    "diagonal": lambda x: (x.diagonal(), 96),
    "windows": lambda x: (x.unfold(1, 3, 2), 96),
    "0-d": lambda x: (x[2, 3], 96),
    "new": lambda x: (torch.zeros(2, 3, device=x.device), 24),
    "empty": lambda x: (torch.zeros(0, device=x.device), 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_as_strided_is_limited_to_the_storage(layout, device):
    x, held = LAYOUTS[layout](torch.arange(24.0, device=device).reshape(4, 6))
    assert x.untyped_storage().nbytes() == held
    count = held // 4
    if count:
        whole = x.as_strided((count,), (1,), 0)
        assert sorted(whole.tolist()) == sorted(x._typed_storage()._tensor.tolist())
        assert x.as_strided((2, 2), (0, 0), count - 1).tolist() == [[whole[-1].item()] * 2] * 2
        assert whole.as_strided(x.shape, x.stride(), x.storage_offset()).tolist() == x.tolist()
    for size, stride, offset in (
        ((4,), (1,), 10**5), ((300000,), (1,), 0), ((1,), (1,), count), ((2,), (count or 1,), 0), ((4,), (1,), 2**40),
        ((2, 2), (count, count), 0),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=OUT):
            x.as_strided(size, stride, offset)
    for size, stride in (((2**40,), (2**40,)), ((2,), (2**62,)), ((-1,), (1,))):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            x.as_strided(size, stride, 0)
    with pytest.raises(RuntimeError, match="invalid storage offset -1"):
        x.as_strided((1,), (1,), -1)
    with pytest.raises(RuntimeError, match="Negative strides"):
        x.as_strided((2,), (-1,), 0)
    assert x.as_strided((0, 3), (1, 1), 10**6).shape == (0, 3)


def test_meta_tensors_have_storages_too():
    x = torch.empty(4, 6, device="meta")
    y = x[1:, 2:].t()
    assert y.storage_offset() == 8 and y.untyped_storage() is x.untyped_storage() and y.stride() == (1, 6)
    assert x.reshape(24)._is_view() and x.untyped_storage().nbytes() == 96
    assert y.as_strided((2,), (1,), 22).storage_offset() == 22
    with pytest.raises(RuntimeError, match=OUT):
        y.as_strided((3,), (1,), 22)
    assert x.view(torch.float64).shape == (4, 3) and x[2:].view(torch.float64).storage_offset() == 6
    for size in ((2**62, 2**62), (2**63,)):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            torch.empty(size, device="meta")
    # Lazy loaders give their tensors storages that have no memory yet, nor a size.
    lazy = torch.UntypedStorage(0, device="meta")
    made = torch._utils._rebuild_tensor_v2(
        torch.TypedStorage(wrap_storage=lazy, dtype=torch.float32), 1, (4, 2), (2, 1), False, {}
    )
    assert made.is_meta and made.shape == (4, 2) and lazy.nbytes() == 36
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
        torch._utils._rebuild_tensor_v2(torch.UntypedStorage(0), 0, (4,), (1,), False, {})


@pytest.mark.parametrize("make", [torch.empty, torch.zeros, torch.ones, torch.rand])
def test_sizes_that_cannot_be(make, device):
    with pytest.raises(RuntimeError, match=r"Storage size calculation overflowed with sizes=\[4611686018427387904\]"):
        make(2**62, device=device)
    with pytest.raises(RuntimeError, match="negative dimension -1|zeros: Dimension size must be non-negative"):
        make(2, -1, device=device)


def test_memory_of_numpy_begins_at_the_array():
    a = np.arange(10.0)
    x = torch.from_numpy(a[2:])
    assert x.storage_offset() == 0 and x.untyped_storage().nbytes() == 64
    x[0] = 7
    assert a[2] == 7
    y = torch.from_numpy(a[::2])
    assert y.stride() == (2,) and y.untyped_storage().nbytes() == 72
    with pytest.raises(RuntimeError, match=OUT):
        y.as_strided((10,), (1,))
    z = torch.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert z.as_strided((6,), (1,)).tolist() == [0, 3, 1, 4, 2, 5]
    with pytest.raises(RuntimeError, match=OUT):
        z.as_strided((7,), (1,))
    with pytest.raises(ValueError, match="not a multiple of the element byte size"):
        torch.from_numpy(np.zeros(3, [("a", "i1"), ("b", "f4")])["b"])


def test_one_handle_for_a_storage(device):
    x = torch.arange(6.0, device=device)
    s = x.untyped_storage()
    assert s is x[2:].untyped_storage() is x.view(2, 3).t().untyped_storage() is x.detach().untyped_storage()
    assert s is not x.clone().untyped_storage() and len(s) == s.nbytes() == s.size() == 24
    assert s.device == x.device and s.data_ptr() == x.data_ptr() and s._cdata == x._typed_storage()._cdata
    s.extra = 1
    assert x.untyped_storage().extra == 1
    del s
    gc.collect()
    assert x.untyped_storage().extra == 1
    assert torch.empty(0, device=device).data_ptr() == x[6:].data_ptr() == 0


def test_resize(device):
    x = torch.arange(12.0, device=device)
    view, turned = x[4:], x.view(3, 4).t()
    assert x.resize_(5) is x and x.tolist() == [0, 1, 2, 3, 4] and x.untyped_storage().nbytes() == 48
    x.resize_(12)
    assert x.tolist() == list(range(12))
    before = x.untyped_storage()
    x.resize_(4, 5)
    assert x.untyped_storage() is view.untyped_storage() is before and before.nbytes() == 80
    view.fill_(7)
    assert x.reshape(-1)[:12].tolist() == [0, 1, 2, 3] + [7] * 8 and turned[:, 0].tolist() == [0, 1, 2, 3]
    tail = torch.arange(12.0, device=device)[8:]
    assert tail.resize_(2, 2).storage_offset() == 8 and tail.tolist() == [[8, 9], [10, 11]]
    kept = torch.zeros(2, 3, device=device).t()
    assert kept.resize_(3, 2).stride() == (1, 3) and kept.resize_(2, 3).stride() == (3, 1)
    lasts = torch.empty(2, 3, 4, 5, device=device).resize_(2, 3, 4, 6, memory_format=torch.channels_last)
    assert lasts.stride() == (72, 1, 18, 3)
    for size in ((-5,), (2, -5), (2**62, 4)):
        with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
            x.resize_(size)
    assert x.shape == (4, 5)


def test_storage_resize_takes_its_tensors_along(device):
    x = torch.arange(6.0, device=device)
    view, turned = x[2:], x.view(2, 3).t()
    s = x.untyped_storage()
    s.resize_(0)
    assert s.nbytes() == view.untyped_storage().nbytes() == 0 and x.shape == (6,) and turned.shape == (3, 2)
    s.resize_(24)
    x.copy_(torch.arange(6.0, device=device))
    assert view.tolist() == [2, 3, 4, 5] and turned.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert view.storage_offset() == 2 and turned.stride() == (1, 3)


def test_memory_that_others_hold_is_not_resized():
    message = "Trying to resize storage that is not resizable"
    x = torch.zeros(3)
    assert x.untyped_storage().resizable()
    array = x.numpy()
    assert not x.untyped_storage().resizable() and x.resize_(2).shape == (2,)
    with pytest.raises(RuntimeError, match=message):
        x.resize_(10)
    array[:] = 5
    assert x.tolist() == [5, 5]
    for made in (
        torch.from_numpy(np.zeros(3)),
        torch.from_numpy(np.zeros(5)[1:]),
        torch.frombuffer(bytearray(8), dtype=torch.int8),
    ):
        with pytest.raises(RuntimeError, match=message):
            made.resize_(100)


def test_set(device):
    source = torch.arange(12.0, device=device)
    x = torch.empty(0, device=device)
    assert x.set_(source.untyped_storage()) is x and x.tolist() == source.tolist()
    assert x.set_(source.untyped_storage(), 2, (2, 3), (1, 2)).tolist() == [[2, 4, 6], [3, 5, 7]]
    assert x.set_(source._typed_storage(), 3, (4,)).tolist() == [3, 4, 5, 6] and x.storage_offset() == 3
    x[0] = 99
    assert source[3] == 99 and x.set_(source).is_set_to(source)
    small = torch.arange(2.0, device=device)
    assert x.set_(small, 1, (4,)).shape == (4,) and small.untyped_storage().nbytes() == 20 and x[0] == 1
    x.set_()
    assert x.shape == (0,)
    with pytest.raises(RuntimeError, match="Expected a Storage of type Float or an UntypedStorage, but got type Int"):
        x.set_(torch.zeros(3, dtype=torch.int32, device=device)._typed_storage())
    with pytest.raises(RuntimeError, match="invalid storage offset -1"):
        x.set_(source.untyped_storage(), -1, (2,))
    with pytest.raises(RuntimeError, match="the devices must match"):
        x.set_(torch.zeros(2, device="meta").untyped_storage())


def test_deep_copies_preserve_shared_storage(device):
    x = torch.arange(6.0, device=device)
    parts = [x, x.view(2, 3).t(), x[2:], x.untyped_storage(), x._typed_storage()]
    for again in (copy.deepcopy(parts), load(save(parts))):
        again[0].fill_(3)
        assert again[1].stride() == (1, 3) and again[2].storage_offset() == 2
        assert again[1].tolist() == [[3, 3]] * 3 and again[2].tolist() == [3] * 4 and again[4][5] == 3
        assert again[3] is again[0].untyped_storage() or again[3]._cdata == again[0].untyped_storage()._cdata
    assert x.tolist() == list(range(6))


def test_saved_views_of_expanded_columns_share_their_base(device):
    base = torch.arange(24.0, device=device).reshape(4, 6)
    y = base[:, 1:3].expand(2, 4, 2)
    assert y.storage_offset() == 1 and y.as_strided((2,), (1,), 1).tolist() == [1, 2]
    again, seen = load(save((base, y)))
    again[0, 1] = -1
    assert seen[0, 0, 0] == -1 and seen.stride() == (0, 6, 1)


def save(value):
    file = io.BytesIO()
    torch.save(value, file)
    return file


def load(file):
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_untyped_storage():
    s = torch.UntypedStorage([1, 2, 300])
    assert s.tolist() == list(s) == [1, 2, 44] and s[-1] == 44 and s.element_size() == 1
    part = s[1:]
    assert type(part) is torch.UntypedStorage and part.tolist() == [2, 44]
    part[0] = 9
    s[2:3] = 5
    assert s.tolist() == [1, 9, 5] and s.clone().fill_(7).tolist() == [7, 7, 7] and s != s.clone()
    assert s.resize_(5).nbytes() == 5 and s.untyped() is s and not s.is_shared() and s.filename is None
    assert s.float().dtype is torch.float32 and s.float().tolist()[:3] == [1, 9, 5]
    assert s.__sizeof__() - torch.UntypedStorage().__sizeof__() == 5
    assert repr(torch.UntypedStorage([1, 2])) == " 1\n 2\n[torch.storage.UntypedStorage(device=cpu) of size 2]"
    assert repr(torch.UntypedStorage(4, device="meta")) == "...\n[torch.storage.UntypedStorage(device=meta) of size 4]"
    assert pickle.loads(pickle.dumps(torch.UntypedStorage([1, 2]))).tolist() == [1, 2]
    assert torch.UntypedStorage([1, 2]).copy_(torch.UntypedStorage([3, 4])).tolist() == [3, 4]
    swapped = torch.UntypedStorage([1, 2, 3, 4])
    swapped.byteswap(torch.int16)
    assert swapped.tolist() == [2, 1, 4, 3]
    assert torch.UntypedStorage._new_shared(4).is_shared()
    for wrong, error in (
        (lambda: s[9], IndexError), (lambda: s["a"], TypeError), (lambda: s[::2], RuntimeError),
        (lambda: torch.UntypedStorage("a"), RuntimeError), (lambda: torch.UntypedStorage(3.5), RuntimeError),
        (lambda: s.copy_(torch.UntypedStorage(1)), RuntimeError),
        (lambda: torch.UntypedStorage(2, device="meta")[0], NotImplementedError),
    ):  # fmt: skip
        with pytest.raises(error):
            wrong()


def test_typed_storage():
    s = torch.FloatStorage([1, 2])
    assert type(s) is torch.TypedStorage and isinstance(s, torch.FloatStorage) and not isinstance(s, torch.IntStorage)
    assert s.dtype is torch.float32 and s.type() == "torch.FloatStorage" and s.pickle_storage_type() == "FloatStorage"
    assert s.int().tolist() == [1, 2] and s.double().type() == "torch.DoubleStorage" and s.untyped().nbytes() == 8
    s[0] = 5.5
    assert s[0] == 5.5 and s.fill_(2).tolist() == [2, 2] and len(s) == 2 and torch.is_storage(s)
    assert torch.FloatTensor(s).tolist() == torch.tensor(s).tolist() == [2, 2]
    assert torch.TypedStorage(wrap_storage=s.untyped(), dtype=torch.int16).size() == 4
    assert torch.TypedStorage([1, 2], dtype=torch.complex64).tolist() == [1, 2]
    assert torch.FloatStorage.from_buffer(b"\0\0\x80?", "little").tolist() == [1.0]
    assert torch.FloatStorage.from_buffer(b"?\x80\0\0", "big").tolist() == [1.0]
    assert torch.zeros(2, dtype=torch.float64).storage_type() is torch.DoubleStorage
    assert pickle.loads(pickle.dumps(s)).tolist() == [2, 2]
    words = "received an invalid combination of arguments"
    for wrong, error in (
        (lambda: torch.FloatStorage(3, dtype=torch.float32), RuntimeError),
        (lambda: torch.FloatStorage(3, device="cpu"), RuntimeError),
        (lambda: torch.FloatStorage(0, 0), RuntimeError),
        (lambda: torch.FloatStorage(wrap_storage=s), TypeError),
        (lambda: torch.TypedStorage(wrap_storage=s.untyped()), RuntimeError),
        (lambda: torch.TypedStorage(torch.zeros(2), dtype=torch.float32), TypeError),
    ):
        with pytest.raises(error, match=words):
            wrong()
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
        s[0:1]


def test_typed_storages_are_deprecated():
    torch.storage._reset_warn_typed_storage_removal()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        torch.zeros(2).storage()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.zeros(2).storage()  # once


def test_shared_memory_moves_the_storage():
    x = torch.arange(6.0)
    view = x[2:]
    assert not x.is_shared() and x.share_memory_() is x
    assert view.is_shared() and view.tolist() == [2, 3, 4, 5] and not x.untyped_storage().resizable()
    view.zero_()
    assert x.tolist() == [0, 1, 0, 0, 0, 0]


def test_from_file(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(4.0, dtype=np.float32).tobytes())
    private = torch.from_file(str(path), size=4)
    private[0] = 9
    assert private.tolist() == [9, 1, 2, 3] and torch.from_file(str(path), size=4).tolist() == [0, 1, 2, 3]
    shared = torch.from_file(str(path), shared=True, size=6, dtype=torch.float32)
    shared[5] = 8
    assert torch.from_file(str(path), size=6).tolist() == [0, 1, 2, 3, 0, 8]
    assert shared.untyped_storage().filename == str(path) and private.untyped_storage().filename is None
    with pytest.raises(RuntimeError):
        torch.from_file(str(path), size=100)
    with pytest.raises(RuntimeError):
        torch.UntypedStorage.from_file(str(tmp_path / "absent"))


def test_memory_read_as_another_dtype(device):
    x = torch.arange(16.0, device=device).reshape(4, 4)
    assert x[1:].view(torch.float64).storage_offset() == 2 and x.view(torch.int16).stride() == (8, 1)
    assert torch.zeros(3, 0, device=device).view(torch.float16).stride() == (2, 1)
    for wrong, message in (
        (
            lambda: x[:, 1:3].view(torch.float64),
            r"self.storage_offset\(\) must be divisible by 2 to view Float as Double",
        ),
        (lambda: x.as_strided((2, 2), (3, 1)).view(torch.float64), r"self.stride\(0\) must be divisible by 2"),
        (lambda: x[:, ::2].view(torch.float64), r"self.stride\(-1\) must be 1 to view Float as Double"),
        (lambda: x[0, 0].view(torch.float64), r"self.dim\(\) cannot be 0"),
        (lambda: x[:, :3].view(torch.float64), r"self.size\(-1\) must be divisible by 2"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()


def test_memory_that_is_not_set_in_deterministic_mode(device):
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(2, device=device).isnan().all() and torch.empty(1, dtype=torch.bool, device=device).all()
        assert torch.empty_strided((2, 2), (1, 5), dtype=torch.int8, device=device).eq(127).all()
        x = torch.zeros(3, device=device)
        assert x.resize_(5)[:3].eq(0).all() and x[3:].isnan().all()
        torch.utils.deterministic.fill_uninitialized_memory = False
        assert torch.utils.deterministic.fill_uninitialized_memory is False
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.mark.parametrize(
    "make",
    [
        lambda out: torch.arange(4.0, out=out),
        lambda out: torch.linspace(0, 3, 4, out=out),
        lambda out: torch.range(0, 3, out=out),
        lambda out: torch.logspace(0, 3, 4, base=2, out=out).log2_(),
    ],
)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_a_row_of_values_fits_any_out_of_as_many(make, device):
    x = torch.zeros(2, 3, device=device)
    make(x.narrow(1, 1, 2))
    assert x.tolist() == [[0, 0, 1], [0, 2, 3]]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.set_(torch.zeros(3)),
        lambda x: x.set_(torch.zeros(3).untyped_storage(), 0, (3,), (1,)),
        lambda x: x.set_(),
        lambda x: x.fill_(2),
        lambda x: x.copy_(torch.zeros(3)),
        lambda x: x.resize_(4),
        lambda x: x.fill_diagonal_(1) if x.ndim > 1 else x.zero_(),
    ],
)
def test_backward_notices_what_replaces_a_saved_tensors_memory(change):
    weight, x = torch.ones(3, requires_grad=True), torch.ones(3)
    product = weight * x
    version = x._version
    change(x)
    assert x._version == version + 1
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        product.sum().backward()


# -- moves of a storage that one tensor has ----------------------------------------------------------


@pytest.fixture
def scans(monkeypatch):
    """The number of looks at all objects of the process."""
    counts, find = [], storage._find_tensors_of_storage

    def record(owner, names):
        counts.append(names)
        return find(owner, names + 1)

    monkeypatch.setattr(storage, "_find_tensors_of_storage", record)
    return counts


def test_moves_of_the_only_tensor_look_at_no_other_object(scans):
    x = torch.tensor([[0.0, 1, 2], [3, 4, 5]])
    x.share_memory_()
    assert x.is_shared() and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    y = torch.arange(6.0)
    held = y.untyped_storage()
    for _ in range(3):  # a reversible layer frees its input and gets it back
        held.resize_(0)
        held.resize_(24)
        y.copy_(x.flatten())
    assert y.tolist() == [0, 1, 2, 3, 4, 5] and y.untyped_storage() is held
    assert torch.rand(4).untyped_storage().resize_(64).nbytes() == 64
    parts = torch.nn.Linear(3, 3).share_memory()
    assert parts.weight.is_shared() and not scans


@pytest.mark.parametrize(
    "share",
    [
        lambda x: x[1:],
        lambda x: x.detach(),
        lambda x: x.t(),
        lambda x: x.view(torch.int32),
        lambda x: x.untyped_storage() and x.T[0],
        lambda x: torch.nn.Parameter(x),
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=lambda first: f"first={first}")
def test_all_tensors_of_a_storage_move(share, first, scans):
    x = torch.ones(4, 3)
    other = share(x)
    moved, rest = (x, other) if first else (other, x)
    moved.share_memory_()
    assert x.is_shared() and other.is_shared() and scans
    rest.data.fill_(7)
    assert (x.view(rest.dtype) == 7).any()
    assert x.data_ptr() == x.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(3.5),
        lambda: torch.arange(24.0).view(2, 3, 4).to(memory_format=torch.preserve_format),
        lambda: torch.arange(24.0).view(4, 6).t().clone(),
        lambda: torch.rand(1, 2, 3, 4).to(memory_format=torch.channels_last),
        lambda: torch.tensor([True, False, True]),
        lambda: torch.arange(5).to(torch.bfloat16),
        lambda: torch.arange(9) + 1j,
        lambda: torch.arange(300_000),
        lambda: torch.empty(0, 3),
    ],
)
@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_a_single_tensor_keeps_its_elements_and_strides_in_shared_memory(make, strategy, monkeypatch):
    monkeypatch.setattr(shared_memory.SharingStrategy, "strategy", strategy)
    x = make()
    before, stride = x.tolist(), x.stride()
    held = len(shared_memory.own_mappings)
    assert x.share_memory_() is x and x.is_shared()
    assert x.tolist() == before and x.stride() == stride and not x.untyped_storage().resizable()
    place = x.data_ptr()
    assert x.share_memory_().data_ptr() == place
    del x
    assert len(shared_memory.own_mappings) == held


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 does not count the references of local names")
def test_young_tensors_of_a_storage_are_found_without_a_look_at_old_objects(monkeypatch):
    looked, live = [], storage.live_tensors
    monkeypatch.setattr(storage, "live_tensors", lambda generation=None: looked.append(generation) or live(generation))
    gc.collect()
    x = torch.ones(4, 3)
    parts = x.detach(), x[1:], x.t()
    x.untyped_storage().resize_(0)
    assert looked == [0] and {part.untyped_storage().nbytes() for part in (x, *parts)} == {0}


@pytest.mark.parametrize("share", [lambda x: x[1:], lambda x: x.detach(), lambda x: x[1:].data])
@pytest.mark.parametrize("saved", [False, True], ids=lambda saved: f"saved={saved}")
def test_old_tensors_of_a_storage_move_with_young_ones(share, saved):
    x = torch.ones(4, 3)
    old = share(x)
    loss = (old * torch.ones(3, requires_grad=True)).sum() if saved else None
    for _ in range(2):
        gc.collect()
    young = share(x)
    x.untyped_storage().resize_(64).fill_(0)
    assert x.sum() == young.sum() == old.sum() == 0 and (loss is None or loss == old.numel())
    assert old.untyped_storage() is young.untyped_storage() is x.untyped_storage()


def test_the_other_tensor_moves_when_the_first_is_gone():
    x = torch.arange(4.0)
    held, other = x.untyped_storage(), x[1:]
    del x
    held.resize_(32)
    held.fill_(0)
    assert other.tolist() == [0, 0, 0]
    del other
    assert held.resize_(8).nbytes() == 8


def test_a_tensor_of_a_storage_has_its_memory():
    storage = torch.UntypedStorage(8)
    whole = torch.tensor(storage)
    assert whole.dtype is torch.int64 and whole.shape == (1,) and whole.untyped_storage() is storage
    assert torch.as_tensor(storage).data_ptr() == storage.data_ptr()
    part = torch.tensor(storage, dtype=torch.float32, requires_grad=True)
    assert part.shape == (2,) and part.requires_grad and part.data_ptr() == storage.data_ptr()


def test_a_storage_of_a_storage_is_a_copy():
    class Own(torch._C.StorageBase):
        pass

    first = torch.UntypedStorage([1, 2])
    second = Own(first)
    assert type(second) is Own and second.tolist() == [1, 2] and second.data_ptr() != first.data_ptr()
