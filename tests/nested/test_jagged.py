"""Nested tensors with the jagged layout: each op against the same op on every part, values and gradients."""

from __future__ import annotations

import copy
import io

import pytest

import torchlite as torch
import torchlite.nn.functional as F

JAGGED = torch.jagged
LENGTHS = (2, 5, 1)


def parts(device="cpu", width=8, dtype=torch.float64, requires_grad=True):
    torch.manual_seed(0)
    made = [torch.randn(n, width, dtype=dtype).to(device) for n in LENGTHS]
    return [part.requires_grad_(requires_grad) for part in made]


def nested(tensors):
    return torch.nested.as_nested_tensor(tensors, layout=JAGGED)


def as_parts(result):
    """The parts of a nested result, or the rows of a dense one."""
    return list(result.unbind())


WEIGHT = torch.linspace(-1, 1, 32, dtype=torch.float64).reshape(8, 4)
ROWS = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(3, 1, 8)
STACK = torch.linspace(-1, 1, 120, dtype=torch.float64).reshape(3, 8, 5)


def attend(x):
    heads = x.unflatten(-1, [2, 4]).transpose(-3, -2)
    return F.scaled_dot_product_attention(heads, heads, heads).transpose(-3, -2).flatten(-2)


# A function of a nested tensor, and of the part i of it, or None for the same function.
OPS = {
    "pointwise": (lambda x: torch.tanh(x) * x + 1, None),
    "dense of the last dim": (lambda x: x * ROWS[0, 0].to(x.device), None),
    "dense of the batch": (lambda x: x - ROWS.to(x.device), lambda x, i: x - ROWS[i].to(x.device)),
    "number": (lambda x: 2 - x / 3, None),
    "where": (lambda x: torch.where(x > 0, x, 0.0), None),
    "masked_fill": (lambda x: x.masked_fill(x > 1, 0.0), None),
    "clamp": (lambda x: x.clamp(-1, 1), None),
    "matmul": (lambda x: x @ WEIGHT.to(x.device), None),
    "bmm": (lambda x: torch.bmm(x, STACK.to(x.device)), lambda x, i: x @ STACK[i].to(x.device)),
    "linear": (lambda x: F.linear(x, WEIGHT.t().to(x.device)), None),
    "layer_norm": (lambda x: F.layer_norm(x, (8,)), None),
    "rms_norm": (lambda x: F.rms_norm(x, (8,)), None),
    "gelu": (lambda x: F.gelu(x), None),
    "softmax": (lambda x: x.softmax(-1), None),
    "softmax of parts": (lambda x: x.softmax(-2), None),
    "log_softmax": (lambda x: x.log_softmax(-1), None),
    "sum of the last dim": (lambda x: x.sum(-1), None),
    "sum of parts": (lambda x: x.sum(-2), None),
    "sum of parts, kept": (lambda x: x.sum(-2, keepdim=True), None),
    "mean of parts": (lambda x: x.mean(-2), None),
    "amax of parts": (lambda x: x.amax(-2), None),
    "amin of parts": (lambda x: x.amin(-2), None),
    "max of parts": (lambda x: x.max(-2).values, None),
    "min of the last dim": (lambda x: x.min(-1)[0], None),
    "prod of parts": (lambda x: x.prod(-2), None),
    "attention": (attend, None),
    "chunk": (lambda x: x.chunk(2, -1)[1], None),
    "split": (lambda x: x.split([3, 5], -1)[0], None),
    "cat": (lambda x: torch.cat([x, x * 2], -1), None),
    "stack": (lambda x: torch.stack([x, x * 2], -1), None),
    "narrow": (lambda x: x.narrow(-1, 2, 3), None),
    "slice": (lambda x: x[..., 1:4], None),
    "select": (lambda x: x.select(-1, 2), None),
    "transpose": (lambda x: x.transpose(-1, -2) * 2, None),
    "unsqueeze": (lambda x: x.unsqueeze(-2).unsqueeze(-1).squeeze(-1), None),
    "permute": (lambda x: x.mT.contiguous(), None),
    "unflatten": (lambda x: x.unflatten(-1, [2, 4]).flatten(-2), None),
    "expand": (lambda x: x.unsqueeze(-1) * torch.ones(2, dtype=x.dtype, device=x.device), None),
    "clone": (lambda x: x.clone().mul_(3), None),
    "in place": (lambda x: (x * 1).add_(x).relu_(), None),
    "to": (lambda x: x.to(torch.float32).double(), None),
}


