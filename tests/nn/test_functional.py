"""nn.functional: what is juggled around the ops, and losses against their definitions."""

import itertools
import math

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F

pytestmark = pytest.mark.usefixtures("on_device")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def close(a, b, tol=1e-5):
    np.testing.assert_allclose(
        a.detach().cpu().numpy(), b.detach().cpu().numpy() if hasattr(b, "detach") else b, rtol=tol, atol=tol
    )


# --- activations ----------------------------------------------------------------------------------

IN_PLACE = (
    "relu", "relu6", "leaky_relu", "hardtanh", "elu", "selu", "celu", "silu", "mish", "hardswish", "hardsigmoid",
)  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_gives_the_same_values_and_gradients(name):
    function = getattr(F, name)
    x = torch.randn(4, 5, requires_grad=True)
    out = function(x)
    out.sum().backward()
    want, x.grad = x.grad, None
    y = x * 1
    assert function(y, inplace=True) is y
    close(y, out)
    y.sum().backward()
    close(x.grad, want)


@pytest.mark.parametrize("name", ["relu_", "elu_", "hardtanh_", "leaky_relu_", "selu_", "celu_", "rrelu_"])
def test_underscored_names(name):
    x = torch.randn(6)
    y = x.clone()
    out = getattr(F, name)(y)
    assert out is y
    close(y, getattr(F, name[:-1])(x))


def test_rrelu_draws_slopes_in_training():
    x = -torch.ones(1000)
    out = F.rrelu(x, 0.1, 0.3, training=True)
    assert out.min() >= -0.3
    assert out.max() <= -0.1
    assert out.unique().numel() > 900


def test_gumbel_softmax():
    logits = torch.randn(200, 4, requires_grad=True)
    hard = F.gumbel_softmax(logits, 0.5, hard=True)
    assert set(hard.detach().cpu().numpy().round(5).ravel().tolist()) == {0.0, 1.0}
    (hard * torch.randn(200, 4)).sum().backward()
    assert logits.grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_implicit_dimension(name):
    x = torch.randn(2, 3, 4)
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated"):
        out = getattr(F, name)(x)
    close(out, getattr(F, name)(x, 0))


def test_softmax_of_large_and_of_infinite_numbers():
    x = torch.tensor([[1000.0, 1000.0], [-1000.0, -1001.0], [0.0, -math.inf]])
    close(F.softmax(x, 1), [[0.5, 0.5], [0.731058, 0.268941], [1, 0]])
    close(F.log_softmax(x, 1)[:2], [[-math.log(2), -math.log(2)], [-0.313262, -1.313262]])
    assert F.softmax(torch.full((1, 3), -math.inf), 1).isnan().all()
    assert F.softmax(x.double(), 1, dtype=torch.float32).dtype is torch.float32


# --- normalisation --------------------------------------------------------------------------------


def test_batch_norm_running_statistics():
    x = torch.randn(8, 3, 5)
    mean, var = torch.zeros(3), torch.ones(3)
    versions = mean._version
    F.batch_norm(x, mean, var, training=True, momentum=0.25)
    rows = x.transpose(0, 1).reshape(3, -1)
    close(mean, 0.25 * rows.mean(1))
    close(var, 0.75 + 0.25 * rows.var(1))
    assert mean._version > versions
    close(F.batch_norm(x, mean, var), (x - mean.reshape(1, 3, 1)) / (var.reshape(1, 3, 1) + 1e-5).sqrt(), 1e-4)


def test_batch_norm_leaves_running_statistics_alone_for_an_empty_batch():
    mean, var = torch.zeros(3), torch.ones(3)
    out = F.batch_norm(torch.zeros(0, 3, 2), mean, var, training=True)
    assert out.shape == (0, 3, 2)
    close(mean, np.zeros(3))
    close(var, np.ones(3))


def test_instance_and_group_norm_are_batch_norms_of_parts():
    x = torch.randn(2, 4, 6)
    for sample in range(2):
        alone = F.batch_norm(x[sample : sample + 1], None, None, training=True)
        close(F.instance_norm(x)[sample : sample + 1], alone)
    close(F.group_norm(x, 4), F.instance_norm(x))
    close(F.group_norm(x, 1), F.layer_norm(x, (4, 6)))


