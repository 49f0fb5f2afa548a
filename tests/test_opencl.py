"""torch.opencl has the functions of torch.cuda for OpenCL devices."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import torchlite as torch

ocl = torch.opencl


@pytest.fixture(autouse=True)
def index(opencl):
    return torch.device(opencl).index or 0


def test_names_are_those_of_torch_cuda():
    for name in ocl.__all__:
        assert getattr(ocl, name).__doc__, name
    assert ocl.is_available() and ocl.device_count() >= 1 and ocl.why_not() == ""


def test_properties(index):
    found = ocl.get_device_properties(index)
    assert (
        found.name == ocl.get_device_name(index)
        and found.name in repr(found)
        and repr(found).startswith("_OpenCLDeviceProperties(name=")
    )
    assert (
        found.total_memory >= found.max_allocation > 2**20
        and found.max_work_group_size >= 1
        and found.multi_processor_count >= 1
    )
    assert (
        found.type in ("gpu", "accelerator", "cpu", "other")
        and isinstance(found.has_fp64, bool)
        and isinstance(found.has_fp16, bool)
    )
    assert found.version.startswith("OpenCL ") and found.driver_version and found.platform
    assert (
        ocl.get_device_properties(f"opencl:{index}")
        == found
        == ocl.get_device_properties(torch.device("opencl", index))
    )


def test_devices_that_are_not_there():
    there = ocl.device_count()
    with pytest.raises(RuntimeError, match=rf"device opencl:{there}: invalid device ordinal; {there} opencl device"):
        torch.ones(2, device=f"opencl:{there}")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        ocl.set_device(there)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        ocl.get_device_name(there)
    with pytest.raises(ValueError, match="Expected an opencl device, but got: cpu"):
        ocl.get_device_name("cpu")


def test_current_device():
    assert ocl.current_device() == 0
    assert torch.ones(1, device="opencl").device == torch.device("opencl:0")
    last = ocl.device_count() - 1
    with ocl.device(last):
        assert ocl.current_device() == last and torch.ones(1, device="opencl").device == torch.device("opencl", last)
        with ocl.device(-1), ocl.device(None):
            assert ocl.current_device() == last
        seen = []
        thread = threading.Thread(target=lambda: seen.append(ocl.current_device()))  # each thread has its own
        thread.start()
        thread.join()
        assert seen == [0]
    assert ocl.current_device() == 0
    with ocl.device_of(torch.ones(1, device=f"opencl:{last}")):
        assert ocl.current_device() == last
    with ocl.device_of(torch.ones(1)):
        assert ocl.current_device() == 0


def test_events(index):
    with ocl.device(index):
        start, end, plain = ocl.Event(enable_timing=True), ocl.Event(enable_timing=True), ocl.Event()
        assert start.query() and "not recorded" in repr(start)
        start.synchronize()
        with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
            start.elapsed_time(end)
        x = torch.ones(500, 500, device="opencl")
        start.record()
        for _ in range(20):
            x = x * 1.0001 + 0.1
        end.record()
        plain.record(ocl.current_stream())
        end.synchronize()
        plain.synchronize()
        assert end.query() and plain.query() and start.device == torch.device("opencl", index)
        assert 0 < start.elapsed_time(end) < 60_000
        with pytest.raises(ValueError, match="enable_timing=True"):
            start.elapsed_time(plain)
        end.wait()


def test_streams(index):
    with ocl.device(index):
        default = ocl.current_stream()
        one, other = ocl.Stream(), ocl.Stream(device=index, priority=-1)
        assert (
            default == ocl.default_stream()
            and one != other
            and len({one, other, default}) == 3
            and one.device == torch.device("opencl", index)
        )
        x = torch.zeros(1000, device="opencl")
        with ocl.stream(one):
            assert ocl.current_stream() == one
            y = x + 1
            with other:
                assert ocl.current_stream() == other
                other.wait_stream(one)
                z = y + 1
            assert ocl.current_stream() == one
            event = one.record_event()
        assert ocl.current_stream() == default
        default.wait_event(event)
        with ocl.stream(None):
            assert ocl.current_stream() == default
        assert z.sum().item() == 2000
        one.synchronize()
        deadline = time.monotonic() + 20
        while not (one.query() and other.query()):  # on a busy machine the driver may need another moment
            assert time.monotonic() < deadline
        ocl.set_stream(one)
        assert ocl.current_stream() == one
        ocl.set_stream(default)


def test_synchronize(index):
    ocl.synchronize(index)
    ocl.synchronize(f"opencl:{index}")
    ocl.synchronize()


# -- memory -------------------------------------------------------------------------------


def test_memory_is_counted(index):
    where = f"opencl:{index}"
    torch.ones(1, device=where)
    ocl.empty_cache()
    before = ocl.memory_allocated(where)
    ocl.reset_peak_memory_stats(where)
    x = torch.empty(1 << 20, device=where)
    y = torch.empty(1 << 20, device=where)
    assert ocl.memory_allocated(where) - before == 2 << 22 == ocl.max_memory_allocated(where) - before
    del y
    assert ocl.memory_allocated(where) - before == 1 << 22 and ocl.max_memory_allocated(where) - before == 2 << 22
    assert ocl.memory_reserved(where) >= ocl.memory_allocated(where) + (1 << 22)
    ocl.empty_cache()
    assert ocl.memory_reserved(where) < ocl.memory_allocated(where) + (1 << 22) <= ocl.max_memory_reserved(where)
    ocl.reset_peak_memory_stats(where)
    assert ocl.max_memory_allocated(where) == ocl.memory_allocated(where)
    x.view(2, -1)  # shares
    assert ocl.memory_allocated(where) - before == 1 << 22
    stats = ocl.memory_stats(where)
    assert stats["allocated_bytes.all.current"] == ocl.memory_allocated(where) and list(stats) == sorted(stats)
    free, total = ocl.mem_get_info(where)
    assert 0 < free <= total == ocl.get_device_properties(index).total_memory


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_tables_of_long_axes_are_not_kept(index, dtype):
    where = f"opencl:{index}"
    x = torch.ones(1, 1, 1, 1000, device=where).to(dtype)
    before = ocl.memory_allocated(where)
    assert torch.nn.functional.interpolate(x, (1, 600_000), mode="bilinear").sum().item() == 600_000
    assert ocl.memory_allocated(where) - before < 1 << 20


@pytest.fixture
def small(index, monkeypatch):
    """The device with 12 MiB more than is in use, and no memory of an earlier peak."""
    torch.ones(1, device=f"opencl:{index}")
    ocl.empty_cache()
    ocl.reset_peak_memory_stats(index)
    memory = torch.ones(1, device=f"opencl:{index}")._tl_array.device.memory
    monkeypatch.setattr(memory, "capacity", memory.pool.managed_bytes + (12 << 20))
    return f"opencl:{index}"


def test_out_of_memory_names_the_sizes_and_is_recoverable(small):
    failures = ocl.memory_stats(small)["num_ooms"]
    kept = [torch.ones(1 << 20, device=small)]
    with pytest.raises(
        torch.OutOfMemoryError,
        match=r"OpenCL out of memory. Tried to allocate 4.00 MiB. Device opencl:\d+ \(.+\) has a total capacity of "
        r".+ of which .+ is free",
    ):
        while True:
            kept.append(kept[0] + 1)
    assert ocl.memory_stats(small)["num_ooms"] == failures + 1
    assert isinstance(torch.OutOfMemoryError("x"), RuntimeError) and ocl.OutOfMemoryError is torch.OutOfMemoryError
    count = len(kept)
    del kept
    assert count == 2 and (torch.ones(1 << 20, device=small) + 1).sum().item() == 2 << 20


def test_the_pool_is_emptied_before_giving_up(small):
    for n in (21, 20, 21, 19, 20):  # blocks of other sizes stay in the pool, and exceed the memory in total
        x = torch.ones((1 << n) - 90_000 * (n % 2), device=small)
        assert x.sum().item() == x.numel()
        del x
    stats = ocl.memory_stats(small)
    assert stats["num_alloc_retries"] > 0 and stats["reserved_bytes.all.peak"] <= torch.ones(
        1, device=small
    )._tl_array.device.memory.capacity + (9 << 20)


def test_more_than_the_device_gives_in_one_block(index):
    limit = ocl.get_device_properties(index).max_allocation
    if limit >= 16 * (2**31 - 1):
        pytest.skip("the device gives more in one block than a tensor may hold")
    with pytest.raises(torch.OutOfMemoryError, match=r"The device gives at most [\d.]+ GiB in one block"):
        torch.empty(limit // 16 + 1, dtype=torch.complex128, device=f"opencl:{index}")
    with pytest.raises(RuntimeError, match=r"fewer than 2\*\*31 elements"):
        torch.empty(2**31, dtype=torch.uint8, device=f"opencl:{index}")


def test_training_holds_memory_flat(index):
    where = f"opencl:{index}"
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to(where)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(8, 16).to(where), torch.randn(8, 4).to(where)
    seen = []
    for _ in range(200):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        seen.append(ocl.memory_allocated(where))
    assert len(set(seen[5:])) == 1
    assert loss.item() < 10


# -- random numbers -------------------------------------------------------------------------


def test_seeds_and_states(index):
    where = f"opencl:{index}"

    def draw():
        return torch.rand(100, device=where).tolist()

    with ocl.device(index):
        ocl.manual_seed(7)
        first = draw()
        state = ocl.get_rng_state(where)
        second = draw()
        assert state.dtype is torch.uint8 and state.device.type == "cpu" and ocl.initial_seed() == 7 and first != second
        ocl.set_rng_state(state, where)
        assert draw() == second
        states = ocl.get_rng_state_all()
        third = draw()
        ocl.set_rng_state_all(states)
        assert draw() == third and len(states) == ocl.device_count()
        ocl.manual_seed_all(7)
        assert draw() == first
        torch.manual_seed(7)
        assert draw() == first
        ocl.seed()
        assert draw() != first
        ocl.seed_all()
        assert draw() != first
    a, b = (torch.Generator(where).manual_seed(3) for _ in range(2))
    np.testing.assert_array_equal(
        torch.randn(10, device=where, generator=a).cpu().numpy(),
        torch.randn(10, device=where, generator=b).cpu().numpy(),
    )
    with pytest.raises(RuntimeError, match="Expected a 'opencl' device type for generator but found 'cpu'"):
        torch.rand(2, device=where, generator=torch.Generator())
