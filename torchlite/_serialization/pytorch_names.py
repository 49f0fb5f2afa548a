"""Names of classes and functions in a checkpoint: PyTorch's, so that each library reads the other's files."""

from __future__ import annotations

import functools
import importlib

from .._dispatch import NAMESPACES, Op
from .._tensor import Parameter, Tensor
from .._tensor.storage import UntypedStorage
from .._tensor.typed_storage import TypedStorage
from .._types import dtypes, qschemes
from .._types.devices import device
from .._types.layouts import Size, layout, memory_format
from .._types.package_name import is_torchlite_object
from . import tensor_rebuild
from .script_objects import ScriptObjectInFile


class StorageType:
    """Placeholder of a PyTorch storage class, such as `torch.FloatStorage`.

    Args:
        name: Name of the class.
        dtype: Dtype of its elements; ``None`` for `torch.storage.UntypedStorage`.

    Example:
        >>> torch.serialization.StorageType("FloatStorage", torch.float32)
        <class 'torch.FloatStorage'>
    """

    def __init__(self, name: str, dtype):
        self.name, self.dtype = name, dtype

    def __repr__(self) -> str:
        return f"<class 'torch.{self.name}'>"


# PyTorch has storage classes only for its older dtypes. Tensors of other dtypes are stored as bytes and a dtype.
_TYPED = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
TYPED_STORAGES = {
    dtypes.BY_NAME[name]: StorageType(f"{dtypes.BY_NAME[name].scalar_name}Storage", dtypes.BY_NAME[name])
    for name in _TYPED
}
for _dtype, _integers in (
    *((dtypes.NAME_ONLY[f"q{integers.name}"], integers) for integers in (dtypes.int8, dtypes.uint8, dtypes.int32)),
    *((dtype, dtype) for dtype in dtypes.PACKED_LEVELS),
):
    TYPED_STORAGES[_dtype] = StorageType(f"{_dtype.scalar_name}Storage", _integers)
UNTYPED_STORAGE = StorageType("UntypedStorage", None)
_STORAGES = {t.name: t for t in (*TYPED_STORAGES.values(), UNTYPED_STORAGE)}

_CLASSES = {
    Tensor: ("torch", "Tensor"), Parameter: ("torch.nn.parameter", "Parameter"), Size: ("torch", "Size"),
    device: ("torch", "device"), dtypes.dtype: ("torch", "dtype"), layout: ("torch", "layout"),
    memory_format: ("torch", "memory_format"), TypedStorage: ("torch.storage", "TypedStorage"),
    UntypedStorage: ("torch.storage", "UntypedStorage"),
    tensor_rebuild._rebuild_from_type_v2: ("torch._tensor", "_rebuild_from_type_v2"),
    tensor_rebuild._get_layout: ("torch.serialization", "_get_layout"),
    ScriptObjectInFile: ("torch", "ScriptObject"),
}  # fmt: skip
_OBJECTS = {name: value for value, name in _CLASSES.items()}
_OBJECTS["torch._tensor", "Tensor"] = Tensor
REBUILDERS = {
    ("torch._utils", name): getattr(tensor_rebuild, name)
    for name in (
        "_rebuild_tensor",
        "_rebuild_tensor_v2",
        "_rebuild_tensor_v3",
        "_rebuild_parameter",
        "_rebuild_parameter_with_state",
        "_rebuild_meta_tensor_no_storage",
        "_rebuild_wrapper_subclass",
        "_rebuild_sparse_tensor",
        "_rebuild_qtensor",
    )
} | {
    ("torch._tensor", "_rebuild_from_type_v2"): tensor_rebuild._rebuild_from_type_v2,
    ("torch.serialization", "_get_layout"): tensor_rebuild._get_layout,
}


@functools.cache
def _public_name(op: Op, name: str) -> tuple[str, str]:
    """Module and name of an op's function in PyTorch."""
    places = [(space, n) for space, found in NAMESPACES.items() for n, record in found.items() if record is op]
    space, found = next((place for place in places if place[1] == name), places[0] if places else ("torch", name))
    if space == "Tensor":
        return "torch", f"Tensor.{found}"
    return "torch" if space == "torch" else f"torch.{space}", found


def torch_name(obj) -> tuple[str, str] | None:
    """Return the module and name in PyTorch of a torchlite object; None for other objects."""
    if isinstance(obj, StorageType):
        return ("torch.storage" if obj.dtype is None else "torch"), obj.name
    if isinstance(obj, dtypes.dtype):
        return "torch", obj.name
    if isinstance(obj, qschemes.qscheme):
        return "torch", obj.name
    try:
        found = _CLASSES.get(obj)
    except TypeError:
        return None
    if found is not None:
        return found
    op = getattr(obj, "op", None)
    if isinstance(op, Op):
        return _public_name(op, obj.__name__)
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and is_torchlite_object(module):
        return "torch" + module.removeprefix(module.partition(".")[0]), name
    return None


def storage_type(module: str, name: str) -> StorageType | None:
    """The storage class of that name, or None."""
    if module in ("torch", "torch.storage", "torch.cuda"):
        return _STORAGES.get(name.lstrip("_"))
    return None


def find_plain_value(module: str, name: str):
    """A dtype, quantization scheme or storage class of PyTorch by name; None for other names."""
    if module == "torch" and (found := dtypes.BY_NAME.get(name) or dtypes.NAME_ONLY.get(name)) is not None:
        return found
    if module == "torch" and name in qschemes.BY_NAME:
        return qschemes.BY_NAME[name]
    return storage_type(module, name)


@functools.cache
def resolve_pytorch_name(module: str, name: str):
    """Return torchlite's object for a PyTorch name (any of them: only for trusted files). AttributeError or ImportError
    if there is none.
    """
    found = find_plain_value(module, name) or _OBJECTS.get((module, name)) or REBUILDERS.get((module, name))
    if found is not None:
        return found
    space = module.removeprefix("torch._C._")
    if space in ("fft", "linalg", "special"):  # where PyTorch defines these functions
        module, name = f"torch.{space}", name.removeprefix(f"{space}_")
    elif (module, name) in (("torch._C", "_VariableFunctionsClass"), ("torch._C", "_VariableFunctions")):
        return importlib.import_module("torchlite")
    elif (module, name) in (("torch._C", "TensorBase"), ("torch._C", "_TensorBase")):
        return Tensor
    out = importlib.import_module("torchlite" + module.removeprefix("torch"))
    for part in name.split("."):
        out = getattr(out, part)
    return out