@pytest.mark.parametrize("name", OPS)
def test_op_is_that_of_each_part(name, device):
    if device == "opencl" and not torch.opencl.get_device_properties(0).has_fp64:
        pytest.skip("the device has no double precision")
    function, of_part = OPS[name]
    inputs, expected_inputs = parts(device), parts(device)
    result = function(nested(inputs))
    expected = [function(x) if of_part is None else of_part(x, i) for i, x in enumerate(expected_inputs)]
    found = as_parts(result)
    assert [tuple(f.shape) for f in found] == [tuple(e.shape) for e in expected]
    weights = [
        torch.arange(1.0, e.numel() + 1, dtype=e.dtype, device=e.device).reshape(e.shape).cos() for e in expected
    ]
    sum((f * w).sum() for f, w in zip(found, weights, strict=True)).backward()
    sum((e * w).sum() for e, w in zip(expected, weights, strict=True)).backward()
    for f, e in zip(found, expected, strict=True):
        torch.testing.assert_close(f, e)
    for mine, theirs in zip(inputs, expected_inputs, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_second_derivative():
    x = nested(parts(width=2))
    leaves = parts(width=2)
    assert torch.autograd.gradgradcheck(lambda *p: (nested(list(p)).tanh() @ WEIGHT[:2]).sum(1).sin(), leaves)
    (first,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    assert first.requires_grad and torch.equal(first.values(), 2 * x.values())


def test_construction_and_parts():
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3)
    nt = torch.nested.nested_tensor([a, b], layout=JAGGED, requires_grad=True)
    assert nt.is_nested and nt.layout is JAGGED and nt.dim() == 3 and len(nt) == 2 and nt.numel() == 18 and nt.is_leaf
    assert nt.offsets().tolist() == [0, 2, 6] and nt.lengths() is None and nt.is_contiguous()
    assert [part.tolist() for part in nt.unbind()] == [a.tolist(), b.tolist()] == [part.tolist() for part in nt]
    assert torch.equal(nt[1], b) and torch.equal(nt[0, 1], a[1]) and (nt._max_seqlen, nt._min_seqlen) == (4, 2)
    (nt * 2).sum().backward()
    assert nt.grad.is_nested and torch.equal(nt.grad.values(), torch.full((6, 3), 2.0)) and nt.grad.shape == nt.shape
    same = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 4)], layout=JAGGED)
    assert same.size(1) == 2 and same._ragged_idx == 2 and isinstance(same.size(2), torch.SymInt)
    dense = torch.nested.as_nested_tensor(torch.ones(2, 3, 4), layout=JAGGED)
    assert dense.offsets().tolist() == [0, 3, 6]
    empty = torch.nested.nested_tensor([torch.ones(0, 2), torch.ones(3, 2)], layout=JAGGED)
    assert empty.sum(1).tolist() == [[0, 0], [3, 3]] and empty.to_padded_tensor(5.0).shape == (2, 3, 2)


def test_ragged_sizes():
    a = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=JAGGED)
    b = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=JAGGED)
    size = a.shape[1]
    assert size == (a * 2).shape[1] == a.transpose(1, 2).shape[2] != b.shape[1] and size != 4
    assert repr(size).startswith("j") and repr(2 * size) == f"2*{size!r}" and a.stride()[0] == 3 * size
    assert size >= 2 and not size < 2 and bool(size)
    with pytest.raises(ValueError, match="relation is indeterminate"):
        size > 2
    assert not size > a.transpose(1, 2).shape[2] and size <= size
    with pytest.raises(ValueError, match="relation is indeterminate"):
        size > b.shape[1]
    with pytest.raises(RuntimeError, match="is the size of a ragged dimension"):
        int(size)
    with pytest.raises(RuntimeError):
        torch.zeros(2, size, 3)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add.Tensor with inputs of shapes"):
        a + b
    shared = [torch.nested.nested_tensor_from_jagged(torch.ones(6, 3), a.offsets()) for _ in range(2)]
    assert (shared[0] + shared[1] + a).shape == a.shape