# --- embeddings -----------------------------------------------------------------------------------


def test_embedding_renormalises_in_place():
    weight = torch.randn(5, 8) * 3
    before = weight.clone()
    out = F.embedding(torch.tensor([1, 1, 3]), weight, max_norm=1.0)
    close(out.norm(dim=1), np.ones(3), 1e-4)
    close(weight[0], before[0])
    close(weight[1], before[1] / before[1].norm(), 1e-4)


def test_embedding_padding_gets_no_gradient():
    weight = torch.randn(4, 2, requires_grad=True)
    F.embedding(torch.tensor([0, 3, 3]), weight, padding_idx=-1).sum().backward()
    close(weight.grad, [[1, 1], [0, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    weight = torch.randn(6, 3, requires_grad=True)
    indices, offsets = torch.tensor([1, 2, 2, 5, 0]), torch.tensor([0, 2, 2])
    out = F.embedding_bag(indices, weight, offsets, mode=mode)
    bags = [weight[indices[0:2]], None, weight[indices[2:5]]]
    reduce = {"sum": lambda b: b.sum(0), "mean": lambda b: b.mean(0), "max": lambda b: b.max(0).values}[mode]
    want = torch.stack([torch.zeros(3) if b is None else reduce(b) for b in bags])
    close(out, want)
    cotangent = torch.randn(3, 3)
    mine = torch.autograd.grad(out, weight, cotangent)[0]
    close(mine, torch.autograd.grad(want, weight, cotangent)[0])
    close(
        F.embedding_bag(indices[:4].reshape(2, 2), weight, mode=mode),
        torch.stack([reduce(weight[indices[:2]]), reduce(weight[indices[2:4]])]),
    )


def test_embedding_bag_options():
    weight, indices = torch.randn(6, 3), torch.tensor([1, 2, 2, 5])
    scales = torch.tensor([1.0, 2.0, 3.0, 4.0])
    out = F.embedding_bag(
        indices, weight, torch.tensor([0, 2, 4]), mode="sum", per_sample_weights=scales, include_last_offset=True
    )
    close(out, torch.stack([weight[1] + 2 * weight[2], 3 * weight[2] + 4 * weight[5]]))
    padded = F.embedding_bag(indices, weight, torch.tensor([0]), mode="mean", padding_idx=2)
    close(padded[0], (weight[1] + weight[5]) / 2)


# --- losses ---------------------------------------------------------------------------------------


def test_linear_without_outputs():
    x, weight = torch.ones(2, 5, 3, requires_grad=True), torch.ones(0, 3, requires_grad=True)
    bias = torch.ones(0, requires_grad=True)
    out = F.linear(x, weight, bias)
    out.sum().backward()
    assert out.shape == (2, 5, 0) and weight.grad.shape == (0, 3) and bias.grad.shape == (0,) and not x.grad.any()
    empty = F.linear(torch.ones(2, 5, 0), torch.ones(4, 0), torch.ones(4))
    assert empty.shape == (2, 5, 4) and empty.sum() == 40


def test_cross_entropy_is_log_softmax_and_nll():
    logits = torch.randn(6, 5, requires_grad=True)
    target, weight = torch.tensor([0, 4, 2, 2, 1, 3]), torch.rand(5) + 0.5
    for options in (
        {},
        {"weight": weight},
        {"ignore_index": 2},
        {"reduction": "sum"},
        {"reduction": "none", "weight": weight},
    ):
        close(F.cross_entropy(logits, target, **options), F.nll_loss(F.log_softmax(logits, 1), target, **options))
    one_hot = F.one_hot(target, 5).float()
    close(F.cross_entropy(logits, target, label_smoothing=0.1), F.cross_entropy(logits, one_hot * 0.9 + 0.02))
    assert F.cross_entropy(logits, torch.full((6,), -100)).isnan()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_cross_entropy_of_scores_that_lie_otherwise(order):
    scores = torch.randn(2, 5, 3).requires_grad_()
    target = torch.tensor([[0, 4, 2], [3, 1, 0]])
    back = [order.index(d) for d in range(3)]
    other = scores.detach().permute(order).contiguous().permute(back).requires_grad_()
    losses = [F.cross_entropy(x, target, reduction="none") for x in (scores, other)]
    close(*losses)
    for loss in losses:
        loss.square().sum().backward()
    close(other.grad, scores.grad)


def test_cross_entropy_second_derivative():
    logits = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: F.cross_entropy(x, torch.tensor([0, 2, 1, 1])), (logits,))


def ctc_by_enumeration(log_probs, target, blank=0):
    """Minus the log of the summed probability of every path that collapses to the target."""
    times, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=times):
        collapsed = [k for k, _ in itertools.groupby(path) if k != blank]
        if collapsed == list(target):
            total += math.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return -math.log(total) if total else math.inf


def test_ctc_loss_against_all_paths():
    log_probs = F.log_softmax(torch.randn(4, 3, 3, dtype=torch.float64), 2)
    targets = [(1, 2), (1, 1), (2,)]
    want = [ctc_by_enumeration(log_probs[:, i].cpu().numpy(), t) for i, t in enumerate(targets)]
    flat = torch.tensor([k for t in targets for k in t])
    close(F.ctc_loss(log_probs, flat, [4, 4, 4], [2, 2, 1], reduction="none"), want)
    impossible = F.ctc_loss(log_probs[:2], flat, [2, 2, 2], [2, 2, 1], reduction="none")
    assert impossible[1] == math.inf
    assert F.ctc_loss(log_probs[:2], flat, [2, 2, 2], [2, 2, 1], reduction="none", zero_infinity=True)[1] == 0


def test_ctc_loss_takes_targets_and_lengths_from_the_host(device):
    log_probs = F.log_softmax(torch.randn(5, 2, 4), 2)
    targets, lengths, target_lengths = (
        torch.tensor([[1, 2], [3, 1]], device="cpu"),
        torch.tensor([5, 4], device="cpu"),
        torch.tensor([2, 1], device="cpu"),
    )
    want = F.ctc_loss(log_probs.cpu(), targets, lengths, target_lengths, reduction="none")
    for places in itertools.product(("cpu", device), repeat=3):
        here = log_probs.to(device).requires_grad_()
        for enabled in (False, True):
            with torch.autocast(device.partition(":")[0], enabled=enabled):
                found = F.ctc_loss(
                    here,
                    *[x.to(where) for x, where in zip((targets, lengths, target_lengths), places, strict=True)],
                    reduction="none",
                )
            assert found.device == here.device
            torch.testing.assert_close(found.detach().cpu(), want)
        found.sum().backward()
    flat = torch.tensor([1, 2, 3], device="cpu")
    torch.testing.assert_close(
        F.ctc_loss(log_probs.to(device), flat, lengths, target_lengths, reduction="none").cpu(), want
    )
    with pytest.raises(RuntimeError, match="Expected input_lengths to have value at most 5, but got value 6"):
        F.ctc_loss(log_probs.to(device), flat, lengths + 1, target_lengths)


def test_old_reduction_arguments_warn():
    x, y = torch.randn(3), torch.randn(3)
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        close(F.mse_loss(x, y, size_average=False), F.mse_loss(x, y, reduction="sum"))
    with pytest.warns(UserWarning, match="This will likely lead to incorrect results due to broadcasting"):
        F.l1_loss(x, torch.randn(1))


# --- attention ------------------------------------------------------------------------------------


def attention_by_hand(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


@pytest.mark.parametrize("rows", [3, 2])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_attention_with_a_mask_that_is_causal_too(kind, rows, device):
    torch.manual_seed(0)
    q = torch.randn(2, 4, rows, 5, device=device, requires_grad=True)
    k, v = torch.randn(2, 2, 2, 3, 5, device=device).unbind()
    mask = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 1]], device=device)[:rows].bool()
    causal = torch.ones(rows, 3, dtype=torch.bool, device=device).tril()
    given, joined = mask, mask & causal
    if kind == "float":
        given = torch.randn(rows, 3, device=device)
        joined = given.masked_fill(~causal, -math.inf)
    out = F.scaled_dot_product_attention(q, k, v, given, is_causal=True, enable_gqa=True)
    wanted = F.scaled_dot_product_attention(q, k, v, joined, enable_gqa=True)
    assert torch.equal(out, wanted)
    assert torch.equal(*(torch.autograd.grad(each.sum(), q)[0] for each in (out, wanted)))
    for refused in ({"dropout_p": 0.5}, {"attn_mask": torch.zeros(rows, 3, device=device, requires_grad=True)}):
        with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when is_causal=True"):
            F.scaled_dot_product_attention(q, k, v, **{"attn_mask": given, **refused}, is_causal=True, enable_gqa=True)


