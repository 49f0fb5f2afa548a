"""Activations after a call, as patterns of their parts, for packages that describe fused layers."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.fx import Node

from ..pattern_matcher import CallFunction, PatternExpr

_aten, _prims = torch.ops.aten, torch.ops.prims


def _gelu_fusion_1(computation_call: PatternExpr) -> CallFunction:
    """GELU by the error function: ``x / 2 * (1 + erf(x / sqrt(2)))``."""
    half = CallFunction(_aten.mul, computation_call, 0.5)
    erf = CallFunction(_aten.erf, CallFunction(_aten.mul, computation_call, 0.7071067811865476))
    return CallFunction(_aten.mul, half, CallFunction(_aten.add, erf, 1))


def _gelu_fusion_2(computation_call: PatternExpr) -> CallFunction:
    """GELU by the hyperbolic tangent of a polynomial."""
    square = CallFunction(_aten.mul, computation_call, computation_call)
    cube = CallFunction(_aten.mul, square, computation_call)
    polynomial = CallFunction(_aten.add, computation_call, CallFunction(_aten.mul, cube, 0.044715))
    tanh = CallFunction(_aten.tanh, CallFunction(_aten.mul, polynomial, 0.7978845608028654))
    return CallFunction(_aten.mul, CallFunction(_aten.mul, computation_call, 0.5), CallFunction(_aten.add, tanh, 1))


def _hardswish_fusion(computation_call: PatternExpr) -> CallFunction:
    """``x * relu6(x + 3) / 6``."""
    shifted = CallFunction(_aten.clamp_min, CallFunction(_aten.add, computation_call, 3), 0)
    return CallFunction(
        _aten.div, CallFunction(_aten.mul, computation_call, CallFunction(_aten.clamp_max, shifted, 6)), 6
    )


def _silu_fusion(computation_call: PatternExpr) -> CallFunction:
    """``x * sigmoid(x)``."""
    return CallFunction(_aten.mul, computation_call, CallFunction(_aten.sigmoid, computation_call))


def _hardtanh_fusion(computation_call: PatternExpr) -> CallFunction:
    """Both limits of a value, whose numbers are arguments."""
    from ..pattern_matcher import KeywordArg

    low = CallFunction(_aten.clamp_min, computation_call, KeywordArg("min_value"))
    return CallFunction(_aten.clamp_max, low, KeywordArg("max_value"))


def _get_remaining_users(extra_input_node: Node, compute_node: Node) -> list[Any]:
    """Return the users of a node that do not lead to `compute_node`: those that may still read it afterwards."""

    def leads_there(node: Node) -> bool:
        seen, left = set(), [compute_node]
        while left:
            one = left.pop()
            if one is node:
                return True
            if one not in seen:
                seen.add(one)
                left.extend(one.all_input_nodes)
        return False

    return [user for user in extra_input_node.users if not leads_there(user)]