def test_values_with_offsets_and_lengths():
    values, offsets = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 2, 6])
    by_lengths = torch.nested.nested_tensor_from_jagged(values, lengths=torch.tensor([2, 4]))
    assert by_lengths.offsets().tolist() == [0, 2, 6]
    holes = torch.nested.nested_tensor_from_jagged(values, offsets, lengths=torch.tensor([1, 3]))
    assert [p.shape[0] for p in holes.unbind()] == [1, 3] and not holes.is_contiguous()
    assert holes.contiguous().values().shape == (4, 2) and (holes + 1).lengths() is holes.lengths()
    for refused in (lambda: holes.to_padded_tensor(0.0), lambda: holes.sum(1), lambda: holes.sum()):
        with pytest.raises(RuntimeError, match="with holes"):
            refused()
    with pytest.raises(RuntimeError, match="At least one of offsets or lengths is required"):
        torch.nested.nested_tensor_from_jagged(values)


def test_narrow_and_masked_select():
    x = torch.arange(40.0).reshape(2, 5, 4).requires_grad_()
    part = torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=JAGGED)
    assert [p.tolist() for p in part.unbind()] == [x[0, :2].tolist(), x[1, 1:4].tolist()]
    part.contiguous().sum().backward()
    assert x.grad.sum() == 20 and part.values().shape == (10, 4)
    with pytest.raises(RuntimeError, match="jagged layout only supports dim=1"):
        torch.nested.narrow(x, 2, 0, 1, layout=JAGGED)
    y = torch.arange(12.0).reshape(3, 4)
    chosen = torch.nested.masked_select(y, y > 4)
    assert chosen.offsets().tolist() == [0, 0, 3, 7] and chosen.unbind()[1].tolist() == [5, 6, 7]


def test_padding():
    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=JAGGED)
    assert torch.nested.to_padded_tensor(nt, -1.0).sum() == 18 - 6
    wide = nt.to_padded_tensor(0.0, (3, 5, 4))
    assert wide.shape == (3, 5, 4) and wide.sum() == 18
    assert nt.transpose(1, 2).to_padded_tensor(0.0).shape == (2, 3, 4)
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        nt.to_padded_tensor(0.0, (2, 3, 3))


def test_modules_and_embedding():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Embedding(20, 8), torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4), torch.nn.Dropout(0.0)
    )
    words = [torch.arange(3), torch.arange(5)]
    out = net(torch.nested.nested_tensor(words, layout=JAGGED))
    for found, word in zip(out.unbind(), words, strict=True):
        torch.testing.assert_close(found, net(word))
    out.sum().backward()
    assert net[0].weight.grad.abs().sum() >= 0 and net[1].weight.grad.shape == (4, 8)


def test_attention_of_two_lengths_and_causal():
    torch.manual_seed(0)
    key = [torch.randn(n, 2, 4) for n in (3, 5)]
    query = [torch.randn(n, 2, 4) for n in (2, 1)]
    k, q = (torch.nested.nested_tensor(t, layout=JAGGED).transpose(1, 2) for t in (key, query))
    for found, a, b in zip(F.scaled_dot_product_attention(q, k, k).unbind(), query, key, strict=True):
        a, b = a.transpose(0, 1), b.transpose(0, 1)
        torch.testing.assert_close(found, F.scaled_dot_product_attention(a[None], b[None], b[None])[0])
    causal = F.scaled_dot_product_attention(k, k, k, is_causal=True)
    b = key[1].transpose(0, 1)[None]
    torch.testing.assert_close(causal.unbind()[1], F.scaled_dot_product_attention(b, b, b, is_causal=True)[0])
    with pytest.raises(ValueError, match="Masks are not yet supported"):
        F.scaled_dot_product_attention(k, k, k, attn_mask=torch.ones(5, 5))


