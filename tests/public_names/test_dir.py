"""`dir()` of a public namespace shows PyTorch's names and the few of torchlite's own that are listed here, and nothing
that a module imports for itself.
"""

from __future__ import annotations

import importlib
import pathlib
import sys

import pytest

import torchlite as torch

RECORDED = pathlib.Path(__file__).with_name("pytorch_names.txt")
NAMES = {line.partition(": ")[0]: set(line.split()[1:]) for line in RECORDED.read_text().splitlines()}
# torchlite's own names, which PyTorch's namespace lacks.
ARRAY_API = """
    astype bitwise_invert broadcast_arrays cumulative_prod cumulative_sum expand_dims isdtype matrix_transpose
    permute_dims repeat take_along_axis unique_all unique_counts unique_inverse unique_values unstack vecdot
"""
OWN = {
    # `_dynamo`, `_inductor` and `onnx` are modules that PyTorch loads at their first use.
    "torch": f"{ARRAY_API} Parameter _dynamo _inductor as_torch byte char native_dropout_backward onnx opencl",
    "autograd": "is_grad_enabled",
    # Names that PyTorch's modules have and its dir() lacks.
    "backends": "fp32_precision",
    "backends.cudnn": "flags is_acceptable is_available set_flags version",
    "backends.mkldnn": "flags is_acl_available is_available set_flags verbose",
    "backends.opt_einsum": "get_opt_einsum is_available",
    "linalg": "matrix_transpose outer tensordot trace",  # the Array API's
}
# Modules of a namespace that PyTorch loads later or has not.
MODULES = {
    "amp": "op_lists",
    "distributed.algorithms.ddp_comm_hooks": "post_localSGD_hook",
    "distributed.tensor": "experimental",
    "nn.modules": "attention",
    "nn.utils": "prune",
    "onnx": "symbolic_opset9 symbolic_opset11",
    "quasirandom": "sobol_numbers",
    "utils.benchmark": "common compare fuzzer",
}


def _module(name: str):
    return torch if name == "torch" else importlib.import_module(f"torchlite.{name}")


@pytest.mark.parametrize("name", NAMES)
def test_dir_shows_public_names_alone(name):
    module = _module(name)
    shown = {n for n in dir(module) if not n.startswith("__")}
    if name not in ("torch", "nn.functional"):
        shown = {n for n in shown if not n.startswith("_")}
    own = set(OWN.get(name, "").split())
    elsewhere = NAMES["torch"] | set(MODULES.get(name, "").split())  # some of torch's functions stand in a namespace
    elsewhere |= {n for n in shown if f"{module.__name__}.{n}" in sys.modules}  # submodules that are loaded
    assert shown - NAMES[name] - own - elsewhere - set(getattr(module, "__all__", ())) == set()
    assert not own & NAMES[name], "these are PyTorch's"
    assert all(hasattr(module, n) for n in own)


@pytest.mark.parametrize("name", NAMES)
def test_what_dir_shows_can_be_read(name):
    module = _module(name)
    assert [n for n in dir(module) if not hasattr(module, n)] == []


@pytest.mark.parametrize("name", NAMES)
def test_dir_hides_no_public_name(name):
    module = _module(name)
    missing = set(getattr(module, "__all__", ())) - {*dir(module)}
    assert not missing
    hidden = set(getattr(module, "_INTERNAL", ())) & NAMES[name] - {"annotations"}
    assert not hidden, "PyTorch shows these"


def test_dir_shows_the_names_that_programs_use():
    assert {"add", "tensor", "float32", "nn", "linalg", "Generator", "save"} <= {*dir(torch)}
    assert {"relu", "relu_", "conv2d", "cross_entropy", "pad"} <= {*dir(torch.nn.functional)}
    assert {"Linear", "Module", "functional", "init"} <= {*dir(torch.nn)}
    assert {"Adam", "SGD", "lr_scheduler"} <= {*dir(torch.optim)}