def test_scaled_dot_product_attention():
    q, k, v = (torch.randn(2, 3, 5, 4) for _ in range(3))
    close(F.scaled_dot_product_attention(q, k, v), attention_by_hand(q, k, v))
    causal = torch.full((5, 5), -math.inf).triu(1)
    close(F.scaled_dot_product_attention(q, k, v, is_causal=True), attention_by_hand(q, k, v, causal))
    close(F.scaled_dot_product_attention(q, k, v, attn_mask=causal == 0), attention_by_hand(q, k, v, causal))
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    close(F.scaled_dot_product_attention(q, k, v, attn_mask=nothing), np.zeros((2, 3, 5, 4)))
    grouped = F.scaled_dot_product_attention(q.reshape(1, 6, 5, 4), k[:1], v[:1], enable_gqa=True)
    close(
        grouped, attention_by_hand(q.reshape(1, 6, 5, 4), k[:1].repeat_interleave(2, 1), v[:1].repeat_interleave(2, 1))
    )
    mask = torch.zeros(5, 5, requires_grad=True)
    F.scaled_dot_product_attention(q, k, v, attn_mask=mask).sum().backward()
    assert mask.grad.shape == (5, 5)


def attention_arguments(features=8, heads=2):
    return {
        "embed_dim_to_check": features,
        "num_heads": heads,
        "in_proj_weight": torch.randn(3 * features, features) * 0.3,
        "in_proj_bias": torch.randn(3 * features),
        "bias_k": None,
        "bias_v": None,
        "add_zero_attn": False,
        "dropout_p": 0.0,
        "out_proj_weight": torch.randn(features, features),
        "out_proj_bias": torch.randn(features),
    }


