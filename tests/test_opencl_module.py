"""torch.opencl: what torch.cuda does, for OpenCL's devices."""
from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import torchlite as torch

opencl = torch.opencl


@pytest.fixture(autouse=True)
def index(device):
    if not device.startswith("opencl"):
        pytest.skip("about OpenCL's devices")
    return torch.device(device).index or 0


def test_names_are_those_of_torch_cuda():
    for name in opencl.__all__:
        assert getattr(opencl, name).__doc__, name
    assert opencl.is_available() and opencl.device_count() >= 1 and opencl.why_not() == ""


def test_properties(index):
    found = opencl.get_device_properties(index)
    assert found.name == opencl.get_device_name(index) and found.name in repr(found) and repr(found).startswith("_OpenCLDeviceProperties(name=")
    assert found.total_memory >= found.max_allocation > 2 ** 20 and found.max_work_group_size >= 1 and found.multi_processor_count >= 1
    assert found.type in ("gpu", "accelerator", "cpu", "other") and isinstance(found.has_fp64, bool) and isinstance(found.has_fp16, bool)
    assert found.version.startswith("OpenCL ") and found.driver_version and found.platform
    assert opencl.get_device_properties(f"opencl:{index}") == found == opencl.get_device_properties(torch.device("opencl", index))


def test_devices_that_are_not_there():
    there = opencl.device_count()
    with pytest.raises(RuntimeError, match=rf"device opencl:{there}: invalid device ordinal; {there} opencl device"):
        torch.ones(2, device=f"opencl:{there}")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        opencl.set_device(there)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        opencl.get_device_name(there)
    with pytest.raises(ValueError, match="Expected an opencl device, but got: cpu"):
        opencl.get_device_name("cpu")


def test_current_device():
    assert opencl.current_device() == 0
    assert torch.ones(1, device="opencl").device == torch.device("opencl:0")
    last = opencl.device_count() - 1
    with opencl.device(last):
        assert opencl.current_device() == last and torch.ones(1, device="opencl").device == torch.device("opencl", last)
        with opencl.device(-1), opencl.device(None):
            assert opencl.current_device() == last
        seen = []
        thread = threading.Thread(target=lambda: seen.append(opencl.current_device()))  # each thread has its own
        thread.start()
        thread.join()
        assert seen == [0]
    assert opencl.current_device() == 0
    with opencl.device_of(torch.ones(1, device=f"opencl:{last}")):
        assert opencl.current_device() == last
    with opencl.device_of(torch.ones(1)):
        assert opencl.current_device() == 0


def test_events(index):
    with opencl.device(index):
        start, end, plain = opencl.Event(enable_timing=True), opencl.Event(enable_timing=True), opencl.Event()
        assert start.query() and "not recorded" in repr(start)
        start.synchronize()
        with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
            start.elapsed_time(end)
        x = torch.ones(500, 500, device="opencl")
        start.record()
        for _ in range(20):
            x = x * 1.0001 + 0.1
        end.record()
        plain.record(opencl.current_stream())
        end.synchronize()
        plain.synchronize()
        assert end.query() and plain.query() and start.device == torch.device("opencl", index)
        assert 0 < start.elapsed_time(end) < 60_000
        with pytest.raises(ValueError, match="enable_timing=True"):
            start.elapsed_time(plain)
        end.wait()


def test_streams(index):
    with opencl.device(index):
        default = opencl.current_stream()
        one, other = opencl.Stream(), opencl.Stream(device=index, priority=-1)
        assert default == opencl.default_stream() and one != other and len({one, other, default}) == 3 and one.device == torch.device("opencl", index)
        x = torch.zeros(1000, device="opencl")
        with opencl.stream(one):
            assert opencl.current_stream() == one
            y = x + 1
            with other:
                assert opencl.current_stream() == other
                other.wait_stream(one)
                z = y + 1
            assert opencl.current_stream() == one
            event = one.record_event()
        assert opencl.current_stream() == default
        default.wait_event(event)
        with opencl.stream(None):
            assert opencl.current_stream() == default
        assert z.sum().item() == 2000
        one.synchronize()
        deadline = time.monotonic() + 20
        while not (one.query() and other.query()):  # on a busy machine the driver may need another moment
            assert time.monotonic() < deadline
        opencl.set_stream(one)
        assert opencl.current_stream() == one
        opencl.set_stream(default)


def test_synchronize(index):
    opencl.synchronize(index)
    opencl.synchronize(f"opencl:{index}")
    opencl.synchronize()


# -- memory -------------------------------------------------------------------------------


