"""Names that torchao, bitsandbytes and thinc import, and what they do here."""

import importlib
import platform

import pytest

import torchlite as torch
from torchlite._higher_order_ops.inline_asm_elementwise import inline_asm_elementwise
from torchlite._higher_order_ops.out_dtype import out_dtype
from torchlite._inductor.decomposition import decompositions, register_decomposition, select_decomp_table
from torchlite.sparse import _triton_ops_meta as meta
from torchlite.utils import _triton

aten = torch.ops.aten
OLDER_NAMES = [
    "intrinsic", "intrinsic.modules", "intrinsic.qat", "intrinsic.quantized", "intrinsic.quantized.dynamic", "qat",
    "qat.dynamic", "qat.modules", "quantized", "quantized.dynamic", "quantized.dynamic.modules", "quantized.modules",
]  # fmt: skip


@pytest.mark.parametrize("name", OLDER_NAMES)
def test_older_names_of_packages_of_layers(name):
    older, newer = (importlib.import_module(f"{parent}.{name}") for parent in ("torchlite.nn", "torchlite.ao.nn"))
    assert {n: getattr(older, n) for n in newer.__all__} == {n: getattr(newer, n) for n in newer.__all__}


def test_older_names_are_attributes():
    assert torch.nn.quantized.dynamic.Linear is torch.ao.nn.quantized.dynamic.Linear
    assert torch.nn.intrinsic.quantized.LinearReLU is torch.ao.nn.intrinsic.quantized.LinearReLU


def test_dtypes_of_few_bits_have_names():
    for bits in range(1, 8):
        unsigned, signed = getattr(torch, f"uint{bits}"), getattr(torch, f"int{bits}")
        assert repr(unsigned) == f"torch.uint{bits}" and unsigned.itemsize == signed.itemsize == 1
        assert signed.is_signed and not unsigned.is_signed and not signed.is_floating_point
    assert torch.bits16.itemsize == 2 and repr(torch.bits1x8) == "torch.bits1x8"
    with pytest.raises(TypeError, match="quantize_per_tensor makes tensors"):
        torch.zeros(2, dtype=torch.quint8)


def test_triton_serves_no_device():
    assert not _triton.has_triton() and not _triton.has_triton_tma() and not _triton.has_triton_tma_device()
    if not _triton.has_triton_package():
        assert _triton.get_triton_version((3, 1)) == (3, 1)


def test_parameters_of_triton_kernels():
    version = (0, torch.float16, 0.25)
    meta.update("scatter_mm", "a", version, (1, 2), (1, 2, 3, 4, 5, 6))
    meta.update("scatter_mm", "a", version, (1, 3), (6, 5, 4, 3, 2, 1))
    found = meta.get_meta("scatter_mm", (1, 2), "a", version)
    assert found == {"GROUP_SIZE": 1, "SPLIT_N": 2, "TILE_M": 3, "TILE_N": 4, "num_stages": 5, "num_warps": 6}
    assert set(meta.get_meta("scatter_mm", (1, "*"), "a", version)) == {(1, 2), (1, 3)}
    assert meta.get_meta("scatter_mm", (2, 2), "a", version) is None
    assert meta.get_meta("scatter_mm", (1, 2), version=version) is None  # of the present device
    with pytest.warns(UserWarning, match="skipping empty value for scatter_mm"):
        meta.update("scatter_mm", "a", version, (1, 4), ())
    meta.update("other", "a", version, (1,), (1,))
    with pytest.raises(NotImplementedError, match="names for op='other'"):
        meta.get_meta("other", (1,), "a", version)


def step(name, value, direction, parameters):
    return max(value + direction, 0)


def test_the_search_for_parameters():
    def target(p):
        if p["a"] == 2:
            raise RuntimeError("out of resource")
        return 1.0 + abs(p["a"] - 3) + abs(p["b"] - 1)

    values = {}
    best, gain, least, text = meta.minimize(target, {"a": 0, "b": 0}, {"a": 1, "b": 1}, step, all_values=values)
    assert (best, least) == ({"a": 3, "b": 1}, 1.0)
    assert gain == pytest.approx((1 - 1 / 3) * 100)
    assert "a=3" in text and "out of resource" in values.values()
    assert meta.minimize(lambda p: 1 / 0, {"a": 1}, {"a": 1}, step)[:3] == ({}, -1, -1)
    # A local minimum above the reference: the search begins again there.
    rugged = {0: 5.0, 1: 9.0, 2: 9.0, 3: 9.0, 4: 1.0}
    assert meta.minimize(lambda p: rugged.get(p["a"], 9.0), {"a": 0}, {"a": 4}, step)[0] == {"a": 4}


