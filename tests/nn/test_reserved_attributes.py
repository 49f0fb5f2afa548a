"""Module and its subclasses add no private names besides PyTorch's, since users' subclasses may take any other."""

import copy
import pickle
import warnings

import pytest

import torchlite as torch
from torchlite import nn

# Names with one leading underscore in `dir(torch.nn.Module)` of PyTorch 2.13.
_PRIVATE = {
    "_apply", "_call_impl", "_compiled_call_impl", "_get_backward_hooks", "_get_backward_pre_hooks", "_get_name",
    "_load_from_state_dict", "_maybe_warn_non_full_backward_hook", "_named_members",
    "_register_load_state_dict_pre_hook", "_register_state_dict_hook", "_replicate_for_data_parallel",
    "_save_to_state_dict", "_slow_forward", "_version", "_wrapped_call_impl",
}  # fmt: skip
# Additional private names of PyTorch's modules that torchlite's have too.
_OF_MODULES = {
    "_apply_instance_norm", "_check_input_dim", "_conv_forward", "_ff_block", "_fill_padding_idx_with_zero",
    "_get_abs_string_index", "_get_full_log_prob", "_get_in_channels", "_get_item_by_idx",
    "_get_no_batch_dim", "_get_num_spatial_dims", "_infer_parameters", "_init_flat_weights", "_key_to_attr",
    "_lazy_load_hook", "_mha_block", "_output_padding", "_reset_parameters", "_sa_block",
    "_update_flat_weights", "_weights_have_changed",
}  # fmt: skip


@pytest.mark.parametrize("name", nn.modules.__all__)
def test_modules_add_no_private_names(name):
    found = getattr(nn, name)
    if isinstance(found, type):
        private = {one for one in dir(found) if one[0] == "_" and one[1] != "_"}
        # Names that begin with `_tl_` are the project's own, as those of Tensor's slots.
        assert {one for one in private if not one.startswith("_tl_")} <= _PRIVATE | _OF_MODULES


def test_module_base_adds_no_private_names():
    assert {name for name in dir(nn.Module) if name[0] == "_" and name[1] != "_"} == _PRIVATE
    assert nn.Module.__mro__ == (nn.Module, object)
    assert nn.Module.load_state_dict.__qualname__ == "Module.load_state_dict"


def test_a_subclass_may_call_its_methods_as_it_likes():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(2, 2)

        def _forget(self):
            raise AssertionError

        _convert = _set_other = _set_buffer = _load_one = _load_tree = _swap_in = _cast = _get_leaf = _forget
        _call_hooked = _run_forward_hooks = _find_unexpected = _raise_load_errors = _load_everything = _forget

        def forward(self, x):
            return self.gate(x)

    cell = Cell().double()
    cell.gate = nn.Linear(2, 2)
    cell.register_buffer("seen", torch.zeros(1))
    cell.seen = torch.ones(1)
    cell.register_forward_hook(lambda module, args, result: result * 0)
    cell.load_state_dict(cell.state_dict())
    assert cell.get_parameter("gate.weight").dtype is torch.float32
    assert cell(torch.ones(1, 2)).tolist() == [[0.0, 0.0]]


def test_classes_have_public_module_names():
    homes = {
        torch.Tensor: "torchlite",
        nn.Parameter: "torchlite.nn.parameter",
        nn.MultiheadAttention: "torchlite.nn.modules.activation",
        type(nn.Identity().register_forward_hook(print)): "torchlite.utils.hooks",
    }
    assert {cls: cls.__module__ for cls in homes} == homes


def test_layers_and_methods_of_module_are_pickled_by_their_public_names():
    layers = [getattr(nn, name) for name in nn.modules.__all__]
    methods = [getattr(nn.Module, name) for name in ("forward", "to", "parameters", "state_dict", "register_buffer")]
    for thing in (*layers, *methods, nn.modules.loss._Loss, nn.modules.conv._ConvNd):
        assert "._" not in thing.__module__ and pickle.loads(pickle.dumps(thing)) is thing


def test_deprecated_classes_warn():
    for cls in (nn.Container, nn.NLLLoss2d):
        with pytest.warns(FutureWarning, match="deprecated"):
            cls()


def test_a_parameters_copy_has_neither_gradient_nor_attributes():
    param = nn.Parameter(torch.ones(2), requires_grad=False)
    param.grad, param.tag = torch.ones(2), 1
    copied = copy.deepcopy(param)
    assert type(copied) is nn.Parameter and not copied.requires_grad
    assert copied.grad is None and not hasattr(copied, "tag")
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)
    assert copy.deepcopy(tensor).grad.tolist() == [1.0, 1.0]


class _Pair(nn.Module):
    def forward(self, a, b):
        return a * 2, b * 3


def test_full_backward_hooks_see_zeros_for_inputs_and_none_for_outputs_that_were_not_used():
    seen = []
    pair = _Pair()
    pair.register_full_backward_hook(lambda module, given, got: seen.append((given, got)))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    pair(a, b)[0].sum().backward()
    ((given, got),) = seen
    assert [grad.tolist() for grad in given] == [[2.0, 2.0], [0.0, 0.0]]
    assert got[0].tolist() == [1.0, 1.0] and got[1] is None


