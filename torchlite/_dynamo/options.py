"""What `mode` and `options` of `torch.compile` may be: the names are PyTorch's, so that programs that set them run. Of
the modes "reduce-overhead" and "max-autotune" change what is done; options are checked, and change nothing.
"""

from __future__ import annotations

from typing import Any

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {"fallback_by_default": True, "allow_buffer_reuse": False, "use_dce": False},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}
_KINDS: dict[type, str] = {
    bool: """
        aggressive_fusion allow_buffer_reuse always_keep_tensor_constants assert_indirect_indexing benchmark_fusion
        benchmark_kernel batch_fusion b2b_gemm_pass combo_kernels comprehensive_padding coordinate_descent_tuning
        coordinate_descent_check_all_directions cpp_wrapper dce debug debug_fusion decompose_mem_bound_mm deterministic
        disable_cpp_codegen disable_progress emulate_precision_casts epilogue_fusion epilogue_fusion_first
        fallback_by_default fallback_random force_disable_caches force_layout_optimization freezing
        freezing_discard_parameters fx_graph_cache fx_graph_remote_cache group_fusion implicit_fallbacks inplace_buffers
        inplace_padding joint_graph_constant_folding keep_output_stride layout_optimization loop_ordering_after_fusion
        max_autotune max_autotune_gemm max_autotune_pointwise memory_planning nan_asserts online_softmax pattern_matcher
        permute_fusion pick_loop_orders profiler_mark_wrapper_call prologue_fusion reorder_for_compute_comm_overlap
        reorder_for_locality reorder_for_peak_memory scalar_asserts search_autotune_cache selective_decompose
        shape_padding size_asserts split_cat_fx_passes split_reductions static_weight_shapes unsafe_ignore_unsupported
        use_dce use_fast_math use_joint_graph_passes use_mixed_mm use_post_grad_passes use_pre_grad_passes
        verbose_progress cpp.dynamic_threads cpp.enable_kernel_profile cpp.no_redundant_loops cpp.weight_prepack
        trace.enabled trace.debug_log trace.fx_graph trace.fx_graph_transformed trace.graph_diagram trace.info_log
        trace.ir_post_fusion trace.ir_pre_fusion trace.output_code triton.cooperative_reductions triton.cudagraphs
        triton.cudagraph_skip_dynamic_graphs triton.cudagraph_trees triton.dense_indexing triton.descriptive_names
        triton.fast_path_cudagraph_asserts triton.persistent_reductions triton.prefer_nd_tiling
        triton.slow_path_cudagraph_asserts triton.tile_reductions triton.tiling_prevents_pointwise_fusion
        triton.tiling_prevents_reduction_fusion triton.unique_kernel_names triton.use_block_ptr
    """,
    int: """
        compile_threads coordinate_descent_search_radius max_fusion_size max_pointwise_cat_inputs min_overlap_ratio
        realize_reads_threshold realize_opcount_threshold score_fusion_memory_threshold unroll_reductions_threshold
        cpp.threads cpp.min_chunk_size cpp.max_horizontal_fusion_size triton.max_tiles triton.multi_kernel
        triton.spill_threshold
    """,
}
# Of these any value will do.
_ANY = """
    _pre_fusion_custom_pass cpp.cxx cpp.march cpp.simdlen cpu_backend cuda_backend guard_filter_fn
    joint_custom_post_pass joint_custom_pre_pass max_autotune_conv_backends max_autotune_gemm_backends
    max_autotune_gemm_search_space post_grad_custom_post_pass post_grad_custom_pre_pass pre_grad_custom_pass
    pre_grad_fusion_options post_grad_fusion_options trace.debug_dir trace.upload_tar triton.autotune_at_compile_time
    triton.cudagraph_capture_sizes worker_start_method
""".split()
KNOWN: dict[str, type | None] = {name: kind for kind, names in _KINDS.items() for name in names.split()}
KNOWN.update(dict.fromkeys(_ANY))


def check(mode: str | None, options: Any) -> None:
    """RuntimeError for a mode or an option that there is not, or a value of another type."""
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    for name, value in (options or {}).items():
        name = name.replace("-", "_")
        if name not in KNOWN:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {list(KNOWN)}")
        kind = KNOWN[name]
        if kind is not None and type(value) is not kind:
            raise RuntimeError(f"Unexpected type of attr {name}, got {type(value).__name__} should be {kind.__name__}")