def test_out_dtype():
    a, b = torch.full((2, 3), 100, dtype=torch.int8), torch.full((3, 2), 100, dtype=torch.int8)
    product = out_dtype(aten.mm.default, torch.int32, a, b)
    assert product.dtype is torch.int32 and product.tolist() == [[30000] * 2] * 2
    assert torch.ops.higher_order.out_dtype is out_dtype
    assert out_dtype(aten.mul.Scalar, torch.int32, a, 2).tolist() == [[200] * 3] * 2
    for op, words in (
        (torch.mm, "must be an OpOverload"),
        (aten.add_.Tensor, "functional operator"),
        (aten.topk.default, "return a single tensor"),
        (aten.add.Tensor, "only allows the following operators"),
    ):
        with pytest.raises(ValueError, match=words):
            out_dtype(op, torch.int32, a, b)


def test_inline_assembly_is_refused():
    how = {"asm_str": "mov.b32 $0, $1;", "constraints": "=r,r", "dtype": torch.float32}
    with pytest.raises(RuntimeError, match="inline_asm_elementwise only supports CUDA tensors"):
        inline_asm_elementwise(torch.ones(2), **how)
    with pytest.raises(ValueError, match="at least one input"):
        inline_asm_elementwise(**how)
    with pytest.raises(ValueError, match="is_pure=True"):
        inline_asm_elementwise(torch.ones(2), **how, is_pure=False)


def test_decompositions_of_the_compiler():
    op = aten.erfc.default
    try:
        register_decomposition([op])(lambda x: 1 - torch.erf(x))
        assert decompositions[op](torch.zeros(1)).item() == 1 and select_decomp_table() is decompositions
    finally:
        decompositions.pop(op)
    assert torch._inductor.decomposition.decompositions is decompositions
    assert torch._inductor.config.__name__.endswith("config")


def test_semi_structured_classes():
    assert not isinstance(torch.ones(2), torch.sparse.SparseSemiStructuredTensor)
    with pytest.raises(NotImplementedError, match="semi-structured"):
        torch.sparse.SparseSemiStructuredTensor(torch.ones(2))
    with pytest.raises(NotImplementedError, match="semi-structured"):
        torch.sparse.SparseSemiStructuredTensor.from_dense(torch.ones(4, 4))
    for name in ("CUSPARSELT", "CUTLASS"):
        with pytest.raises(RuntimeError, match="Only CUDA tensors are currently supported"):
            getattr(torch.sparse, f"SparseSemiStructuredTensor{name}").from_dense(torch.ones(4, 4))


def test_shallow_copies_need_the_same_kind_of_memory():
    dense = torch.eye(2)
    kinds = (dense, dense.to_sparse(), dense.to_sparse_csr(), dense.to("meta"))
    for i, a in enumerate(kinds):
        for j, b in enumerate(kinds):
            assert torch._has_compatible_shallow_copy_type(a, b) is (i == j)
    assert torch._has_compatible_shallow_copy_type(dense, torch.nn.Parameter(dense.double()))


def test_capabilities_of_the_processor():
    found = torch.cpu.get_capabilities()
    assert found["architecture"] == platform.machine() and found["num_logical_cores"] >= 1
    assert torch._C._cpu._get_cpu_capability() == found
    assert torch._C._cpu._init_amx() is False
    if found.get("avx512_f"):
        assert torch.cpu._is_avx2_supported()
    assert all(
        type(getattr(torch.cpu, f"_is_{name}_supported")()) is bool
        for name in ("avx2", "avx512", "avx512_bf16", "vnni", "amx_tile", "amx_fp16")
    )


def test_engines_of_quantized_ops():
    quantized = torch.backends.quantized
    assert quantized.engine == "x86" and quantized.supported_engines == ["qnnpack", "onednn", "x86", "fbgemm"]
    try:
        quantized.engine = "qnnpack"
        assert quantized.engine == "qnnpack"
        with pytest.raises(RuntimeError, match="zz is not a valid value for quantized engine"):
            quantized.engine = "zz"
    finally:
        quantized.engine = "x86"
    with pytest.raises(RuntimeError, match="Assignment not supported"):
        quantized.supported_engines = []


def test_precisions_of_onednn():
    mkldnn = torch.backends.mkldnn
    assert (mkldnn.fp32_precision, mkldnn.matmul.fp32_precision) == ("none", "none")
    try:
        mkldnn.fp32_precision = "bf16"
        mkldnn.matmul.fp32_precision = "ieee"
        assert (mkldnn.matmul.fp32_precision, mkldnn.conv.fp32_precision) == ("ieee", "bf16")
        torch.set_float32_matmul_precision("medium")
        assert (mkldnn.matmul.fp32_precision, torch.backends.cuda.matmul.fp32_precision) == ("bf16", "tf32")
        with pytest.raises(RuntimeError, match="Unknown precision: zz"):
            mkldnn.rnn.fp32_precision = "zz"
        with pytest.raises(AttributeError, match="Unknown attribute x"):
            mkldnn.matmul.x = 1
    finally:
        mkldnn.fp32_precision = mkldnn.matmul.fp32_precision = "none"
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.fp32_precision = mkldnn.matmul.fp32_precision = "none"


