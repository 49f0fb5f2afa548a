"""torch.cuda's devices, memory counts and random numbers, on the fake backend."""

from __future__ import annotations

import sys
import threading
import types

import pytest

import torchlite as torch

cuda = torch.cuda
pytestmark = pytest.mark.usefixtures("fake")


def test_public_names_exist_and_are_documented():
    for name in cuda.__all__:
        found = getattr(cuda, name)
        if name not in ("has_half", "has_magma", "default_generators"):
            assert found.__doc__, name
    assert set(cuda.__all__) <= set(dir(cuda))
    with pytest.raises(AttributeError, match=r"module 'torchlite.cuda' has no attribute 'nothing'"):
        cuda.nothing


def test_questions():
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.why_not() == ""
    assert not cuda.is_initialized()
    cuda.init()
    assert cuda.is_initialized()
    assert (
        cuda.get_device_name() == "Fake GPU 0"
        and cuda.get_device_name(1) == cuda.get_device_name("cuda:1") == "Fake GPU 1"
    )
    assert cuda.get_device_capability() == (8, 0) and cuda.get_device_capability(torch.device("cuda", 1)) == (8, 1)
    assert cuda.get_device_properties(1).total_memory == 1 << 30
    assert cuda.get_arch_list() == ["sm_80", "sm_81"]
    assert cuda.get_gencode_flags() == "-gencode compute=compute_80,code=sm_80 -gencode compute=compute_81,code=sm_81"
    assert cuda.is_bf16_supported() and cuda.is_bf16_supported(including_emulation=False) and cuda.is_tf32_supported()
    assert cuda.can_device_access_peer(0, 1) and not cuda.can_device_access_peer(1, "cuda:1")
    with pytest.raises(AssertionError, match="Invalid device id"):
        cuda.can_device_access_peer(2, 0)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        cuda.can_device_access_peer(0, 2)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.get_device_name("cpu")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1, device="cuda:2")
    cuda.ipc_collect()


def test_info_lists_the_devices(fake):
    from torchlite._cli import info as _info

    fake.describe = lambda index: f"a fake of compute capability 8.{index}"
    fake.problems = lambda: ["the third device is broken"]
    lines = [line for line in _info._format_device_lines() if line[0].startswith("cuda")]
    assert lines == [
        ("cuda", "left out: the third device is broken"),
        ("cuda:0", "ready: a fake of compute capability 8.0"),
        ("cuda:1", "ready: a fake of compute capability 8.1"),
    ]


def test_current_device():
    assert cuda.current_device() == 0 and torch.ones(1, device="cuda").device == torch.device("cuda:0")
    with cuda.device(1):
        assert cuda.current_device() == 1 and torch.ones(1, device="cuda").device == torch.device("cuda:1")
        with cuda.device_of(torch.ones(1, device="cuda:0")):
            assert cuda.current_device() == 0
        with cuda.device(None), cuda.device(-1), cuda.device_of(torch.ones(1)):
            assert cuda.current_device() == 1
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
        thread.start()
        thread.join()
        assert seen == [0]
    assert cuda.current_device() == 0
    cuda.set_device("cuda:1")
    assert torch.ones(1).cuda().device.index == 1 and torch.ones(1).cuda(0).device.index == 0
    assert cuda.get_device_name(cuda.device(0)) == "Fake GPU 0"
    cuda.set_device(0)


def test_tensors_and_modules_move():
    x = torch.arange(3.0).cuda()
    assert x.is_cuda and not x.is_cpu and x.get_device() == 0 and not x.cpu().is_cuda and x.cuda() is x
    assert x.type() == "torch.cuda.FloatTensor" and (x + 1).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="Invalid device, must be cuda device"):
        x.cuda("cpu")
    layer = torch.nn.Linear(2, 3).cuda()
    assert all(p.is_cuda for p in layer.parameters()) and layer(torch.ones(1, 2, device="cuda")).shape == (1, 3)
    assert not next(layer.cpu().parameters()).is_cuda
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.arange(3)


def test_typed_classes():
    x = cuda.FloatTensor([1, 2])
    assert (
        x.is_cuda
        and x.dtype is torch.float32
        and isinstance(x, cuda.FloatTensor)
        and not isinstance(x, (torch.FloatTensor, cuda.HalfTensor))
    )
    assert not isinstance(torch.ones(1), cuda.FloatTensor) and cuda.LongTensor(2, 3).shape == (2, 3)
    assert cuda.HalfTensor.dtype is torch.float16 and cuda.HalfTensor.is_cuda and not torch.HalfTensor.is_cuda
    moved = torch.ones(2).type(cuda.IntTensor)
    assert moved.is_cuda and moved.dtype is torch.int32
    assert (
        moved.type("torch.cuda.DoubleTensor").type() == "torch.cuda.DoubleTensor"
        and moved.type("torch.LongTensor").type() == "torch.LongTensor"
    )
    assert moved.type(torch.float32).is_cuda
    with pytest.raises(ValueError, match="invalid type: 'torch.tpu.FloatTensor'"):
        moved.type("torch.tpu.FloatTensor")
    try:
        torch.set_default_tensor_type(cuda.DoubleTensor)
        assert torch.ones(1).is_cuda and torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.ones(1).type() == "torch.FloatTensor"


