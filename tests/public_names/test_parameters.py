"""Parameters of the public functions, compared with PyTorch's: which calls its parser takes, and the signatures of the
functions and classes that are written in Python (tools/record_parameters.py).
"""

from __future__ import annotations

import gzip
import pathlib

import pytest

import torchlite as torch
from tests.public_names import parser_calls, python_signatures
from torchlite._dispatch import NAMESPACES
from torchlite._dispatch.arg_parser import Signature

FOLDER = pathlib.Path(__file__).parent


def _read(name: str) -> list[list[str]]:
    with gzip.open(FOLDER / name, "rt") as file:
        return [line.rstrip("\n").split("\t") for line in file]


PARSED = {name: (forms.split(" | "), digits) for name, forms, digits in _read("parser.txt.gz")}
SIGNATURES = _read("signatures.txt.gz")
# Calls that differ, each under the reason.
DIFFERENCES = {
    line for line in (FOLDER / "parser_differences.txt").read_text().splitlines() if line and not line.startswith("#")
}
# PyTorch's functions of other backends, of quantization and of TorchScript's parser, which this library lacks or
# refuses.
ABSENT = (
    "Tensor.slice_inverse", "Tensor.xpu", "batch_norm_", "cudnn_", "empty_quantized",
    "fbgemm_", "import_ir", "init_num_threads", "int_repr", "is_vulkan", "merge_type",
    "miopen_", "mkldnn_", "native_norm", "parse_", "q_", "quantize", "set_anomaly_enabled", "slice_inverse",
    "sym_constrain", "unify_type", "ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "indices_copy",
    "row_indices_copy", "values_copy", "Tensor.q_", "Tensor.qscheme", "Tensor.int_repr", "dequantize",
    "Tensor.dequantize", "Tensor.to_mkldnn", "Tensor.to_padded_tensor",
)  # fmt: skip


def _found(name: str):
    home = torch
    for part in name.split("."):
        home = getattr(home, part)
    return home


def _may_differ(name: str, forms: list[Signature], call: parser_calls.Call, wanted: bool) -> bool:
    """True for the differences of a mechanism. Python binds arguments before the parser sees them: it refuses a tensor
    by keyword whose place a number has, in a deprecated form. Functions on separate sizes take them as their methods
    do. The Array API has keywords that PyTorch lacks.
    """
    args, kwargs = call
    if wanted:  # a deprecated form: a number in the place of a tensor that follows by keyword
        return any(form.deprecated for form in forms) and "Number" in args and bool(kwargs)
    op = NAMESPACES["Tensor" if name.startswith("Tensor.") else "torch"].get(name.removeprefix("Tensor."))
    op = op or next(
        (space[name.rpartition(".")[2]] for space in NAMESPACES.values() if name.rpartition(".")[2] in space), None
    )
    return op is not None and (
        any(p.kind == "varargs" for p in op.params)
        and args[-1:] == ["int"]
        or not op.kwarg_aliases.keys().isdisjoint(kwargs)
    )


@pytest.fixture
def settings():
    """The settings that calls change are restored."""
    dtypes = {kind: torch.get_autocast_dtype(kind) for kind in ("cpu", "cuda")}
    yield
    for kind, dtype in dtypes.items():
        torch.set_autocast_enabled(kind, False)
        torch.set_autocast_dtype(kind, dtype)
    torch.set_autocast_cache_enabled(True)
    torch.set_flush_denormal(False)
    depth = torch.autocast_decrement_nesting()
    while depth:
        depth = torch.autocast_decrement_nesting() if depth > 0 else torch.autocast_increment_nesting()


@pytest.mark.parametrize("name", [name for name in PARSED if not name.startswith(ABSENT)])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("settings")
def test_a_call_is_taken_where_pytorchs_parser_takes_it(name):
    texts, digits = PARSED[name]
    forms = [Signature(name, text) for text in texts]
    wrong, differs = [], set()
    for call, digit in zip(parser_calls.calls(forms), digits, strict=True):
        if digit not in "01":
            continue
        wanted = digit == "1"
        if parser_calls.is_taken(torch, name, call) != wanted:
            line = f"{'refuses' if wanted else 'takes'} {parser_calls.shown(name, call)}"
            differs.add(line)
            if not _may_differ(name, forms, call, wanted):
                wrong.append(line)
    assert [line for line in wrong if line not in DIFFERENCES] == []
    assert [line for line in DIFFERENCES if line.split(" ", 1)[1].startswith(f"{name}(") and line not in differs] == []


# Signatures that differ, by the reason.
KNOWN = {
    # Objects of PyTorch's C++ that no program makes.
    "torch SymFloat", "torch dtype", "torch layout", "torch memory_format", "serialization StorageType",
    # The function is also the method of its name.
    "torch Tensor.lu", "torch Tensor.norm", "torch Tensor.split", "torch split",
    # `out` is a keyword, as in other functions.
    "torch tensordot",
    # Records of the profiler and of the environment: other contents.
    "autograd.profiler FunctionEvent", "autograd.profiler MemRecordsAcc.in_interval", "utils.collect_env SystemEnv",
    # Options of functions that refuse all calls, of compiled graphs on CUDA, and of PyTorch's private constructors.
    "sparse to_sparse_semi_structured", "cuda CUDAGraph.capture_begin", "cuda graph", "distributed DeviceMesh",
    "fx.experimental.proxy_tensor ProxyTorchDispatchMode", "utils.checkpoint CheckpointFunction.forward",
    "utils.checkpoint SelectiveCheckpointContext", "optim Optimizer.profile_hook_step",
    # The older exporter's names for the same defaults.
    "onnx.utils export",
    # Methods that take any arguments in order to refuse them.
    "torch UntypedStorage.share_memory_", "jit RecursiveScriptModule.bfloat16", "jit RecursiveScriptModule.to_empty",
    # Wrappers of C++ methods, which take nothing.
    *(f"distributed.rpc RRef.{name}" for name in
      ("confirmed_by_owner", "is_owner", "local_value", "owner", "owner_name")),
}  # fmt: skip


@pytest.mark.parametrize("space", sorted({line[0] for line in SIGNATURES}))
@pytest.mark.filterwarnings("ignore")
def test_signatures_of_python_functions(space):
    wrong = []
    for where, name, theirs in SIGNATURES:
        if where != space or f"{space} {name}" in KNOWN:
            continue
        try:
            found = python_signatures.module("torchlite", space)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError, RuntimeError):
            continue  # names are compared by test_dir.py
        ours = python_signatures.described(found)
        if ours is not None and space == "torch" and name.startswith("Tensor.") and ours.startswith("input"):
            ours = ours.partition(" ")[2]
        if ours is not None and (differs := python_signatures.differences(theirs, ours)):
            wrong.append(f"{name}: {', '.join(differs)}; PyTorch: {theirs}; here: {ours}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("theirs", "ours", "differs"),
    [
        ("a b=1", "a b=1 c=2", []),
        ("a b", "b a", ["a is elsewhere", "b is elsewhere"]),
        ("a , b=1", "a b=1", []),
        ("a b=1", "a , b=1", ["b is elsewhere"]),
        ("a b=1", "a b=2", ["b=2, not 1"]),
        ("a", "a b", ["b is required"]),
        ("a b", "*args **kwargs", []),
        ("a", "c", ["no a", "c is required"]),
    ],
)
def test_differences_of_signatures(theirs, ours, differs):
    assert python_signatures.differences(theirs, ours) == differs


def test_absent_functions():
    """No function is left out that this library has and that takes a call."""
    for name in PARSED:
        if not name.startswith(ABSENT):
            assert callable(_found(name)), name
