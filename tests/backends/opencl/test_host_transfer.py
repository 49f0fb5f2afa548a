"""Tensors between the host and OpenCL devices: moves, checkpoints, batches, errors, and how often anything goes to the
host.
"""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool", "complex64"]


@pytest.fixture(autouse=True)
def where(opencl):
    return torch.device("opencl", torch.device(opencl).index or 0)


@pytest.fixture
def other(where):
    """A second device."""
    if torch.opencl.device_count() < 2:
        pytest.skip("there is one device")
    return torch.device("opencl", 1 if where.index == 0 else 0)


@pytest.fixture
def counts():
    from torchlite_backends.device_runtime.core import host_transfer

    return host_transfer.TRANSFER_COUNTS


def values(dtype="float32", *shape):
    return torch.arange(int(np.prod(shape))).reshape(shape).to(getattr(torch, dtype))


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.permute(2, 0, 1),
    "sliced": lambda x: x[:, ::2, 1:],
    "one": lambda x: x[1, 2, 3],
    "row": lambda x: x[1, :, 2],
    "empty": lambda x: x[:0],
    "expanded": lambda x: x[:1].expand(3, 3, 4),
    "flipped": lambda x: x.flip(0, 2),
    "inner": lambda x: x.transpose(1, 2)[1:],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(where, dtype, layout):
    if dtype == "float64" and not torch.opencl.get_device_properties(where).has_fp64:
        pytest.skip("the device has no double precision")
    x = values(dtype, 2, 3, 4)
    here = LAYOUTS[layout](x)
    there = here.to(where)
    assert there.device == where and there.dtype is here.dtype and there.shape == here.shape and there.is_opencl
    back = there.cpu()
    assert back.device.type == "cpu" and back.dtype is here.dtype and back.tolist() == here.tolist()
    assert LAYOUTS[layout](x.to(where)).cpu().tolist() == here.tolist()  # the layout made on the device
    if here.is_contiguous() or layout == "transposed":  # memory without gaps keeps its order
        assert here.numel() == 0 or there.stride() == back.stride() == here.stride()


def test_arguments_of_to(where):
    x = values("float32", 3)
    y = x.to(where)
    assert y.to(where) is y and y.to("opencl" if where.index == 0 else where) is y and y.to(where, copy=True) is not y
    for z in (
        x.to(where, torch.int64),
        x.to(device=where, dtype=torch.int64),
        x.to(torch.ones(1, device=where, dtype=torch.int64)),
        x.to(where, torch.int64, True),
    ):
        assert z.device == where and z.dtype is torch.int64 and z.tolist() == [0, 1, 2]
    assert x.to(where, non_blocking=True).tolist() == x.tolist() == x.opencl(where).tolist()
    assert y.to("cpu", non_blocking=True).tolist() == x.tolist() == y.to("cpu", torch.float64).tolist()
    assert (
        y.get_device() == where.index
        and x.get_device() == -1
        and y.type() == "torch.opencl.FloatTensor"
        and not y.is_cpu
    )


def test_uploads_take_a_copy(where):
    array = np.arange(1000, dtype=np.float32)
    x = torch.from_numpy(array).to(where, non_blocking=True)
    array[:] = -1
    big = np.ones(1 << 20, np.float32)
    y = torch.from_numpy(big).to(where)
    big[:] = -1
    assert x.sum().item() == 499500 and y.sum().item() == 1 << 20


def test_copies_to_and_from_the_device(where):
    x = torch.zeros(2, 3, device=where)
    x.copy_(torch.tensor([1, 2, 3]))  # broadcast, cast, from the host
    assert x.tolist() == [[1, 2, 3]] * 2
    x[:, 1].copy_(torch.tensor([7.0, 8.0]))
    here = torch.zeros(3, 2, dtype=torch.float64).t()
    here.copy_(x)
    assert here.tolist() == [[1, 7, 3], [1, 8, 3]]
    here[0].copy_(x[1], non_blocking=True)
    assert here[0].tolist() == [1, 8, 3]
    x[0] = torch.tensor([4.0, 5.0, 6.0], device=where)
    x.data = x.data + 1
    assert x.tolist() == [[5, 6, 7], [2, 9, 4]]
    with pytest.raises(RuntimeError, match=r"must match|doesn't match|could not be broadcast"):
        x.copy_(torch.ones(4))