# -- memory ---------------------------------------------------------------------------------


def test_memory_counts(fake):
    assert (
        cuda.memory_allocated() == 0 and cuda.memory_stats() == {}
    )  # nothing is in use, and asking does not change that
    assert not cuda.is_initialized()
    cuda.init()
    assert (
        cuda.memory_allocated(),
        cuda.max_memory_allocated(),
        cuda.memory_reserved(),
        cuda.max_memory_reserved(),
    ) == (1000, 3000, 4096, 8192)
    assert (cuda.memory_cached(), cuda.max_memory_cached()) == (4096, 8192)
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == 1000 and cuda.max_memory_reserved(1) == 8192
    cuda.reset_max_memory_allocated(1)
    assert cuda.max_memory_reserved(1) == 4096
    nested = cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["freed"] == 69000 and nested["num_ooms"] == 1
    cuda.reset_accumulated_memory_stats()
    fake.runtime(0).stats["allocated_bytes.all.allocated"] += 5
    stats = cuda.memory_stats()
    assert (
        stats["allocated_bytes.all.allocated"] == 5
        and stats["num_ooms"] == 0
        and stats["allocated_bytes.all.current"] == 1000
    )
    assert cuda.memory_stats(1)["num_ooms"] == 1
    cuda.empty_cache()
    assert fake.runtime(0).emptied == 1
    assert cuda.mem_get_info() == (1 << 29, 1 << 30)


def test_memory_summary():
    text = cuda.memory_summary(1, abbreviated=True)
    assert "CUDA memory summary, device ID 1" in text and "OOMs: 1" in text and "retries: 2" in text
    row = next(line for line in text.splitlines() if "Allocated memory" in line)
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "Allocated memory",
        "1000 B",
        "3000 B",
        "68 KiB",
        "67 KiB",
    ]
    assert len({len(line) for line in text.splitlines()}) == 1


def test_memory_fraction(fake):
    assert cuda.get_per_process_memory_fraction() == 1.0
    cuda.set_per_process_memory_fraction(0.5)
    assert (
        fake.runtime(0).limits == [1 << 29]
        and cuda.get_per_process_memory_fraction() == 0.5
        and cuda.get_per_process_memory_fraction(1) == 1.0
    )
    cuda.set_per_process_memory_fraction(1.0)
    assert fake.runtime(0).limits == [1 << 29, 0]
    with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
        cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match="Invalid fraction value: 1.5. Allowed range: 0~1"):
        cuda.set_per_process_memory_fraction(1.5)
    assert cuda.OutOfMemoryError is torch.OutOfMemoryError


class ManagementLibrary(types.ModuleType):
    """Stands for the package nvidia-ml-py."""

    NVMLError = type("NVMLError", (Exception,), {})
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM = 0, 1
    processes, broken = (), False

    def nvmlInit(self):
        if self.broken:
            raise self.NVMLError

    def nvmlDeviceGetHandleByPciBusId(self, place):
        return {b"00000000:1A:00.0": 0, b"00000000:1B:00.0": 1}[place]

    nvmlDeviceGetUtilizationRates = staticmethod(
        lambda handle: types.SimpleNamespace(gpu=50 + handle, memory=20 + handle)
    )
    nvmlDeviceGetTemperature = staticmethod(lambda handle, sensor: 40 + handle + sensor)
    nvmlDeviceGetPowerUsage = staticmethod(lambda handle: 300_000 + handle)
    nvmlDeviceGetClockInfo = staticmethod(lambda handle, clock: 1500 + handle + clock)
    nvmlDeviceGetMemoryInfo = staticmethod(lambda handle: types.SimpleNamespace(used=7 << 30))
    nvmlDeviceGetComputeRunningProcesses = property(lambda self: lambda handle: self.processes)


