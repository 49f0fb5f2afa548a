"""A public function reads each of its parameters, or its docstring states that one has no effect, and why."""

import ast
import collections
import re

import pytest

from tests import unused_parameters

# Parameters that are documented to do nothing, by the number of functions: a new one is added here and explained.
DOCUMENTED = """
    alg_id allow_unreachable arg arg_q_descriptors args*5 artifacts_dir attr autograd_inlining blocking
    can_constant_fold_through check_available collections compute_dq_write_order count cudnn_enable cudnn_enabled*3
    decompose_custom_triton_ops defer_pp_recv*2 device*8 device_type devices do_constant_folding dq_kv_order*3
    dq_kv_order_spt dq_write_order*2 dq_write_order_full*2 enable_df_api_tracing*2 example_inputs*2
    experimental_config*2 external fast_sympy_print fwd_chunk_id graph_module*2 group*5 group_name head input_grads
    intermediates is_coordinator is_embedded_type is_standalone_module keep_graph kernel_options kwargs*8 match_name
    max_norm module noise_level non_blocking*3 nonwrapped_numel norm_type optimize options*2 output_grads
    package padding_idx pairs pickle_protocol post_processing_timeout_s*2
    prefer_deferred_runtime_asserts_over_guards quantize_output record_stack_traces reduce_range return_indices*3 root_m
    run_lambda*2 scale scale_grad_by_freq set_priority skip_guard_eval_unsafe sort sorted sparse stream strict target
    target_version the_type token_kv token_q types use_batch*2 use_libuv use_path
    use_precomputed_fake_quant*15 use_python_export*3 verbose verifiers weights x zero_point
"""


@pytest.fixture(scope="module")
def found():
    return unused_parameters.unused_parameters()


def test_every_parameter_is_read_or_documented(found):
    silent = [f"{one.where}: {one.name} never reads `{one.parameter}`" for one in found if not one.documented]
    assert not silent, "\n".join(silent)


def test_documented_parameters_are_listed(found):
    counts = collections.Counter(one.parameter for one in found)
    wanted = {name: int(count or 1) for name, count in re.findall(r"(\w+)(?:\*(\d+))?", DOCUMENTED)}
    assert dict(counts) == wanted


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("def f(a, b): return a", ["b"]),
        ("def f(a, *args, **kwargs): return args", ["a", "kwargs"]),
        ("def f(a): a = 1", ["a"]),
        ("def f(a): return lambda: a", []),
        ("def f(a): return locals()", []),
        ("def f(a): raise NotImplementedError", []),
        ("def f(a) -> NoReturn: refuse()", []),
        ("def f(_a, b): b.c = 1", []),
    ],
)
def test_the_finder(text, unread):
    assert unused_parameters._unread(ast.parse(text).body[0]) == unread


@pytest.mark.parametrize(
    ("doc", "documented"),
    [
        ("`a` has no effect: a reason.", "a"),
        ("`a`, `b` and `c` have no effect", "abc"),
        ("`a` and\n    `b` have no effect", "ab"),
        ("`a` is read. `b` has no effect", "b"),
        ("Adds.\n\nArgs:\n    a: Has no effect.\n    b, *c: No effect.", "abc"),
        ("Args:\n    a: The device. Has no effect", ""),
        (None, ""),
    ],
)
def test_docstrings_that_document(doc, documented):
    assert "".join(name for name in "abc" if unused_parameters._is_documented(name, doc)) == documented
