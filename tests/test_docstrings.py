"""Each public name has a docstring with its arguments and an example; `tests/test_docs.py` runs the examples."""

import inspect
import os
import re

import pytest

import torchlite as torch
from torchlite._dispatch.op_docstrings import documented_arguments, sections, with_common_arguments
from torchlite._dispatch.op_functions import signature_of
from torchlite._dispatch.op_record import REGISTRY

from .public_docstrings import all_missing_parts, missing_parts

NAMESPACES = [
    "", "accelerator", "amp", "ao.nn.intrinsic", "ao.nn.intrinsic.qat", "ao.nn.qat", "ao.nn.qat.dynamic",
    "ao.nn.quantized", "ao.quantization", "ao.quantization.utils", "autograd", "compiler", "cuda", "distributed",
    "distributions", "distributions.constraints", "distributions.kl", "distributions.transforms", "export", "func",
    "futures", "fx", "hub", "jit", "library", "masked", "multiprocessing", "nn", "nn.attention", "nn.functional",
    "nn.init", "nn.parallel", "nn.utils", "nn.utils.parametrizations", "nn.utils.parametrize", "nn.utils.prune",
    "nn.utils.rnn", "nn.utils.stateless", "onnx", "optim", "optim.lr_scheduler", "optim.swa_utils", "overrides",
    "profiler", "quasirandom", "random", "serialization", "signal.windows", "sparse", "testing", "utils.benchmark",
    "utils.checkpoint", "utils.cpp_extension", "utils.data", "utils.dlpack", "utils.tensorboard",
    "ao.nn.intrinsic.quantized", "ao.nn.intrinsic.quantized.dynamic", "ao.nn.quantized.dynamic",
    "ao.nn.quantized.functional", "ao.quantization.backend_config",
]  # fmt: skip
# Names that need another process, a GPU, a network or an absent package, or that always raise.
NO_EXAMPLE = {
    "compiler": {"load_cache_artifacts", "load_compiled_function"},
    "cuda": {
        "OutOfMemoryError", "clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature",
        "utilization",
    },
    "distributed": {
        "GroupName", "P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "recv_object_list",
    },
    "hub": {"help", "list"},
    "serialization": {"get_crc32_options"},
    "utils.cpp_extension": {
        "BuildExtension", "CUDAExtension", "CppExtension", "include_paths", "load_inline",
    },
    "utils.dlpack": {"DLDeviceType"},
    "utils.tensorboard": {"FileWriter", "SummaryWriter"},
}  # fmt: skip
# {file of records: names}
OPS: dict[str, list[str]] = {}
for _name, _op in REGISTRY.items():
    if _name[0] != "_" and not os.path.basename(_op.file).startswith("test_"):
        OPS.setdefault(os.path.basename(_op.file), []).append(_name)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_namespace(namespace):
    if namespace == "utils.tensorboard":
        pytest.importorskip("tensorboard")
    lacks = all_missing_parts(namespace)
    without = {name for name, parts in lacks.items() if parts == ["Example"]}
    assert without == NO_EXAMPLE.get(namespace, set())
    assert {name: parts for name, parts in lacks.items() if name not in without} == {}


def missing_parts_of_op(op) -> list[str]:
    names = [name for name in signature_of(op).parameters if name[0] != "_" or name in op.doc]
    lacks = missing_parts(with_common_arguments(op.doc, names), names, True)
    text = inspect.cleandoc(op.doc)
    own = {name for group in documented_arguments(sections(text).get("Args", "")) for name in group}
    lacks += [f"no parameter: {name}" for name in sorted(own - set(names))]
    return lacks + ["even indentation"] * bool(re.search(r"^ {1,3}\S", text, re.MULTILINE))


@pytest.mark.parametrize("file", sorted(OPS))
def test_ops(file):
    lacks = {name: missing_parts_of_op(REGISTRY[name]) for name in OPS[file]}
    assert {name: parts for name, parts in lacks.items() if parts} == {}


def test_attributes_of_tensors():
    public = [name for name in dir(torch.Tensor) if name[0] != "_"]
    assert [name for name in public if not inspect.getdoc(inspect.getattr_static(torch.Tensor, name))] == []


class TestWhatIsMissingIsFound:
    def test_all_of_it(self):
        assert missing_parts(None, ["x"], True) == ["a docstring"]
        assert missing_parts("Adds", ["x"], True) == ["the first sentence's full stop", "Args: x", "Example"]

    def test_arguments_that_do_not_exist(self):
        assert missing_parts("Adds.\n\nArgs:\n    x: A.\n    y: B.", ["x"], False) == ["no parameter: y"]

    def test_nothing(self):
        assert missing_parts("Adds.\n\nArgs:\n    x: A.\n\nExample:\n    >>> 1\n    1", ["x"], True) == []


def test_signatures_of_in_place_methods_name_the_arguments():
    """The function takes `*args`: `help()` and editors show what the record says."""
    methods = [getattr(torch.Tensor, name) for name in vars(torch.Tensor) if name.endswith("_")]
    in_place = [method for method in methods if "\nIn-place version of" in (method.__doc__ or "")]
    assert len(in_place) > 100
    for method in in_place:
        assert method.__doc__.partition("\n")[0] == f"{method.__name__}{inspect.signature(method)}"
    assert str(inspect.signature(torch.Tensor.add_)) == "(self, other, *, alpha=1)"