def test_measurements(monkeypatch):
    library = ManagementLibrary("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", library)
    asked = [
        f()
        for f in (
            cuda.utilization,
            cuda.memory_usage,
            cuda.temperature,
            cuda.power_draw,
            cuda.clock_rate,
            cuda.device_memory_used,
        )
    ]
    assert (
        asked == [50, 20, 40, 300_000, 1501, 7 << 30] and cuda.utilization(1) == 51 and cuda.temperature("cuda:1") == 41
    )
    assert cuda.list_gpu_processes() == "GPU:0\nno processes are running"
    library.processes = [types.SimpleNamespace(pid=12, usedGpuMemory=3 << 20)]
    assert cuda.list_gpu_processes(1) == "GPU:1\nprocess         12 uses        3.000 MB GPU memory"
    library.broken = True
    with pytest.raises(RuntimeError, match="cuda driver can't be loaded, is cuda enabled?"):
        cuda.power_draw()
    assert cuda.list_gpu_processes() == "cuda driver can't be loaded, is cuda enabled?"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ModuleNotFoundError, match="nvidia-ml-py does not seem to be installed"):
        cuda.utilization()
    assert cuda.list_gpu_processes() == "pynvml module not found, please install nvidia-ml-py"


# -- random numbers -----------------------------------------------------------------------------


def draw(device="cuda"):
    return torch.rand(4, device=device).tolist()


def test_seeds():
    cuda.manual_seed_all(7)
    assert not cuda.is_initialized() and cuda.default_generators == ()  # seeds wait for the device's first use
    first = draw()
    assert cuda.initial_seed() == 7 and draw("cuda:1") == first and draw() != first
    cuda.manual_seed(7)
    assert draw() == first != draw("cuda:1")
    with cuda.device(1):
        cuda.manual_seed(7)
        assert draw() == first
    torch.manual_seed(7)
    assert draw() == first == draw("cuda:1")
    cuda.seed()
    assert draw() != first
    cuda.seed_all()
    assert draw() == draw("cuda:1") != first
    assert [g.device for g in cuda.default_generators] == [torch.device("cuda:0"), torch.device("cuda:1")]


def test_a_later_seed_of_everything_wins():
    cuda.manual_seed_all(3)
    torch.manual_seed(4)
    assert cuda.initial_seed() == 4


def test_states():
    cuda.manual_seed_all(1)
    state, states = cuda.get_rng_state(), cuda.get_rng_state_all()
    assert state.is_cpu and state.dtype is torch.uint8 and len(states) == 2
    here, there = draw(), draw("cuda:1")
    cuda.set_rng_state(state)
    assert draw() == here and draw("cuda:1") != there
    cuda.set_rng_state_all(states)
    assert draw() == here and draw("cuda:1") == there
    with torch.random.fork_rng(devices=[0]):
        inside = draw()
    assert draw() == inside


# -- any accelerator -------------------------------------------------------------------------------


def test_accelerator():
    accelerator = torch.accelerator
    for name in accelerator.__all__:
        assert getattr(accelerator, name).__doc__, name
    assert (
        accelerator.is_available()
        and accelerator.current_accelerator() == torch.device("cuda")
        and accelerator.device_count() == 2
    )
    with accelerator.device_index(1), accelerator.device_index(None):
        assert accelerator.current_device_index() == 1 == cuda.current_device()
    accelerator.set_device_index("cuda:1")
    assert accelerator.current_device_idx() == 1
    accelerator.set_device_idx(0)
    stream = cuda.Stream()
    accelerator.set_stream(stream)
    assert accelerator.current_stream() == stream
    accelerator.set_stream(cuda.default_stream())
    accelerator.synchronize()
    accelerator.empty_cache()
    assert (
        accelerator.memory_allocated() == 1000
        and accelerator.max_memory_allocated() == 3000
        and accelerator.get_memory_info() == (1 << 29, 1 << 30)
    )
    assert (
        accelerator.memory_reserved() == 4096
        and accelerator.max_memory_reserved() == 8192
        and accelerator.memory_stats()["num_ooms"] == 1
    )
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    assert accelerator.memory_stats()["num_ooms"] == 0 and accelerator.max_memory_allocated() == 1000
    assert torch.float64 in accelerator.get_device_capability()["supported_dtypes"]
    assert torch.get_device_module() is cuda and torch.get_device_module("cpu") is torch.cpu


def test_packages_register_the_module_of_their_device():
    module = types.ModuleType("privateuseone")
    for wrong, words in (("cuda", "has already been registered"), ("dummy", "Expected one of cpu")):
        with pytest.raises(RuntimeError, match=words):
            torch._register_device_module(wrong, module)
    try:
        torch._register_device_module("privateuseone", module)
        assert torch.privateuseone is torch.get_device_module("privateuseone") is module
        with pytest.raises(RuntimeError, match="has already been registered"):
            torch._register_device_module("privateuseone", module)
    finally:
        del torch.privateuseone, sys.modules["torchlite.privateuseone"]
