"""Count of the floating-point operations of products, convolutions and attention."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite.autograd import _flop_counter
from torchlite.utils import _pytree
from torchlite.utils._python_dispatch import TorchDispatchMode
from torchlite.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = torch.ops.aten
flop_registry: dict[Any, Callable[..., int]] = {}


def _tensor_to_shape(value: Any) -> Any:
    return value.shape if isinstance(value, torch.Tensor) else value


def _shape_wrapper(formula: Callable[..., int]) -> Callable[..., int]:
    """Convert a formula of shapes to one of tensors."""

    def flops_of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out = _pytree.tree_map(_tensor_to_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out, **kwargs)

    return flops_of_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """Returns a decorator that registers how the operations of an op are counted.

    Args:
        targets: A packet of ``torch.ops``, or a list of them.
        get_raw: ``True`` calls the function with the op's arguments and ``out_val``; ``False`` with the shapes of
            tensors and ``out_shape``. Default: ``False``.

    Raises:
        ValueError: A target is no packet.
        RuntimeError: A target is registered already.

    Example:
        >>> from torchlite.utils.flop_counter import flop_registry, register_flop_formula
        >>> @register_flop_formula(torch.ops.aten.hypot)
        ... def count_hypot(x, y, out_shape=None):
        ...     return 4 * out_shape.numel()
        >>> del flop_registry[torch.ops.aten.hypot]
    """

    def register(formula: Callable) -> Callable:
        found = formula if get_raw else _shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not hasattr(target, "overloads"):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops."
                    f"mylib.foo), or JitFunction, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = found
        return formula

    return register


@register_flop_formula([aten.mm, aten.bmm])
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a product."""
    return _flop_counter.matmul_flops(a_shape, b_shape)


bmm_flop = mm_flop


@register_flop_formula([aten.addmm, aten.baddbmm])
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a product to which something is added."""
    return _flop_counter.matmul_flops(a_shape, b_shape)


baddbmm_flop = addmm_flop


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """Of a convolution, by its shapes."""
    return _flop_counter.conv_flops(x_shape, w_shape, out_shape, transposed)


@register_flop_formula([aten.convolution])
def conv_flop(
    x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool, *args: Any,
    out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """Of a convolution."""
    return _flop_counter.conv_flops(x_shape, w_shape, out_shape, transposed)


@register_flop_formula([aten.convolution_backward])
def conv_backward_flop(
    grad_out_shape: Any, x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any,
    transposed: bool, _output_padding: Any, _groups: int, output_mask: Any, out_shape: Any = None,
) -> int:  # fmt: skip
    """Of a convolution's gradients."""
    return _flop_counter.conv_backward_flops(grad_out_shape, x_shape, w_shape, output_mask, transposed)


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Of attention, by its shapes."""
    return _flop_counter.sdpa_flops(query_shape, key_shape, value_shape)


@register_flop_formula([aten._scaled_dot_product_flash_attention_for_cpu])
def sdpa_flop(
    query_shape: Any, key_shape: Any, value_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Of attention."""
    return _flop_counter.sdpa_flops(query_shape, key_shape, value_shape)


@register_flop_formula([aten._scaled_dot_product_flash_attention_for_cpu_backward])
def sdpa_backward_flop(
    grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any, *args: Any, out_shape: Any = None,
    **kwargs: Any,
) -> int:  # fmt: skip
    """Of attention's gradients."""
    return _flop_counter.sdpa_backward_flops(query_shape, key_shape, value_shape)


_UNITS = ("", "K", "M", "B", "T")


def _format_count(number: int, total: int) -> str:
    """A count in the unit that suits the total."""
    index = max(0, min(len(_UNITS) - 1, (len(str(total)) - 2) // 3))
    return f"{number / 1000**index:.3f}{_UNITS[index]}"


class FlopCounterMode:
    """Context manager that counts the operations of products, convolutions and attention.

    It counts by module, in forward and backward.

    Args:
        mods: Deprecated, no effect.
        depth: Depth of the modules in the table. Default: 2.
        display: Whether to print a table at the end. Default: ``True``.
        custom_mapping: Functions that count other ops, by their packets. Default: none.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = torch.nn.Linear(4, 3)(torch.ones(2, 4))
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()
        given = {
            packet: formula if getattr(formula, "_get_raw", False) else _shape_wrapper(formula)
            for packet, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **given}

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, "Global" for all, and by op."""
        return {str(name): dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Returns the counts as a table.

        Args:
            depth: Largest depth of the modules. Default: that of the object.
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()

        def share(count: int) -> str:
            return f"{count / total * 100:.2f}%" if total else "0%"

        rows: list[list[str]] = []

        def add(name: str, level: int) -> None:
            counts = self.flop_counts[name]
            count = sum(counts.values())
            rows.append([" " * level + name, _format_count(count, total), share(count)])
            rows.extend([" " * level + " - " + str(op), _format_count(n, total), share(n)] for op, n in counts.items())

        modules = sorted(name for name in self.flop_counts if name != "Global")
        whole = any(sum(self.flop_counts[name].values()) == total for name in modules)
        if not whole or not modules:
            add("Global", 0)
        for name in modules:
            level = name.count(".") + 1
            if level <= depth:
                add(name, level - whole)
        head = ["Module", "FLOP", "% Total"]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(3)]
        lines = [head, ["-" * width for width in widths], *rows]
        return "\n".join(
            "  ".join((line[0].ljust(widths[0]), line[1].rjust(widths[1]), line[2].rjust(widths[2]))).rstrip()
            for line in lines
        )

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _FlopCountingMode(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.mode.__exit__(*exc)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count_flops(self, packet: Any, out: Any, args: tuple, kwargs: dict) -> Any:
        formula = self.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for name in set(self.mod_tracker.parents):
                self.flop_counts[name][packet] += count
        return out


class _FlopCountingMode(TorchDispatchMode):
    """The mode that sees the ops."""

    def __init__(self, counter: FlopCounterMode) -> None:
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        return self.counter._count_flops(func.overloadpacket, out, args, kwargs or {})


__dir__ = make_module_dir(globals(), "flop_registry")
