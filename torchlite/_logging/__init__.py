"""Logs of the compiler: `torch._logging.set_logs`."""

from __future__ import annotations

from typing import Any

from .._settings.compiler_state import PROCESS_STATE

__all__ = ["set_logs"]

# PyTorch's names, and the names of torchlite that they stand for ("" if torchlite logs nothing under the name).
_KINDS = {
    "graph_breaks": "graph_breaks", "recompiles": "recompiles", "recompiles_verbose": "recompiles",
    "output_code": "code", "graph_code": "code", "kernel_code": "code",
    **dict.fromkeys("""
        all dynamo aot autograd dynamic inductor distributed c10d ddp fsdp dtensor onnx bytecode aot_graphs
        aot_joint_graph ddp_graphs graph graph_code_verbose side_effects graph_sizes guards trace_source trace_call
        trace_bytecode schedule perf_hints pre_grad_graphs post_grad_graphs ir_pre_fusion ir_post_fusion
        onnx_diagnostics fusion overlap export modules cudagraphs sym_node compiled_autograd compiled_autograd_verbose
        cudagraph_static_inputs benchmarking autotuning incremental graph_region_expansion inductor_metrics
        hierarchical_compile compute_dependencies caching
    """.split(), ""),
}  # fmt: skip


def set_logs(**kinds: Any) -> None:
    """Choose what compilers write to the standard error stream: `graph_breaks`, `recompiles` and `output_code` (True or
    False); what is not named is off. Other names of PyTorch's are taken and tell nothing. TypeError for others.

    >>> torchlite._logging.set_logs(graph_breaks=True)
    >>> torchlite._logging.set_logs()
    """
    for name in kinds:
        if name not in _KINDS:
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
    PROCESS_STATE.logs = frozenset(_KINDS[name] for name, value in kinds.items() if value)