def test_functions_for_compilers():
    assert torch._disable_dynamo(len) is len and torch._disable_dynamo(recursive=False)(len) is len
    assert torch._dynamo.nonstrict_trace(len) is len and torch._dynamo.is_inductor_supported()
    with pytest.raises(AssertionError, match="expects a callable"):
        torch._dynamo.nonstrict_trace(1)
    assert torch._dynamo.utils.counters["no group"]["name"] == 0
    torch._dynamo.utils.counters.clear()
    assert torch.sparse.SparseSemiStructuredTensor._DEFAULT_ALG_ID == 0
    from torchlite._ops import HigherOrderOperator

    assert isinstance(out_dtype, HigherOrderOperator)


def test_ops_that_passes_name():
    x = torch.arange(8.0).reshape(2, 2, 2)
    found = aten.cudnn_batch_norm(x, torch.ones(2), None, torch.zeros(2), torch.ones(2), True, 0.1, 1e-5)
    expected = aten.native_batch_norm(x, torch.ones(2), None, None, None, True, 0.1, 1e-5)
    assert len(found) == 4 and all(map(torch.allclose, found, expected))
    found = aten.miopen_batch_norm(x, torch.ones(2), None, None, None, True, 0.1, 1e-5)
    assert len(found) == 3 and all(map(torch.equal, found, expected))
    assert aten._mkldnn_transpose(x, 0, 2).is_contiguous() and aten._mkldnn_transpose(x, 0, 2)[1, 0, 0] == 1
    assert aten._efficientzerotensor([2], dtype=torch.int8).tolist() == [0, 0]
    x = torch.ones(2, requires_grad=True)
    assert torch.ops.prims.convert_element_type(x, torch.float64).sum().backward() is None and x.grad.tolist() == [1, 1]
    assert torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.5, 0, 0, 9, torch.uint8).tolist() == [2, 2]


def test_names_of_export():
    from torchlite._export import error, utils
    from torchlite.export.unflatten import _assign_attr, _AttrKind
    from torchlite.fx.experimental.symbolic_shapes import has_free_symbols
    from torchlite.utils._pytree import tree_structure, treespec_leaf

    with pytest.raises(error.InternalError, match="words"):
        error.internal_assert(False, "words")
    with utils._disable_aten_to_metadata_assertions():
        assert utils._is_cia_op(aten.linear.default) and not utils._is_cia_op(aten.mm.default)
    assert not has_free_symbols(torch.ones(2)) and not has_free_symbols([1, (2,)])
    n = torch.export.Dim("n")
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(3),), dynamic_shapes=({0: n},))
    size = next(iter(program.graph.nodes)).meta["val"]
    assert has_free_symbols(size) and has_free_symbols([1, size.shape])
    module = torch.nn.Module()
    _assign_attr(torch.nn.Parameter(torch.ones(1)), module, "a.b", _AttrKind.PARAMETER)
    module.add_module("a@1", torch.nn.Module())
    _assign_attr(torch.zeros(1), module, "a.c", _AttrKind.BUFFER, persistent=False)
    _assign_attr(3, module, "a.d", _AttrKind.CONSTANT)
    _assign_attr(torch.nn.ReLU(), module, "e", _AttrKind.MODULE)
    assert list(module.state_dict()) == ["a.b"] and module.get_submodule("a@1").d == module.a.d == 3
    assert module.get_submodule("a@1").c is module.a.c and isinstance(module.e, torch.nn.ReLU)
    with pytest.raises(AssertionError, match="expected Parameter for PARAMETER attr_kind"):
        _assign_attr(torch.ones(1), module, "f", _AttrKind.PARAMETER)
    spec = tree_structure([1])
    spec._children.append(treespec_leaf())
    spec.__post_init__()
    assert (spec.num_children, spec.num_leaves, spec.num_nodes) == (2, 2, 3)


def test_overloads_with_tensors_come_before_numbers():
    class Quantizing(torch.nn.Module):
        def forward(self, x, scale, zero_point):
            return torch.ops.quantized_decomposed.quantize_per_tensor(x, scale, zero_point, 0, 9, torch.uint8)

    inputs = torch.ones(2), torch.tensor([0.5]), torch.tensor([1])
    program = torch.export.export(Quantizing(), inputs)
    (node,) = [node for node in program.graph.nodes if node.op == "call_function"]
    assert str(node.target) == "quantized_decomposed.quantize_per_tensor.tensor" and len(node.all_input_nodes) == 3
    assert program.module()(torch.ones(2), torch.tensor([0.25]), torch.tensor([0])).tolist() == [4, 4]
