"""Callbacks to higher layers, registered at import, so that all imports point downwards.

The core cannot import the layers above it. Each of them registers its callbacks when it is imported; after `import
torchlite` all are registered. Generated functions read the same objects from `dispatch_state.GLOBALS`, under the same
names, because reading a global is faster.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._types.devices import device
    from .op_record import Op


class Callbacks:
    """The callbacks; a comment at each names the module that registers it."""

    # From the core's own upper end (codegen).
    F: Any  # every op on Tensors, by the op's name
    node_name: Callable[..., str]  # PyTorch's name for a node
    next_functions: Callable[..., tuple]  # the nodes that PyTorch has before a node
    shown_output: Callable[..., int]  # the number of a node's output as PyTorch has it

    # From _tensor.
    add_tensor_method: Callable[[str, Op], None]  # a record has a name among the class's methods
    as_tensor: Callable[..., Any]  # Python's and NumPy's data as a Tensor (_tensor/creation)

    # From _aten/torch_dispatch.
    dispatched: Callable[..., Any]  # an op run by `__torch_dispatch__` of its arguments' classes
    dispatched_into: Callable[..., Any]  # the same with `out=`
    is_seen_whole: Callable[..., bool]  # whether such classes see a composite, not its parts
    detached: Callable[..., Any]  # a tensor of such a class without history
    copied_to: Callable[..., Any]  # and on another device
    make_wrapper: Callable[..., Any]  # a tensor of such a class without data

    # From _ops/inplace.
    copy: Op  # a tensor's elements written into another
    resize: Callable[[Any, tuple[int, ...]], Any]  # gives a Tensor another shape in its storage

    # From _tensor/conj_neg_views.
    conj_neg_view_op: Callable[..., Any]  # a view op on a tensor with the conjugate or negative bit
    view_with_bits: Callable[..., Any]  # a tensor seen with these bits
    resolve_conj_neg: Callable[..., Any]  # a tensor with these bits worked out

    # From _tensor/creation.
    pin_memory: Callable[[Any], Any]  # a Tensor copied to page-locked memory
    check_pinning: Callable[..., None]  # RuntimeError where there is no page-locked memory

    # From _ops/internal.
    move: Callable[[Any, device], Any]  # a Tensor on another device
    copy_slices: Op  # the history of a base after a write through a view of it

    # From torchlite itself: a function of `torchlite._sparse` by name. The first call imports the package.
    sparse: Callable[[str], Any]

    # From torchlite itself: a function of `torchlite._quantized` by name. The first call imports the package.
    quantized: Callable[[str], Any]

    # From torchlite itself: a class of `torchlite._library.op_overload` by its name.
    overloads: Callable[[str], Any]

    # From the modules that torchlite's table of callbacks names, loaded when one is first called.
    vmap: Callable[..., Callable]
    compile: Callable[..., Any]
    inference_function: Callable[..., Any]  # the optimized `forward` of a module that was read from a file
    make_overridable: Callable[[type], None]  # a class that defines `__torch_function__` gets methods that call it
    array_ufunc: Callable[..., Any]  # `Tensor.__array_ufunc__`
    from_scipy_sparse: Callable[..., Any]  # a matrix of `scipy.sparse` as a sparse Tensor
    matmul_foreign: Callable[..., Any]  # `tensor @ x` for an x of another library
    array_function: Callable[..., Any]  # `Tensor.__array_function__`
    array_namespace: Callable[[], Any]  # the namespace of `Tensor.__array_namespace__`
    load_torchscript: Callable[..., Any]  # `torch.jit.load`
    higher_order_class: Callable[[], type]  # `HigherOrderOperator`
    higher_order_namespace: Callable[[], Any]  # `torch.ops.higher_order`
    decomposed_library: Callable[[], Any]  # the library of `torch.ops.quantized_decomposed`
    specialized_sizes: Callable[..., list]  # sizes that a module runs other ops for (export/_trace)
    convert_observed: Callable[..., Any]  # `torch.ao.quantization.convert`
    prepare_to_quantize: Callable[..., Any]  # `torch.ao.quantization.prepare`
    prepare_to_train_quantized: Callable[..., Any]  # `torch.ao.quantization.prepare_qat`
    declare_collectives: Callable[[], None]  # defines the ops of `torch.ops._c10d_functional`
    get_rank: Callable[..., int]
    get_world_size: Callable[..., int]
    register_module_forward_hook: Callable[..., Any]
    register_module_forward_pre_hook: Callable[..., Any]

    # From nn/modules/module, when it is loaded: no module exists before.
    module_class: Any = ()  # `nn.Module`, for isinstance and issubclass

    # From distributed, when it is loaded: a process has no group before.
    sync_batch_norm: Callable[..., Any]
    sync_batch_norm_group: Callable[[Any], Any] = staticmethod(lambda group: None)  # the group whose statistics count

    # From autograd/entry.
    backward: Callable[..., None]  # what `Tensor.backward` does
    run_node: Callable[..., Any]  # what a node does when it is called
    visible_tangents: Callable[..., list]  # a tensor's tangents at the levels of `dual_level`
    map_tangents: Callable[..., None]  # a tensor's tangents, changed by a function, are another's
    copy_tangents: Callable[..., Any]  # a tensor has the tangents of another with the same layout, at all levels
    drop_tangents: Callable[..., None]  # a tensor's tangents at all levels are gone
    saved_value: Callable[..., Any]  # `node._saved_self` and its like, by name
    saved_names: Callable[..., list[str]]  # the names that a node has for what it saved
    raise_modified_error: Callable[..., None]  # a saved tensor was written to


CALLBACKS = Callbacks()


def register_lazily(callbacks: Any, package: dict[str, Any], homes: dict[str, tuple[str, str]]) -> None:
    """Register functions of modules that are imported at the first call.

    package: the globals of the package that contains the modules. homes: for each callback the module of the package
    and the function's name in it.
    """
    for slot, (module, name) in homes.items():
        setattr(callbacks, slot, _make_lazy_callback(callbacks, package, slot, module, name))


def _make_lazy_callback(
    callbacks: Any, package: dict[str, Any], slot: str, module: str, name: str
) -> Callable[..., Any]:
    """A callback that imports its function, registers it in its own place and calls it."""

    def load_and_call(*args: Any, **kwargs: Any) -> Any:
        function = getattr(importlib.import_module(f".{module}", package["__name__"]), name)
        setattr(callbacks, slot, function)
        return function(*args, **kwargs)

    return load_and_call