def test_between_devices(where, other):
    x = torch.arange(6.0, device=where).reshape(2, 3)
    y = x.t().to(other)
    assert y.device == other and y.tolist() == [[0, 3], [1, 4], [2, 5]] and y.stride() == (1, 3)
    x.copy_(torch.ones(2, 3, device=other))
    assert x.tolist() == [[1] * 3] * 2
    with pytest.raises(
        RuntimeError,
        match="Expected all tensors to be on the same device, but found at least two devices, opencl:[01] and "
        "opencl:[01]!",
    ):
        x + torch.ones(2, 3, device=other)
    w = torch.ones(3, device=where, requires_grad=True)
    (w.to(other) * 3).to(where).cpu().sum().backward()
    assert w.grad.tolist() == [3, 3, 3] and w.grad.device == where


MIXED = {
    "add": lambda x, y: x + y,
    "matmul": lambda x, y: x @ y,
    "cat": lambda x, y: torch.cat([x, y]),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "linear": lambda x, y: nn.functional.linear(x, y),
    "gather": lambda x, y: x.gather(0, y.long()),
    "mse_loss": lambda x, y: nn.functional.mse_loss(x, y),
    "index": lambda x, y: torch.index_select(x, 0, y[0].long()),
    "copy in place": lambda x, y: x.add_(y),
}


@pytest.mark.parametrize("name", MIXED)
def test_two_devices_in_one_op(where, name):
    x, y = torch.ones(2, 2, device=where), torch.ones(2, 2)
    with pytest.raises(
        RuntimeError,
        match="Expected all tensors to be on the same device, but found at least two devices, opencl:[01] and cpu!",
    ):
        MIXED[name](x, y)
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"
    ):
        MIXED[name](y, x)


def test_a_number_of_the_host_goes_along(where):
    x = torch.ones(2, device=where)
    assert (
        (x * torch.tensor(3.0)).tolist() == [3, 3]
        and (torch.tensor(3.0) - x).device == where
        and torch.where(x > 0, x, torch.tensor(0.0)).tolist() == [1, 1]
    )


def test_numpy_asks_for_the_host(where):
    x = torch.ones(2, device=where)
    message = (
        rf"can't convert {where} device type tensor to numpy. "
        r"Use Tensor.cpu\(\) to copy the tensor to host memory first."
    )
    for use in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.array(x)):
        with pytest.raises(TypeError, match=message):
            use()
    assert x.numpy(force=True).tolist() == [1, 1] and x.cpu().numpy().tolist() == [1, 1]
    assert (
        x.tolist() == [1, 1]
        and x[0].item() == 1
        and float(x[1]) == 1
        and bool(x[0] > 0)
        and int(x.sum()) == 2
        and f"{x.sum():.1f}" == "2.0"
    )


def test_printing(where):
    assert (
        repr(torch.tensor([[1.0, 2.5], [-3.0, 4.0]], device=where))
        == f"tensor([[ 1.0000,  2.5000],\n        [-3.0000,  4.0000]], device='{where}')"
    )
    assert repr(torch.tensor(3, device=where)) == f"tensor(3, device='{where}')"
    assert (
        repr(torch.ones(2, device=where, requires_grad=True))
        == f"tensor([1., 1.], device='{where}', requires_grad=True)"
    )
    assert repr(torch.zeros(0, device=where)) == f"tensor([], device='{where}')"
    assert "..." in repr(torch.arange(2000, device=where))


