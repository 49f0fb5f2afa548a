"""Without a usable CUDA device, every call answers quickly or raises one sentence that names the missing part.
(Where there are devices they are hidden.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys, time, warnings
import torchlite as torch
from torchlite import nn

out = {"after import": "cupy" in sys.modules}
cuda = torch.cuda
out["available"] = cuda.is_available()
times = []
for _ in range(20):
    start = time.perf_counter()
    cuda.is_available()
    times.append(time.perf_counter() - start)
out["seconds"] = min(times)
out["cupy"] = "cupy" in sys.modules

quiet = {
    "device_count": cuda.device_count, "is_initialized": cuda.is_initialized, "memory_allocated": cuda.memory_allocated,
    "memory_reserved": cuda.memory_reserved, "max_memory_allocated": cuda.max_memory_allocated,
    "memory_stats": cuda.memory_stats, "empty_cache": cuda.empty_cache, "arch": cuda.get_arch_list,
    "bf16": cuda.is_bf16_supported, "tf32": cuda.is_tf32_supported, "manual_seed": lambda: cuda.manual_seed(1),
    "manual_seed_all": lambda: cuda.manual_seed_all(1), "seed": cuda.seed, "seed_all": cuda.seed_all,
    "states": cuda.get_rng_state_all, "set_rng_state": lambda: cuda.set_rng_state(torch.get_rng_state()),
    "set_states": lambda: cuda.set_rng_state_all([]), "generators": lambda: cuda.default_generators,
    "set_stream": lambda: cuda.set_stream(None), "stream": lambda: cuda.stream(None).__enter__(),
    "device_of": lambda: cuda.device_of(torch.ones(1)).__enter__(), "set_device": lambda: cuda.set_device(-1),
    "capturing": cuda.is_current_stream_capturing, "cudnn": torch.backends.cudnn.is_available,
    "version": torch.backends.cudnn.version, "isinstance": lambda: isinstance(torch.ones(1), cuda.FloatTensor),
    "pinned": lambda: torch.ones(1).is_pinned(), "pin": lambda: torch.ones(1).pin_memory().tolist(),
    "flash": torch.backends.cuda.is_flash_attention_available, "torch_seed": lambda: torch.manual_seed(1) and None,
}
out["quiet"] = {name: ask() for name, ask in quiet.items()}

loud = {
    "zeros": lambda: torch.zeros(2, device="cuda"), "second": lambda: torch.zeros(2, device="cuda:1"),
    "cuda": lambda: torch.ones(2).cuda(), "module": lambda: nn.Linear(2, 2).cuda(),
    "to": lambda: nn.Linear(2, 2).to("cuda"), "init": cuda.init, "synchronize": cuda.synchronize, "Stream": cuda.Stream,
    "record": lambda: cuda.Event().record(), "current_stream": cuda.current_stream,
    "properties": cuda.get_device_properties, "name": cuda.get_device_name, "capability": cuda.get_device_capability,
    "mem_get_info": cuda.mem_get_info, "initial_seed": cuda.initial_seed, "get_rng_state": cuda.get_rng_state,
    "reset": cuda.reset_peak_memory_stats, "fraction": lambda: cuda.set_per_process_memory_fraction(0.5),
    "summary": cuda.memory_summary, "graph": lambda: cuda.graph(cuda.CUDAGraph()), "pool": cuda.graph_pool_handle,
    "generator": lambda: torch.Generator("cuda"), "ipc": cuda.ipc_collect, "external": lambda: cuda.ExternalStream(1),
    "profiler": cuda.profiler.start, "begin": lambda: cuda.CUDAGraph().capture_begin(),
}
out["loud"] = {}
for name, ask in {**loud, "FloatTensor": lambda: cuda.FloatTensor(2)}.items():
    try:
        ask()
    except (RuntimeError, TypeError) as error:
        out["loud"][name] = f"{type(error).__name__}: {error}"
out["asked"] = sorted([*loud, "FloatTensor"])
out["why_not"] = cuda.why_not()

import torchlite.accelerator as accelerator
torch.opencl._opencl.why_not = lambda: "hidden"
out["accelerator"] = [accelerator.is_available(), accelerator.device_count(), accelerator.current_accelerator(),
                      torch.get_device_module().__name__]
asked = {"Stream()": torch.Stream, "Event()": torch.Event, "index": accelerator.current_device_index,
         "sync": accelerator.synchronize}
for name, ask in asked.items():
    try:
        ask()
    except RuntimeError as error:
        out[name] = str(error)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    out["batches"] = [b.tolist() for b in torch.utils.data.DataLoader([1, 2, 3], batch_size=2, pin_memory=True)]
out["warning"] = [str(w.message) for w in said]
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def found():
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_asking_is_quick_and_loads_nothing(found):
    assert found["after import"] is found["available"] is found["cupy"] is False
    assert found["seconds"] < 0.001


def test_queries_work_without_a_device(found):
    wanted = {
        "device_count": 0,
        "is_initialized": False,
        "memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_allocated": 0,
        "memory_stats": {},
        "arch": [],
        "bf16": False,
        "tf32": False,
        "states": [],
        "generators": [],
        "capturing": False,
        "cudnn": False,
        "isinstance": False,
        "pinned": False,
        "pin": [1.0],
        "flash": False,
    }
    assert found["quiet"] == dict.fromkeys(found["quiet"]) | wanted


def test_calls_that_need_a_device_explain_its_absence(found):
    said = found["loud"]
    assert sorted(said) == found["asked"]
    reason = found["why_not"]
    assert reason and "\n" not in reason and ("cuda" in reason or "CUDA" in reason)
    assert said.pop("FloatTensor") == f"TypeError: type torch.cuda.FloatTensor not available. {reason}"
    assert set(said.values()) == {f"RuntimeError: {reason}"}


def test_the_sentence_names_the_extra_where_nothing_is_installed():
    program = (
        "import torchlite as t; from torchlite._settings import entry_points as e;"
        "e.entry_points = lambda group: {}; print(t.cuda.why_not())"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert said == "device 'cuda' has no backend installed: pip install 'torchlite-nd[cuda12]'"


def test_info_gives_the_reason_once(found):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    said = subprocess.run(
        [sys.executable, "-m", "torchlite", "info"], capture_output=True, text=True, env=environment, check=True
    ).stdout
    assert [line.split(maxsplit=1)[1] for line in said.splitlines() if line.split()[:1] == ["cuda"]] == [
        f"absent: {found['why_not']}"
    ]


def test_no_accelerator_at_all(found):
    assert found["accelerator"] == [False, 0, None, "torchlite.cpu"]
    assert {found[name] for name in ("Stream()", "Event()", "index", "sync")} == {
        "Cannot access accelerator device when none is available."
    }


def test_a_loader_that_should_pin_warns(found):
    assert found["batches"] == [[1, 2], [3]]
    assert found["warning"] == [
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
    ]
