"""Results have PyTorch's nodes, by name and edges, for every choice of inputs that require a gradient."""

from __future__ import annotations

import operator

import pytest

import torchlite as torch

from .nodes import nodes_of, recorded
from .op_db import ROWS, load_rows
from .saved_tensors import check_choices

load_rows()

# Of these some samples have other nodes, by reason.
OTHER_NODES = {
    "PyTorch's has no derivative": (
        "_add_relu", "_addmm_activation", "_chunk_cat", "_compute_linear_combination", "_native_multi_head_attention",
        "_transform_bias_rescale_qkv", "batch_norm_update_stats", "bernoulli", "histogram",
        "histogramdd", "linalg_ldl_solve", "lu_unpack", "resize_", "resize_as_",
    ),
    "one node for a layer of all steps, which PyTorch unrolls on the CPU": ("gru", "lstm"),
    "another order of the same arithmetic": ("gradient", "gru_cell", "logdet"),
    "a plan of other products": ("einsum",),
    "complex convolution is one op": ("conv1d", "conv_transpose1d"),
    "label smoothing and class probabilities are composed of other ops": ("cross_entropy",),
    "the row's program under PyTorch is another": ("alias", "div_rounded"),
    "the number of results with a gradient differs": (
        "_standard_gamma_grad", "linalg_lstsq", "native_batch_norm", "native_group_norm", "native_layer_norm",
        "triangular_solve",
    ),
    "a tensor without a gradient counts as a number": ("normal", "bernoulli_"),
    "PyTorch writes in several steps": ("fill_diagonal_", "pad"),
    "the write has no node": ("embedding_renorm_",),
    "the transposed vector has a node": ("linear",),
    "a number by its name": ("scatter",),
}  # fmt: skip
ALLOWED = {name for names in OTHER_NODES.values() for name in names}
ANSWERS = recorded()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values()}))
def test_nodes_are_pytorchs(family):
    rows = [row for name, row in sorted(ROWS.items()) if row.family == family and name in ANSWERS]
    check_choices(rows, ANSWERS, ALLOWED, lambda row, *given: nodes_of(torch, row.function(), row, *given), operator.eq)


class TestShownGraphs:
    """Graphs that PyTorch has and torchlite computes in other steps."""

    def test_a_reflected_operator_shows_the_tensor_first(self, device):
        b = torch.ones(2, device=device, requires_grad=True)
        shown = [y.grad_fn for y in (2 + b, 2 - b, 2 * b, 2 / b, 2**b)]
        assert [n.name() for n in shown] == [
            "AddBackward0", "RsubBackward1", "MulBackward0", "MulBackward0", "PowBackward2",
        ]  # fmt: skip
        for node in (shown[0], shown[1], shown[2], shown[4]):
            assert node.next_functions[0][0].variable is b
        assert [len(n.next_functions) for n in shown] == [2, 1, 2, 2, 1]
        assert (2 - torch.ones(2, device=device, dtype=torch.int64)).tolist() == [1, 1]

    def test_a_mixed_number_is_shown_as_any_other(self, device):
        b = torch.ones(2, device=device, requires_grad=True)
        assert (1j - b).grad_fn.name() == "RsubBackward1"
        assert torch.sub(2, b).grad_fn.name() == "SubBackward0"

    def test_parts_are_the_same_objects_and_cannot_run(self, device):
        layer = torch.nn.Linear(2, 3, device=device)
        node = layer(torch.ones(4, 2, device=device)).grad_fn
        assert node.name() == "AddmmBackward0"
        transposed = node.next_functions[2][0]
        assert type(transposed).__name__ == "TBackward0" and node.next_functions[2][0] is transposed
        assert transposed.next_functions[0][0].variable is layer.weight
        with pytest.raises(NotImplementedError, match="part of another node"):
            transposed.register_hook(lambda *grads: None)
        with pytest.raises(NotImplementedError, match="part of another node"):
            transposed(torch.ones(2, 3))

    def test_hooks_of_a_shown_node_run(self, device):
        x = torch.ones(3, device=device, requires_grad=True)
        loss = torch.nn.functional.mse_loss(x, torch.zeros(3, device=device))
        seen = []
        assert loss.grad_fn.name() == "MseLossBackward0"
        loss.grad_fn.register_prehook(lambda grads: seen.append(grads[0].item()))
        loss.backward()
        assert seen == [1.0] and loss.grad_fn.name() == "MseLossBackward0"

    def test_outputs_of_a_composite_are_numbered(self, device):
        q, r = torch.linalg.qr(torch.eye(3, device=device).requires_grad_())
        assert (q.output_nr, r.output_nr) == (0, 1)
        assert q.grad_fn.name() == r.grad_fn.name() == "LinalgQrBackward0"
        least, most = torch.aminmax(torch.ones(2, device=device, requires_grad=True))
        assert (least.output_nr, most.output_nr) == (0, 1)

    def test_a_result_that_is_an_argument_keeps_its_node(self, device):
        x = torch.ones(2, 2, device=device, requires_grad=True).exp()
        assert torch.atleast_2d(x).grad_fn.name() == "ExpBackward0"
        assert torch.nn.functional.dropout(x, training=False).grad_fn.name() == "ExpBackward0"

    def test_a_write_through_a_view_is_shown_as_one(self, device):
        base = torch.ones(2, 2, device=device, requires_grad=True).clone()
        base[0].zero_()
        assert base.grad_fn.name() == "torch::autograd::CopySlices"
        assert base.grad_fn.next_functions[0][0].name() == "CloneBackward0"