REFUSED = {
    "softmax of the batch": (lambda x: x.softmax(0), RuntimeError, "across the batch dimension"),
    "log_softmax of parts": (lambda x: x.log_softmax(1), RuntimeError, "along the ragged dimension"),
    "sum of the batch": (lambda x: x.sum(0), RuntimeError, "reducing along the batch dimension but not the ragged"),
    "sum of parts and more": (lambda x: x.sum((1, 2)), RuntimeError, "reducing along a ragged and non-batch dimension"),
    "transpose": (lambda x: x.transpose(0, 1), ValueError, "not supported on the batch dimension for jagged NT"),
    "unsqueeze": (lambda x: x.unsqueeze(0), RuntimeError, "unsqueeze\\(\\): not supported for NestedTensor on dim=0"),
    "chunk": (lambda x: x.chunk(2, 1), RuntimeError, "not supported for NestedTensor on ragged dim"),
    "split": (lambda x: x.split(1, 0), RuntimeError, "split\\(\\): not supported for NestedTensor on dim=0"),
    "cat": (lambda x: torch.cat([x, x], 0), RuntimeError, "cat\\(\\): not supported for NestedTensor on dim=0"),
    "view": (lambda x: x.view(-1, 8), RuntimeError, "view\\(\\): cannot view shape"),
    "matmul": (lambda x: x @ x.transpose(1, 2), RuntimeError, "matmul\\(\\): not supported between inputs of shapes"),
    "dense": (lambda x: x + torch.ones(4, 8), RuntimeError, "cannot call binary pointwise function"),
    "slice": (lambda x: x[:, 1:], RuntimeError, "slice\\(\\): not supported"),
    "unbind": (lambda x: x.unbind(1), RuntimeError, "only supported for NestedTensor on dim=0"),
    "cumsum": (lambda x: x.cumsum(1), NotImplementedError, "aten.cumsum.default"),
    "sort": (lambda x: x.sort(-1), NotImplementedError, "aten.sort"),
    "numpy": (lambda x: x.detach().numpy(), RuntimeError, "numpy\\(\\) is not supported for tensor subclasses"),
    "tolist": (lambda x: x.tolist(), RuntimeError, "tolist\\(\\) is not supported"),
    "bool": (bool, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    "index": (lambda x: x[torch.tensor([0])], NotImplementedError, "aten.index.Tensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        call(nested(parts()))


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        ([], "empty tensor list"),
        ([torch.ones(2), torch.ones(2, 3)], "same dim"),
        ([torch.ones(2, 3), torch.ones(3, 4)], "single ragged dimension"),
        ([torch.tensor(1.0)], "zero-dim tensors"),
        ([torch.ones(2), torch.ones(3).double()], "same dtype"),
    ],
)
def test_lists_that_are_refused(tensors, text):
    with pytest.raises(RuntimeError, match=text):
        torch.nested.nested_tensor(tensors, layout=JAGGED)


def test_writing_a_part_files_and_copies():
    nt = torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(4, 3)], layout=JAGGED)
    nt[0] = 1.0
    nt[1, 2] = torch.ones(3)
    assert nt.values().sum() == 9
    file = io.BytesIO()
    torch.save({"nt": nt}, file)
    file.seek(0)
    found = torch.load(file)["nt"]
    assert torch.equal(found.values(), nt.values()) and found.offsets().tolist() == [0, 2, 6]
    copied = copy.deepcopy(nt)
    assert copied.shape == nt.shape and copied.values() is not nt.values()
    assert repr(nt).startswith("NestedTensor(size=(2, j") and repr(nt).endswith("contiguous=True)")
    assert nt.to(torch.float16).dtype is torch.float16 and nt.to("meta").shape == nt.shape
    other = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=JAGGED)
    assert torch.equal(nt.copy_(other).values(), other.values())


def test_products_with_a_matrix_for_each_part():
    parts = [torch.ones(2, 4), 2 * torch.ones(3, 4)]
    x = torch.nested.nested_tensor(parts, layout=JAGGED)
    matrices = torch.arange(24.0).reshape(2, 4, 3)
    for found, part, matrix in zip((x @ matrices).unbind(), parts, matrices, strict=True):
        assert found.equal(part @ matrix)


def test_views_that_split_a_part_are_refused():
    x = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=JAGGED)
    assert x.view(2, -1, 2, 2).values().shape == (5, 2, 2)
    for wrong in ((3, -1, 4), (2, 4, 4), (2, 2, -1, 2)):
        with pytest.raises(RuntimeError, match="cannot view shape"):
            x.view(wrong)