def test_multi_head_attention_with_and_without_weights():
    x, memory = torch.randn(5, 3, 8), torch.randn(6, 3, 8)
    options = attention_arguments()
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[1, 4:] = True
    for key_padding_mask, attn_mask in (
        (None, None),
        (padding, None),
        (padding, torch.randn(5, 6)),
        (None, torch.randn(6, 5, 6)),
    ):
        masks = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        out, weights = F.multi_head_attention_forward(x, memory, memory, **options, **masks)
        lean, none = F.multi_head_attention_forward(x, memory, memory, **options, **masks, need_weights=False)
        close(out, lean)
        assert none is None
        assert weights.shape == (3, 5, 6)
        close(weights.sum(-1), np.ones((3, 5)))
        if key_padding_mask is not None:
            close(weights[1, :, 4:], np.zeros((5, 2)))
    _, each = F.multi_head_attention_forward(x, memory, memory, **options, average_attn_weights=False)
    assert each.shape == (3, 2, 5, 6)


def test_multi_head_attention_without_a_batch():
    x, options = torch.randn(5, 8), attention_arguments()
    out, weights = F.multi_head_attention_forward(x, x, x, **options)
    batched, _ = F.multi_head_attention_forward(*[x.unsqueeze(1)] * 3, **options)
    close(out, batched[:, 0])
    assert weights.shape == (5, 5)


@pytest.mark.parametrize("training", [False, True])
def test_in_place_rrelu_of_a_negative_slope_has_no_gradient(training):
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    out = F.rrelu_(x.clone(), -5.0, 1.0, training)
    if training:
        out.sum().backward()
        assert x.grad[1] == 1
    else:
        with pytest.raises(RuntimeError, match="call out-of-place version"):
            out.sum().backward()


def test_rows_of_an_embedding_keep_to_the_maximal_norm():
    # PyTorch computes the factor in double precision. The recorded rows are its own.
    weight = torch.tensor([[3.0, 4.0, 1.0], [0.1, 0.2, 0.3], [7.0, -1.0, 2.5]])
    torch.embedding_renorm_(weight, torch.tensor([0, 1, 2, 2]), 1.0)
    assert weight[0].tolist() == [0.588348388671875, 0.7844645380973816, 0.1961161345243454]
    assert weight[2].tolist() == [0.9333332777023315, -0.13333332538604736, 0.3333333134651184]
