"""What the core calls back, handed to it by those who know: so that every import points down.

The layers above the core are imported after it and cannot be named in it. Each of them fills its slot once, while it is
imported; `import torchlite` leaves none empty. What the generated functions need of the same things stands in
`runtime.GLOBALS` under the same names, since reading a global costs them nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._types.devices import device
    from .op_record import Op


class Callbacks:
    """Who fills what is said beside each."""

    # From the core's own upper end (codegen).
    F: Any  # every op on Tensors, by the op's name

    # From _tensor.
    add_tensor_method: Callable[[str, Op], None]  # a record has a name among the class's methods
    as_tensor: Callable[..., Any]  # Python's and NumPy's data as a Tensor (_tensor/creation)

    # From _library/dispatching, when first called.
    dispatched: Callable[..., Any]  # an op run by `__torch_dispatch__` of its arguments' classes
    detached: Callable[..., Any]  # a tensor of such a class without history
    copied_to: Callable[..., Any]  # and on another device
    make_wrapper: Callable[..., Any]  # a tensor of such a class without data

    # From _ops/inplace.
    resize: Callable[[Any, tuple[int, ...]], Any]  # a Tensor made to have another shape in its storage

    # From _tensor/signs.
    conj_neg_view_op: Callable[..., Any]  # a view op on a tensor with the conjugate or negative bit
    view_with_bits: Callable[..., Any]  # a tensor seen with these bits
    resolve_conj_neg: Callable[..., Any]  # a tensor with these bits worked out

    # From _tensor/creation.
    pin_memory: Callable[[Any], Any]  # a Tensor copied to page-locked memory
    check_pinning: Callable[..., None]  # RuntimeError where there is no page-locked memory

    # From _ops/core.
    move: Callable[[Any, device], Any]  # a Tensor on another device
    copy_slices: Op  # the history of a base after a write through a view of it

    # From torchlite itself: a function of `torchlite._sparse` by its name; the package is loaded when one is asked for.
    sparse: Callable[[str], Any]

    # From torchlite itself: a class of `torchlite._library.op_overload` by its name.
    overloads: Callable[[str], Any]

    # From torchlite itself: `torchlite.vmap`, loaded when it is first called.
    vmap: Callable[..., Callable]

    # From autograd/entry.
    backward: Callable[..., None]  # what `Tensor.backward` does
    run_node: Callable[..., Any]  # what a node does when it is called
    visible_tangents: Callable[..., list]  # a tensor's tangents at the levels of `dual_level`
    map_tangents: Callable[..., None]  # a tensor's tangents, changed by a function, are another's
    copy_tangents: Callable[..., Any]  # a tensor has the tangents of another that lies alike, at all levels
    drop_tangents: Callable[..., None]  # a tensor's tangents at all levels are gone
    saved_value: Callable[..., Any]  # `node._saved_self` and its like, by name
    saved_names: Callable[..., list[str]]  # the names that a node has for what it saved


CALLBACKS = Callbacks()
