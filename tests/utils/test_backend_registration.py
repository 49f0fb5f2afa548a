"""The name of the device type that is left to other makers. Each test has a process of its own: the name stays."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(program: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", "import torchlite as torch\n" + program], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_devices_have_the_new_name():
    program = """
before = torch.device("privateuseone:1")
torch.utils.rename_privateuse1_backend("npu")
torch.utils.rename_privateuse1_backend("npu")
print(torch.device("npu:1") is before, before, torch.device("privateuseone"), torch._C._get_privateuse1_backend_name())
print(torch.profiler.ProfilerActivity.NPU.name, torch._utils._get_device_index("npu:2"))
"""
    assert run(program).splitlines() == ["True npu:1 npu npu", "PrivateUse1 2"]


@pytest.mark.parametrize(
    "names, words",
    [
        ("cpu", "Cannot register privateuse1 backend with in-tree device name: cpu"),
        ("mps", "Cannot register privateuse1 backend with in-tree device name: mps"),
        ("npu other", "torch.register_privateuse1_backend() has already been set! Current backend: npu"),
    ],
)
def test_names_that_are_refused(names, words):
    program = f"""
try:
    for name in {names.split()}:
        torch.utils.rename_privateuse1_backend(name)
except RuntimeError as error:
    print(error, torch._C._get_privateuse1_backend_name())
"""
    assert run(program).strip() == f"{words} {'npu' if 'npu' in names else 'privateuseone'}"


def test_autocast_asks_the_module_of_the_device():
    program = """
import types, warnings
torch.utils.rename_privateuse1_backend("npu")
def words(run):
    try:
        return run()
    except (AssertionError, RuntimeError) as error:
        return str(error)
print(words(lambda: torch.autocast("npu")).splitlines()[0])
module = types.SimpleNamespace()
torch._register_device_module("npu", module)
print(words(lambda: torch.autocast("npu")).splitlines()[-1])
module.get_amp_supported_dtype = lambda: [torch.float16]
with torch.autocast("npu"):
    print(torch.is_autocast_enabled("npu"), torch.get_autocast_dtype("npu"))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    with torch.autocast("npu", dtype=torch.bfloat16):
        print(torch.is_autocast_enabled("npu"))
print(seen[0].message)
print(torch.is_autocast_enabled("npu"), words(lambda: torch.ones(2, device="npu")).partition(":")[0])
"""
    assert run(program).splitlines() == [
        "Tried to use AMP with the `npu` backend, but the backend has not registered a module or  the module miss some "
        "necessary funcs. The backend should register a module by `torch._register_device_module`, and the module must "
        "have these funcs: ",
        "But the func `get_amp_supported_dtype` is missing. ",
        "True torch.float16",
        "False",
        "In npu autocast, but the target dtype is not supported. Disabling autocast.",
        "npu Autocast only supports dtypes of torch.float16 currently.",
        "False PyTorch is not linked with support for npu devices",
    ]