@pytest.mark.parametrize(
    ("kind", "answer", "error", "words"),
    [
        ("hook", 5, TypeError, "object of type 'int' has no len()"),
        ("hook", (torch.ones(5),), RuntimeError, "hook 'hook' has changed the size of value"),
        ("hook", (5,), TypeError, "expected Variable, but hook returned 'int'"),
        ("pre_hook", 5, TypeError, "object of type 'int' has no len()"),
        ("pre_hook", torch.ones(7), RuntimeError, "invalid number of grad_output, got 7, but expected 1"),
        ("pre_hook", torch.ones(1, 1), RuntimeError, "hook 'hook' has changed the size of value"),
    ],
)
def test_full_backward_hook_results_are_checked(kind, answer, error, words):
    layer = nn.Linear(2, 1)
    getattr(layer, f"register_full_backward_{kind}")(lambda *args: answer)
    with pytest.raises(error, match=words.replace("(", r"\(").replace(")", r"\)")):
        layer(torch.ones(1, 2, requires_grad=True)).sum().backward()


def test_a_functions_node_names_its_module():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        node = Same.apply(torch.ones(1, requires_grad=True)).grad_fn
    assert repr(node).startswith("<torch.autograd.function.SameBackward object at 0x")


def test_recurrent_modules_keep_their_weights_in_a_list_that_programs_may_fill():
    layer = nn.LSTM(2, 3)
    x = torch.ones(1, 1, 2)
    assert layer._flat_weights_names == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    assert [id(weight) for weight in layer._flat_weights] == [id(weight) for weight in layer.parameters()]
    layer._flat_weights = [torch.zeros_like(weight) for weight in layer._flat_weights]
    assert layer(x)[0].tolist() == [[[0.0, 0.0, 0.0]]]
    layer.weight_ih_l0 = nn.Parameter(torch.ones(12, 2))  # one that changes brings all of them back
    assert layer._flat_weights[0] is layer.weight_ih_l0
    assert layer(x)[0].abs().min() > 0
    raw = layer.weight_hh_l0
    del layer.weight_hh_l0
    layer.weight_hh_l0 = raw * 0  # as layers that drop weights do
    layer(x)[0].sum().backward()
    assert raw.grad is not None and layer._flat_weights[1] is layer.weight_hh_l0
    again = copy.deepcopy(nn.GRU(2, 3).double())
    assert again._flat_weights[0] is again.weight_ih_l0 and again._flat_weights[0].dtype is torch.float64
    doubled = {name: weight * 2 for name, weight in again.named_parameters()}
    other = torch.func.functional_call(again, doubled, (x.double(),))[0]
    assert not torch.equal(other, again(x.double())[0])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "self_attn.batch_first was not True(use batch_first for better inference performance)"),
        ({"batch_first": True, "norm_first": True}, "norm_first was True"),
        ({"batch_first": True, "bias": False}, "self_attn was passed bias=False"),
        ({"batch_first": True, "activation": torch.tanh}, "activation_relu_or_gelu was not True"),
        ({"batch_first": True, "nhead": 1}, "self_attn.num_heads is odd"),
    ],
)
def test_encoders_warn_why_tensors_are_not_nested(options, why):
    layer = nn.TransformerEncoderLayer(**{"d_model": 4, "nhead": 2, "dim_feedforward": 8, **options})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder = nn.TransformerEncoder(layer, 1)
    words = f"enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer.{why}"
    assert [str(one.message) for one in caught] == [words] and not encoder.use_nested_tensor
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


def test_masks_are_merged_and_checked():
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True), torch.ones(2, 3, 4)
    assert attention.merge_masks(None, None, x) == (None, None)
    merged, kind = attention.merge_masks(torch.ones(3, 3), torch.ones(2, 3), x)
    assert merged.shape == (2, 2, 3, 3) and kind == 2 and merged.unique().tolist() == [2.0]
    with pytest.raises(AssertionError, match=r"Expected key_padded_mask.shape\[1\] to be 3, but got 4"):
        attention(x, x, x, key_padding_mask=torch.zeros(2, 4))
    with pytest.raises(RuntimeError, match="You may use the Transformer module method"):
        attention(x, x, x, is_causal=True)
    with pytest.raises(TypeError, match=r"lstm_cell\(\): argument 'hx' \(position 2\) must be tuple of Tensors"):
        nn.LSTMCell(2, 3)(torch.ones(2, 2), torch.ones(2, 3))


def test_lazy_parameters_raise_for_ops_that_need_a_shape():
    weight = nn.LazyLinear(2).weight
    for name in ("numel", "dim", "stride", "item", "numpy", "tolist", "clone", "requires_grad_", "__len__"):
        with pytest.raises(ValueError, match=f"uninitialized parameter in <method '{name}' of 'torch._C.TensorBase'"):
            getattr(weight, name)()


def test_the_former_spectral_norm_writes_its_version():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    assert layer.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    nn.utils.remove_spectral_norm(layer)
    assert "spectral_norm" not in layer.state_dict()._metadata[""]