def test_memory_is_counted(index):
    where = f"opencl:{index}"
    torch.ones(1, device=where)
    opencl.empty_cache()
    before = opencl.memory_allocated(where)
    opencl.reset_peak_memory_stats(where)
    x = torch.empty(1 << 20, device=where)
    y = torch.empty(1 << 20, device=where)
    assert opencl.memory_allocated(where) - before == 2 << 22 == opencl.max_memory_allocated(where) - before
    del y
    assert opencl.memory_allocated(where) - before == 1 << 22 and opencl.max_memory_allocated(where) - before == 2 << 22
    assert opencl.memory_reserved(where) >= opencl.memory_allocated(where) + (1 << 22)
    opencl.empty_cache()
    assert opencl.memory_reserved(where) < opencl.memory_allocated(where) + (1 << 22) <= opencl.max_memory_reserved(where)
    opencl.reset_peak_memory_stats(where)
    assert opencl.max_memory_allocated(where) == opencl.memory_allocated(where)
    x.view(2, -1)  # shares
    assert opencl.memory_allocated(where) - before == 1 << 22
    stats = opencl.memory_stats(where)
    assert stats["allocated_bytes.all.current"] == opencl.memory_allocated(where) and list(stats) == sorted(stats)
    free, total = opencl.mem_get_info(where)
    assert 0 < free <= total == opencl.get_device_properties(index).total_memory


@pytest.fixture
def small(index, monkeypatch):
    """The device with 12 MiB more than is in use."""
    torch.ones(1, device=f"opencl:{index}")
    opencl.empty_cache()
    memory = torch.ones(1, device=f"opencl:{index}")._data.device.memory
    monkeypatch.setattr(memory, "capacity", memory.pool.managed_bytes + (12 << 20))
    return f"opencl:{index}"


def test_out_of_memory_names_the_sizes_and_the_process_goes_on(small):
    failures = opencl.memory_stats(small)["num_ooms"]
    kept = [torch.ones(1 << 20, device=small)]
    with pytest.raises(torch.OutOfMemoryError, match=r"OpenCL out of memory. Tried to allocate 4.00 MiB. Device opencl:\d+ \(.+\) has a total capacity of .+ of which .+ is free"):
        while True:
            kept.append(kept[0] + 1)
    assert opencl.memory_stats(small)["num_ooms"] == failures + 1
    assert isinstance(torch.OutOfMemoryError("x"), RuntimeError) and opencl.OutOfMemoryError is torch.OutOfMemoryError
    count = len(kept)
    del kept
    assert count == 2 and (torch.ones(1 << 20, device=small) + 1).sum().item() == 2 << 20


def test_the_pool_is_emptied_before_giving_up(small):
    for n in (21, 20, 21, 19, 20):  # blocks of other sizes stay in the pool, and together are more than there is
        x = torch.ones((1 << n) - 90_000 * (n % 2), device=small)
        assert x.sum().item() == x.numel()
        del x
    stats = opencl.memory_stats(small)
    assert stats["num_alloc_retries"] > 0 and stats["reserved_bytes.all.peak"] <= torch.ones(1, device=small)._data.device.memory.capacity + (9 << 20)


def test_more_than_the_device_gives_in_one_block(index):
    limit = opencl.get_device_properties(index).max_allocation
    if limit >= 16 * (2 ** 31 - 1):
        pytest.skip("the device gives more in one block than a tensor may hold")
    with pytest.raises(torch.OutOfMemoryError, match=r"The device gives at most [\d.]+ GiB in one block"):
        torch.empty(limit // 16 + 1, dtype=torch.complex128, device=f"opencl:{index}")
    with pytest.raises(RuntimeError, match=r"fewer than 2\*\*31 elements"):
        torch.empty(2 ** 31, dtype=torch.uint8, device=f"opencl:{index}")


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
        seen.append(opencl.memory_allocated(where))
    assert len(set(seen[5:])) == 1
    assert loss.item() < 10


# -- random numbers -------------------------------------------------------------------------


def test_seeds_and_states(index):
    where = f"opencl:{index}"

    def draw():
        return torch.rand(100, device=where).tolist()

    with opencl.device(index):
        opencl.manual_seed(7)
        first = draw()
        state = opencl.get_rng_state(where)
        second = draw()
        assert state.dtype is torch.uint8 and state.device.type == "cpu" and opencl.initial_seed() == 7 and first != second
        opencl.set_rng_state(state, where)
        assert draw() == second
        states = opencl.get_rng_state_all()
        third = draw()
        opencl.set_rng_state_all(states)
        assert draw() == third and len(states) == opencl.device_count()
        opencl.manual_seed_all(7)
        assert draw() == first
        torch.manual_seed(7)
        assert draw() == first
        opencl.seed()
        assert draw() != first
        opencl.seed_all()
        assert draw() != first
    a, b = (torch.Generator(where).manual_seed(3) for _ in range(2))
    np.testing.assert_array_equal(torch.randn(10, device=where, generator=a).cpu().numpy(), torch.randn(10, device=where, generator=b).cpu().numpy())
    with pytest.raises(RuntimeError, match="Expected a 'opencl' device type for generator but found 'cpu'"):
        torch.rand(2, device=where, generator=torch.Generator())