def test_pinned_memory(where):
    x = torch.ones(3).pin_memory()
    assert x.to(where, non_blocking=True).tolist() == [1, 1, 1]


# -- checkpoints, pickles, copies ---------------------------------------------------------------


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_checkpoints(where, dtype):
    if dtype == "float64" and not torch.opencl.get_device_properties(where).has_fp64:
        pytest.skip("the device has no double precision")
    x = values(dtype, 3, 4).to(where)
    value = {"x": x, "row": x[1], "turned": x.t()}
    for options, expected in (
        ({}, where),
        ({"map_location": "cpu"}, torch.device("cpu")),
        ({"map_location": {str(where): "cpu"}}, torch.device("cpu")),
        ({"map_location": lambda storage, location: storage}, torch.device("cpu")),
        ({"map_location": where}, where),
    ):
        found = saved(value, **options)
        assert all(
            found[k].device == expected and found[k].dtype is x.dtype and found[k].tolist() == value[k].tolist()
            for k in value
        )
        found["x"][1, 0] = 1
        assert (
            found["row"].tolist()[0] == found["turned"].tolist()[0][1] == found["x"].tolist()[1][0]
        )  # views share as before
    assert saved(x.cpu(), map_location=where).device == where


def test_checkpoint_of_a_device_that_is_not_there(where):
    file = io.BytesIO()
    torch.save(torch.ones(3, device=where), file)
    data = file.getvalue()
    assert str(where).encode() in data
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on an OpenCL device"):
        torch.load(io.BytesIO(data), map_location="opencl:9")


def test_pickle_and_deepcopy(where):
    x = torch.ones(3, device=where, requires_grad=True)
    (x * 2).sum().backward()
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.device == where and y.requires_grad and y.tolist() == [1, 1, 1] and y is not x
    assert copy.deepcopy(x).grad.tolist() == [2, 2, 2]
    with torch.no_grad():
        y = copy.deepcopy(x).add_(1)
    assert x.tolist() == [1, 1, 1] and y.tolist() == [2, 2, 2]
    model = nn.Linear(2, 2).to(where)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (
            again.weight.device == where
            and again.weight.tolist() == model.weight.tolist()
            and again.weight is not model.weight
        )


def test_storages(where):
    x = torch.arange(6.0, device=where).reshape(2, 3)
    assert x[1].untyped_storage() == x.untyped_storage() != torch.arange(6.0, device=where).untyped_storage()
    assert (
        x[1].data_ptr() - x.data_ptr() == 12
        and x[1].storage_offset() == 3
        and x.untyped_storage().nbytes() == x[1].untyped_storage().nbytes() == 24
    )
    assert x[1]._typed_storage()._tensor.tolist() == [0, 1, 2, 3, 4, 5] and x.clone().data_ptr() != x.data_ptr()


def test_modules_and_optimizers(where):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    twin = copy.deepcopy(model).to(where)
    assert all(t.device == where for t in twin.state_dict().values())
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.1)
    twin(torch.ones(3, 4, device=where)).sum().backward()
    optimizer.step()
    model.load_state_dict(twin.state_dict())  # to the host
    assert next(model.parameters()).device.type == "cpu" and model[0].weight.tolist() == twin[0].weight.tolist()
    host = torch.optim.Adam(model.parameters(), lr=0.1)
    host.load_state_dict(optimizer.state_dict())
    assert all(s["exp_avg"].device.type == "cpu" for s in host.state.values())
    optimizer.load_state_dict(saved(host.state_dict()))  # and back
    assert all(s["exp_avg"].device == where for s in optimizer.state.values())
    assert twin.cpu()[0].weight.device.type == "cpu" and twin.to(where)[0].weight.device == where


