"""torch.cuda, torch.backends and torch.accelerator against PyTorch's: names, parameters with their defaults, and what
they answer without a device.
"""

import importlib
import inspect

import pytest
import torch

import torchlite

pytestmark = pytest.mark.oracle

# Names left out, and why: several processes (nccl), other projects' parts (jiterator, tunable, gds), allocators
# and snapshots of PyTorch's own memory, handles of PyTorch's own runtime.
ALLOCATORS = {
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
    "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator", "get_allocator_backend",
    "host_memory_stats", "host_memory_stats_as_nested_dict", "memory_snapshot", "reset_accumulated_host_memory_stats",
    "reset_peak_host_memory_stats", "use_mem_pool",
}  # fmt: skip
LEFT_OUT = {
    "cuda": ALLOCATORS
    | {
        "CudaError", "DeferredCudaCallError", "GreenContext", "check_error", "cudaStatus", "cudart",
        "current_blas_handle", "current_solver_handle", "get_sync_debug_mode", "jiterator", "nccl",
        "set_sync_debug_mode", "tunable",
    },
    "cuda.memory": ALLOCATORS | {"list_gpu_processes"},
    "cuda.graphs": set(),
    "cuda.random": set(),
    "cuda.nvtx": set(),
    "cuda.amp": set(),
    "cuda.profiler": {"init"},
    "accelerator": {"Graph", "empty_host_cache"},
    "cpu": {"get_capabilities", "StreamContext"},
    "backends.cuda": {
        "SDPAParams", "can_use_cudnn_attention", "can_use_efficient_attention", "can_use_flash_attention",
        "cuFFTPlanCache", "cuFFTPlanCacheAttrContextProp", "cuFFTPlanCacheManager", "cufft_plan_cache",
        "cublas_workspace_size", "cublaslt_workspace_size", "blas_workspace_size", "is_ck_sdpa_available",
        "preferred_rocm_fa_library",
    },
}  # fmt: skip
# Parameters that are not offered.
PARAMETERS = {
    "CUDAGraph.capture_begin": {"check_input_liveness"},
    "graph": {"enable_annotations", "check_input_liveness"},
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_names(name):
    theirs, ours = importlib.import_module(f"torch.{name}"), importlib.import_module(f"torchlite.{name}")
    public = {n for n in theirs.__all__ if not n.startswith("_")}
    assert {n for n in public if not hasattr(ours, n)} == LEFT_OUT[name] & public


def parameters(function) -> dict:
    return {
        n: p.default
        for n, p in inspect.signature(function).parameters.items()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and n != "self"
    }


def functions():
    for module, left_out in LEFT_OUT.items():
        theirs = importlib.import_module(f"torch.{module}")
        for name in theirs.__all__:
            if name not in left_out and inspect.isfunction(getattr(theirs, name)) and not name.startswith("_"):
                yield module, name
    yield from [
        ("cuda", f"CUDAGraph.{name}")
        for name in ("capture_begin", "capture_end", "instantiate", "replay", "reset", "pool")
    ]
    yield from [
        ("cuda", f"Stream.{name}") for name in ("query", "record_event", "wait_event", "wait_stream", "synchronize")
    ]
    yield from [("cuda", f"Event.{name}") for name in ("query", "record", "wait", "elapsed_time", "synchronize")]
    yield from [("cuda", name) for name in ("graph", "device", "device_of", "StreamContext")]


def found(package, module, name):
    at = importlib.import_module(f"{package.__name__}.{module}")
    for part in name.split("."):
        at = getattr(at, part)
    return at


@pytest.mark.parametrize("module, name", list(functions()))
def test_parameters(module, name):
    theirs, ours = parameters(found(torch, module, name)), parameters(found(torchlite, module, name))
    for left_out in PARAMETERS.get(name, ()):
        theirs.pop(left_out)
    theirs = {n: str(v) for n, v in theirs.items()}
    assert {n: str(v).replace("torchlite", "torch") for n, v in ours.items()} == theirs


ANSWERS = [
    "cuda.is_available()", "cuda.is_initialized()", "cuda.device_count()", "cuda.get_arch_list()",
    "cuda.get_gencode_flags()", "cuda.is_bf16_supported()", "cuda.is_bf16_supported(False)", "cuda.is_tf32_supported()",
    "cuda.memory_allocated()", "cuda.max_memory_allocated()", "cuda.memory_reserved()", "cuda.max_memory_reserved()",
    "cuda.memory_stats()", "cuda.memory_stats_as_nested_dict()", "cuda.empty_cache()", "cuda.manual_seed(1)",
    "cuda.manual_seed_all(1)", "cuda.seed()", "cuda.seed_all()", "cuda.get_rng_state_all()",
    "cuda.set_rng_state_all([])", "cuda.default_generators", "cuda.set_stream(None)", "cuda.stream(None).__enter__()",
    "cuda.device_of(T.ones(1)).__enter__()", "cuda.set_device(-1)", "cuda.has_half", "cuda.has_magma",
    "cuda.OutOfMemoryError is T.OutOfMemoryError", "cuda.FloatTensor.is_cuda",
    "isinstance(T.ones(1), cuda.FloatTensor)", "T.ones(1).is_pinned()",
    "hasattr(T.ones(1), '__cuda_array_interface__')", "tuple(map(int, T.ones(1).__dlpack_device__()))",
    "backends.cuda.matmul.allow_tf32", "backends.cuda.matmul.fp32_precision",
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction", "backends.cuda.matmul.allow_fp16_accumulation",
    "backends.cuda.preferred_linalg_library()", "backends.cuda.flash_sdp_enabled()",
    "backends.cuda.fp16_bf16_reduction_math_sdp_allowed()", "backends.cuda.is_flash_attention_available()",
    "backends.cudnn.enabled", "backends.cudnn.benchmark", "backends.cudnn.deterministic", "backends.cudnn.allow_tf32",
    "backends.cudnn.version()", "backends.cudnn.is_available()", "backends.cudnn.is_acceptable(T.ones(1))",
    "backends.cudnn.conv.fp32_precision", "backends.fp32_precision", "backends.mps.is_available()",
    "T.get_float32_matmul_precision()", "T.version.cuda",
]  # fmt: skip
ERRORS = [
    "cuda.device('cpu')", "T.ones(1).__cuda_array_interface__", "T.ones(1, requires_grad=True).__dlpack__()",
    "T.ones(1).__dlpack__(stream=1)", "T.ones(1).cuda('cpu')", "backends.cuda.matmul.fast",
    "setattr(backends.cuda.matmul, 'fast', 1)", "setattr(backends.cuda.matmul, 'allow_tf32', 1)",
    "backends.cuda.preferred_linalg_library('lapack')", "setattr(backends, 'fp32_precision', 'fast')",
    "setattr(backends.cudnn, 'benchmark', 1)", "accelerator_of_none(T).current_device_index()",
]  # fmt: skip


def asked(package, text):
    return eval(
        text,
        {
            "T": package,
            "cuda": package.cuda,
            "backends": package.backends,
            "accelerator_of_none": lambda p: p.accelerator,
        },
    )


@pytest.fixture
def no_device(monkeypatch):
    """Neither has a device: PyTorch's build is for the CPU, and ours finds none."""
    if torch.cuda.is_available():
        pytest.skip("PyTorch has a CUDA device")
    monkeypatch.setattr(torchlite.cuda._accelerator.cuda, "why_not", lambda: "hidden")
    monkeypatch.setattr(torchlite.opencl._opencl, "why_not", lambda: "hidden")


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.usefixtures("no_device")
def test_answers(text):
    if torchlite.cuda.is_initialized():
        pytest.skip("a CUDA device is in use")
    assert repr(asked(torchlite, text)) == repr(asked(torch, text))


@pytest.mark.parametrize("text", ERRORS)
@pytest.mark.usefixtures("no_device")
def test_errors(text):
    with pytest.raises(Exception) as theirs:
        asked(torch, text)
    with pytest.raises(type(theirs.value)) as ours:
        asked(torchlite, text)
    assert str(ours.value) == str(theirs.value)