def test_generators(where):
    g = torch.Generator(device=where).manual_seed(5)
    a = torch.rand(8, device=where, generator=g)
    assert g.device == where and torch.Generator(where).manual_seed(5).initial_seed() == 5
    state = g.get_state()
    b = torch.randn(8, device=where, generator=g)
    g.set_state(state)
    assert torch.randn(8, device=where, generator=g).tolist() == b.tolist() and a.tolist() != b.tolist()
    again = pickle.loads(pickle.dumps(g))
    assert (
        again.device == where
        and torch.rand(8, device=where, generator=again).tolist() == torch.rand(8, device=where, generator=g).tolist()
    )
    with torch.random.fork_rng(devices=[where.index], device_type="opencl"):
        c = torch.rand(4, device=where).tolist()
    assert torch.rand(4, device=where).tolist() == c


def test_batches_of_a_data_loader(where):
    data = torch.utils.data.TensorDataset(torch.arange(10.0), torch.arange(10))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    seen = [(x.to(where, non_blocking=True), y.to(where)) for x, y in loader]
    assert [x.tolist() for x, _ in seen] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and all(
        y.device == where for _, y in seen
    )
    on_device = torch.utils.data.TensorDataset(torch.arange(5.0, device=where))
    batches = [x for (x,) in torch.utils.data.DataLoader(on_device, batch_size=2)]
    assert [x.tolist() for x in batches] == [[0, 1], [2, 3], [4]] and all(x.device == where for x in batches)


def test_worker_processes(where):
    """Forked workers load on the host while the parent uses the device; touching the device in a worker raises."""
    data = torch.arange(12.0).reshape(6, 2)
    with torch.no_grad():
        model = nn.Linear(2, 1).to(where)
        for batch in torch.utils.data.DataLoader(data, batch_size=3, num_workers=2):
            assert model(batch.to(where)).shape == (3, 1)
    loader = torch.utils.data.DataLoader(data.to(where), batch_size=3, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="Cannot re-initialize OpenCL in forked subprocess"):
        next(iter(loader))


def test_default_device(where):
    with where:
        assert (
            torch.ones(2).device
            == torch.tensor([1.0]).device
            == torch.arange(3).device
            == nn.Linear(1, 1).weight.device
            == where
        )


# -- how often anything goes to the host -----------------------------------------------------------


def network(kind):
    if kind == "mlp":
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(32), nn.Linear(32, 4)), (8, 16)
    if kind == "convolution":
        return nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(4 * 4 * 4, 4),
        ), (8, 2, 8, 8)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(5 * 16, 4)), (8, 5, 16)


@pytest.mark.parametrize("kind", ["mlp", "convolution", "transformer"])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
def test_a_training_step_reads_nothing_but_the_loss(where, counts, kind, optimizer):
    model, shape = network(kind)
    model.to(where)
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01)
    x, y = torch.randn(shape).to(where), torch.tensor([0, 1, 2, 3] * 2).to(where)

    def train():
        step.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        step.step()
        return loss

    train()
    before = dict(counts)
    losses = [train() for _ in range(3)]
    assert counts == before, "elements went between host and device within a training step"
    read = [loss.item() for loss in losses]
    assert counts == {**before, "to_host": before["to_host"] + 3} and all(np.isfinite(read))


def test_mapped_memory(where):
    from torchlite_backends.device_runtime.core.host_transfer import map_to_host

    x = torch.arange(12.0, device=where).reshape(3, 4)
    if not x._tl_array.device.is_cpu:
        with pytest.raises(ValueError, match="CPU devices"):
            map_to_host(x._tl_array)
        return
    y = x + 1
    with map_to_host(y[1:]._tl_array) as a:
        assert a.tolist() == [[5, 6, 7, 8], [9, 10, 11, 12]]
    with map_to_host(y._tl_array, write=True) as a:
        a *= 2
    assert (y - 1).tolist()[0] == [1, 3, 5, 7]
    with map_to_host(torch.zeros(0, 3, device=where)._tl_array) as a:
        assert a.shape == (0, 3)
    with pytest.raises(ValueError, match="contiguous"):
        map_to_host(y.t()._tl_array)
