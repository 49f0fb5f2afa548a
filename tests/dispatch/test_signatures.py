"""Calls by each of PyTorch's signatures, and its errors for other calls (recorded from torch 2.13)."""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import NAMESPACES, REGISTRY
from torchlite._dispatch.arg_parser import signatures
from torchlite._dispatch.out_variants import check_out_dtype
from torchlite._dispatch.signature_table import lines
from torchlite._tensor import foreach

pytestmark = pytest.mark.usefixtures("on_device")

# Two ways of one call.
SAME = [
    ("torch.add(x, 2, y)", "x + 2 * y"),
    ("x.clone().add_(2, y)", "x + 2 * y"),
    ("torch.addmm(2, x, 3, x, y)", "2 * x + 3 * (x @ y)"),
    ("torch.addmm(2, x, x, y)", "2 * x + x @ y"),
    ("x.addmm(2, 3, x, y)", "2 * x + 3 * (x @ y)"),
    ("x.clone().addmm_(2, x, y)", "2 * x + x @ y"),
    ("torch.addcmul(x, 2, x, y)", "x + 2 * x * y"),
    ("torch.addcdiv(x, 2, x, y)", "x + 2 * x / y"),
    ("torch.baddbmm(2, x[None], x[None], y[None])", "2 * x[None] + (x @ y)[None]"),
    ("x[None].clone().baddbmm_(2, x[None], y[None])", "2 * x[None] + (x @ y)[None]"),
    ("torch.addbmm(2, x, x[None], y[None])", "2 * x + x @ y"),
    ("torch.addr(2, x, 3, x[0], y[0])", "2 * x + 3 * torch.outer(x[0], y[0])"),
    ("torch.addmv(2, x[0], x, y[0])", "2 * x[0] + x @ y[0]"),
    ("torch.add(x1=x, x2=y)", "x + y"),
    ("torch.mul(a=x, x2=2)", "2 * x"),
    ("torch.exp(x=x)", "torch.exp(x)"),
    ("torch.sum(x=x)", "x.sum()"),
    ("torch.sum(a=x, axis=0, keepdims=True)", "x.sum(0, True)"),
    ("torch.cumsum(x, axis=0)", "x.cumsum(0)"),
    ("torch.cumprod(x, axis=1)", "x.cumprod(1)"),
    ("torch.softmax(x, axis=0)", "x.softmax(0)"),
    ("torch.logsumexp(x, axis=0, keepdims=True)", "x.logsumexp(0, True)"),
    ("torch.unsqueeze(x, axis=0)", "x[None]"),
    ("torch.gather(x, axis=0, index=i)", "x.gather(0, i)"),
    ("torch.index_select(x, axis=0, index=i[0])", "x.index_select(0, i[0])"),
    ("torch.renorm(x, 2, axis=0, maxnorm=1.0)", "x.renorm(2, 0, 1.0)"),
    ("torch.cummax(x, axis=0).values", "x.cummax(0).values"),
    ("torch.logcumsumexp(x, axis=0)", "x.logcumsumexp(0)"),
    ("x.max(axis=0).values", "x.max(0).values"),
    ("torch.roll(x, 1, None)", "x.roll(1)"),
    ("torch.ones(2, dtype=float)", "torch.ones(2, dtype=torch.float64)"),
    ("torch.sum(x, dtype=int)", "x.sum(dtype=torch.int64)"),
    ("torch.tensor([1], dtype=float)", "torch.tensor([1.0], dtype=torch.float64)"),
    ("x.to(int)", "x.to(torch.int64)"),
    ("torch.arange(np.int64(3))", "torch.arange(3)"),
    ("torch.full((2,), np.int64(3))", "torch.full((2,), 3)"),
    ("x.sum(np.int64(0))", "x.sum(0)"),
    ("x.mean(dim=np.int64(0))", "x.mean(0)"),
    ("x.amax(np.int64(0))", "x.amax(0)"),
    ("x.roll(np.int64(1), np.int64(0))", "x.roll(1, 0)"),
    ("x.movedim(np.int64(0), np.int64(1))", "x.movedim(0, 1)"),
    ("torch.lerp(x, y, np.float64(0.5))", "torch.lerp(x, y, 0.5)"),
    ("x.cumsum(torch.tensor(0))", "x.cumsum(0)"),
    ("torch.flip(torch.tensor(1.0), (0,))", "torch.tensor(1.0)"),
    ("torch.einsum(x, [0, 1])", "x"),
    ("x.clone().random_(**{'from': 3, 'to': 4})", "torch.full_like(x, 3)"),
    ("x.clone().uniform_(**{'from': 1.0, 'to': 1.0})", "torch.ones_like(x)"),
    ("F.elu_(-x, 2.0, 3.0, 0.5)", "6 * torch.expm1(-x / 2)"),
    ("F.elu_(x=x - 2)", "F.elu(x - 2)"),
    ("torch.celu_(x=x - 2, alpha=2.0)", "F.celu(x - 2, 2.0)"),
    ("torch.sspaddmm(2, s, 3, s, y).to_dense()", "2 * x + 3 * (x @ y)"),
    ("torch.sspaddmm(s, s, y, out=torch.zeros(2, 2).to_sparse()).to_dense()", "x + x @ y"),
    ("s.sspaddmm(2, s, y).to_dense()", "2 * x + x @ y"),
    ("torch.hsmm(s, y).to_dense()", "x @ y"),
    ("torch.hspmm(s, y, out=torch.zeros(2, 2).to_sparse()).to_dense()", "x @ y"),
    ("torch.kl_div(target=x, x=y)", "torch.kl_div(y, x)"),
    ("torch.adaptive_max_pool1d(x[None], 1)[1]", "torch.tensor([[[1], [1]]])"),
    ("x.type_as(x2=x.int())", "x.int()"),
    ("torch.tensor([torch.is_signed(x=x), torch.is_nonzero(a=x[0, 0])])", "torch.tensor([True, True])"),
    ("gru(x[None], h, params, **rnn, batch_first=False)[0]", "gru(x[None], h, params, *rnn.values(), False)[0]"),
    ("gru(x, n, hx=h, params=params, **rnn)[0]", "gru(x, n, h, params, *rnn.values())[0]"),
    ("gru(x, n, h, params=params, **rnn)[0]", "gru(x, n, h, params, *rnn.values())[0]"),
]


def names():
    """The objects that the expressions of this file use."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    params = [torch.ones(3, 2), torch.ones(3, 1)]
    flags = {"has_biases": False, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    return {
        "torch": torch, "np": np, "F": torch.nn.functional, "x": x, "y": x + 1, "i": torch.tensor([[0, 1]]),
        "s": x.to_sparse(), "gru": torch.gru, "h": torch.zeros(1, 2, 1), "n": torch.tensor([2]), "params": params,
        "rnn": flags,
    }  # fmt: skip


@pytest.mark.parametrize("form,usual", SAME)
@pytest.mark.filterwarnings("ignore:This overload:UserWarning")
def test_another_form_is_the_same_call(form, usual, device):
    got, want = eval(form, names()), eval(usual, names())
    assert got.dtype is want.dtype and got.device.type == want.device.type
    torch.testing.assert_close(got, want)


@pytest.mark.filterwarnings("ignore:This overload:UserWarning")
def test_gradients_of_a_deprecated_form(device):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.add(x, 2, x * x).sum().backward()
    assert x.grad.tolist() == [5.0, 9.0]


def test_a_deprecated_form_warns_once_without_set_warn_always(monkeypatch):
    monkeypatch.setattr("torchlite._dispatch.arg_parser._has_warned", False)
    x = torch.ones(2)
    with pytest.warns(UserWarning, match=r"This overload of add is deprecated:\n\tadd\(Tensor input, Number alpha, T"):
        torch.add(x, 2, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.add(x, 2, x)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="Consider using one of the following signatures instead"):
            x.add_(2, x)
    finally:
        torch.set_warn_always(False)


SQUEEZE = (
    "squeeze() received an invalid combination of arguments - got (Tensor, int, int), but expected one of:\n"
    " * (Tensor input)\n * (Tensor input, int dim)\n * (Tensor input, tuple of ints dim)\n"
)
FLAGS = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
TO = (
    "to() received an invalid combination of arguments - got (torch.dtype, int), but expected one of:\n"
    f" * (torch.device device = None, torch.dtype dtype = None, {FLAGS})\n * (torch.dtype dtype, {FLAGS})\n"
    f" * (Tensor tensor, {FLAGS})\n"
)
WRONG = [
    ("torch.maximum(x, 2)", "maximum(): argument 'other' (position 2) must be Tensor, not int"),
    ("torch.logical_and(2, x)", "logical_and(): argument 'input' (position 1) must be Tensor, not int"),
    ("torch.vdot(x)", 'vdot() missing 1 required positional arguments: "other"'),
    ("torch.vdot()", 'vdot() missing 2 required positional argument: "input", "other"'),
    ("torch.vdot(x, x, x)", "vdot() takes 2 positional arguments but 3 were given"),
    ("torch.cumsum(x)", 'cumsum() missing 1 required positional arguments: "dim"'),
    ("torch.cumsum(x, 1.0)", "cumsum(): argument 'dim' (position 2) must be int, not float"),
    ("torch.cumsum(x, 0, dim=1)", "cumsum() got multiple values for argument 'dim'"),
    ("torch.softmax(x, 'a')", "softmax(): argument 'dim' (position 2) must be int, not str"),
    ("torch.roll(x, 'a')", "roll(): argument 'shifts' (position 2) must be tuple of ints, not str"),
    ("torch.fft.fft(x, 1.5)", "fft_fft(): argument 'n' (position 2) must be int, not float"),
    ("torch.diag(x, 1.5)", "diag(): argument 'diagonal' (position 2) must be int, not float"),
    ("torch.add(x, 'a')", "add(): argument 'other' (position 2) must be Tensor, not str"),
    ("torch.index_select(x, 0, 3)", "index_select(): argument 'index' (position 3) must be Tensor, not int"),
    ("torch.cat(x)", "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    ("torch.cat((x, None))", "expected Tensor as element 1 in argument 0, but got NoneType"),
    ("torch.multinomial(x, 'a')", "multinomial(): argument 'num_samples' (position 2) must be int, not str"),
    ("x.flip()", 'flip() missing 1 required positional arguments: "dims"'),
    (
        "torch.pow(2, 3)",
        "pow() received an invalid combination of arguments - got (int, int), but expected one of:\n"
        " * (Tensor input, Tensor exponent, *, Tensor out = None)\n"
        " * (Number self, Tensor exponent, *, Tensor out = None)\n"
        " * (Tensor input, Number exponent, *, Tensor out = None)\n",
    ),
    (
        "torch.var(x, 'a')",
        "var() received an invalid combination of arguments - got (Tensor, str), but expected one of:\n"
        " * (Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None)\n"
        " * (Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = "
        "None)\n"
        " * (Tensor input, bool unbiased = True)\n"
        "      didn't match because some of the arguments have invalid types: (Tensor, !str!)\n",
    ),
    (
        "x.add_(1, 2, 3, 4)",
        "add_() received an invalid combination of arguments - got (int, int, int, int), but expected (Tensor other, "
        "*, Number alpha = 1)",
    ),
    (
        "torch.Tensor.__radd__(2, x)",
        "descriptor '__radd__' for 'torch._C.TensorBase' objects doesn't apply to a 'int' object",
    ),
    ("torch.finfo(x)", "finfo(): argument 'type' (position 1) must be torch.dtype, not Tensor"),
    # An int is no bool.
    ("x.sum(0, 1)", "sum(): argument 'keepdim' (position 2) must be bool, not int"),
    ("torch.argmax(x, 0, 1)", "argmax(): argument 'keepdim' (position 3) must be bool, not int"),
    ("torch.linalg.svd(x, 1)", "linalg_svd(): argument 'full_matrices' (position 2) must be bool, not int"),
    ("torch.topk(x, 1, 0, 1)", "topk(): argument 'largest' (position 4) must be bool, not int"),
    (
        "x.var(0, 1)",
        "var() received an invalid combination of arguments - got (int, int), but expected one of:\n"
        " * (tuple of ints dim, bool unbiased = True, bool keepdim = False)\n"
        " * (tuple of ints dim = None, *, Number correction = None, bool keepdim = False)\n"
        " * (bool unbiased = True)\n",
    ),
    # A method has other forms than the function: no `out`, separate dimensions, and other positions.
    ("x.cumsum(0, out=y)", "cumsum() got an unexpected keyword argument 'out'"),
    ("torch.squeeze(x, 0, 1)", SQUEEZE),
    ("x.unsqueeze(None)", "unsqueeze(): argument 'dim' (position 1) must be int, not NoneType"),
    ("x.mul_('a')", "mul_(): argument 'other' (position 1) must be Tensor, not str"),
    ("x.type_as(1)", "type_as(): argument 'other' (position 1) must be Tensor, not int"),
    ("torch.is_signed(1)", "is_signed(): argument 'input' (position 1) must be Tensor, not int"),
    ("x.expand((2, 2), 1)", "expand() takes 1 positional argument but 2 were given"),
    ("torch.expand_copy(x, 2)", "expand_copy(): argument 'size' (position 2) must be tuple of ints, not int"),
    ("torch.median(x, 0, out=[y])", "expected tuple of 2 elements but got 1"),
    ("x.to(torch.float32, 1)", TO),
]


@pytest.mark.parametrize("expression,words", WRONG)
def test_wrong_calls_get_pytorchs_parser_errors(expression, words, device):
    with pytest.raises(TypeError) as caught:
        eval(expression, names())
    assert str(caught.value) == words


def test_a_dimension_in_a_tensor_stays_as_it_is(device):
    x, dim = torch.ones(2, 2), torch.tensor(1, device="cpu")
    for call in (torch.softmax, torch.log_softmax, torch.cumsum, torch.unbind):
        call(x, dim)
        assert dim.item() == 1
    x.index_select(dim, torch.tensor([0]))
    assert dim.item() == 1


# out= of dtypes that an op does not write to.
OUTPUTS = [
    ("mm", "float32", "float64", "Expected out tensor to have dtype float, but got double instead"),
    ("gather", "int64", "float32", "Expected out tensor to have dtype long int, but got float instead"),
    ("exp", "float32", "int64", "result type Float can't be cast to the desired output type Long"),
    ("abs", "float32", "float64", "Found dtype Double but expected Float"),
    ("isposinf", "bool", "float32", "isposinf does not support non-boolean outputs."),
    ("all", "bool", "int64", "all only supports bool tensor for result, got: Long"),
    ("nonzero", "int64", "float32", "nonzero: Expected out tensor to have scalar type Long but got scalar typeFloat"),
    ("float_power", "float64", "float32", "the output given to float_power has dtype Float but the operation's result "
     "requires dtype Double"),
    ("fft_fft", "complex64", "float32", "fft expects a complex output tensor, but got Float"),
    ("linalg_eigvals", "complex64", "float32", "torch.linalg.eigvals: Expected eigenvalues to be safely castable from "
     "ComplexFloat dtype, but got eigenvalues with dtype Float"),
    ("exp", "float32", "float64", None),
    ("eq", "bool", "float32", None),
]  # fmt: skip


@pytest.mark.parametrize("name,have,out,words", OUTPUTS)
def test_dtypes_of_out(name, have, out, words):
    have, out = getattr(torch, have), getattr(torch, out)
    if words is None:
        check_out_dtype(REGISTRY[name], have, out)
        return
    with pytest.raises(RuntimeError) as caught:
        check_out_dtype(REGISTRY[name], have, out)
    assert str(caught.value) == words


def test_out_of_several_results(device):
    x = torch.ones(2, 2)
    with pytest.raises(TypeError, match="expected tuple of 2 elements but got 1"):
        torch.max(x, 0, out=(torch.empty(2),))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int, but got float instead"):
        torch.max(x, 0, out=(torch.empty(2), torch.empty(2)))


def test_every_signature_is_an_ops():
    """The table has no name that torchlite lacks, and every argument's text can be read."""
    for public in lines():
        space, _, name = public.rpartition(".")
        table = NAMESPACES[space or "torch"]
        if name not in table and name.removesuffix("_") not in table and name not in foreach.NAMES:
            assert callable(operator.attrgetter(public)(torch)), public
        for form in signatures(public):
            assert all(a.name.isidentifier() and a.type for a in form.arguments), f"{public}{form}"


def test_numbers_are_taken_where_pytorch_takes_them():
    """An op takes Python numbers for an argument only where a signature of its public name has one."""
    lenient = set()
    for op in REGISTRY.values():
        forms = [form for form in signatures(public_name(op)) if not form.deprecated] if public_name(op) else []
        if not forms or forms[0].numbers:
            continue
        for place, param in enumerate(op.params):
            if param.kind != "number":
                continue
            arguments = [form.arguments[place] for form in forms if place < len(form.arguments)]
            if not any(a.type in ("Number", "float", "ints") for a in arguments):
                lenient.add(f"{op.name}({param.name})")
    # Numbers under other names: scatter's `value`, bernoulli's `p` and the method's `other`, which have separate
    # signatures; and a zero point, which is an int.
    known = {"scatter(src)", "where_method(other)", "bernoulli_(p)", "fake_quantize_per_tensor_affine(zero_point)"}
    assert lenient <= known


def public_name(op):
    return op.parsed_names[0] if op.parsed_names else ""


CASES = [None, 1, -1, 2.5, True, "a", (), [], {}, object(), torch.float32, torch.strided]


def _values(op):
    """Arguments that most ops take: tensors, and small numbers for the rest."""
    return [torch.ones(2, 2) if p.is_tensor and p.kind != "list" else [torch.ones(2, 2)] if p.kind == "list" else 1
            for p in op.params if p.default.__class__ is type]  # fmt: skip


RAW = (KeyError, AssertionError, RecursionError, UnboundLocalError, NameError)


@pytest.mark.parametrize("space", ["torch", "linalg", "fft", "special", "nn.functional"])
@pytest.mark.filterwarnings("ignore")
def test_signatures_hide_internal_parameters(space):
    """Any argument in any place gets a result or an error that PyTorch could raise: none of the code below."""
    found = []
    for name, op in sorted(NAMESPACES[space].items()):
        if op.name.startswith(("_", "random_")) or space == "nn.functional" and not signatures(public_name(op) or "-"):
            continue
        function = getattr(_module(space), name)
        usual = _values(op)
        for place in range(len(usual)):
            for value in CASES:
                args = [*usual[:place], value, *usual[place + 1 :]]
                try:
                    function(*args)
                except RAW as error:
                    found.append(f"{name}, argument {place}, {value!r}: {error!r}")
                except (AttributeError, IndexError, ValueError) as error:
                    if any(words in str(error) for words in INSIDE):
                        found.append(f"{name}, argument {place}, {value!r}: {error!r}")
                except Exception:
                    continue
    assert not found


INSIDE = ("object has no attribute", "tuple index out of range", "invalid literal", "list index", "numpy", "AxisError")


def _module(space: str):
    found = torch
    for part in space.split(".") if space != "torch" else ():
        found = getattr(found, part)
    return found


def test_new_elements_give_out_its_size_and_rows_keep_its_shape(device):
    rows = torch.empty(2, 3)
    assert torch.linspace(0, 1, 6, out=rows) is rows and rows.shape == (2, 3) and rows[1, 2] == 1.0
    assert torch.fft.rfftfreq(4, out=torch.empty(0)).tolist() == [0.0, 0.25, 0.5]
    assert torch.fft.fftfreq(4, out=torch.empty(2, 2)).shape == (2, 2)
    assert torch.ones(2, out=torch.zeros(5)).tolist() == [1.0, 1.0]  # without a warning, which would be an error
    with pytest.warns(UserWarning, match="An output with one or more elements was resized since it had shape"):
        torch.add(torch.ones(2), 1, out=torch.ones(3))


def test_in_place_float_power_requires_doubles(device):
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float but the operation's result"):
        torch.ones(2).float_power_(2)
    assert torch.full((2,), 3.0, dtype=torch.float64).float_power_(2).tolist() == [9.0, 9.0]


def test_lengths_of_ctc_targets():
    scores = torch.zeros(4, 2, 3)
    targets = torch.ones(2, 2, dtype=torch.int64)
    for lengths, words in (
        (((4, 4), (9, 2)), "Expected tensor to have size at least 9 at dimension 1, but got size 2"),
        (((-1, 4), (2, 2)), "Expected input_lengths to have value at least 0, but got value -1"),
        (((4, 4), (-2, 2)), "Expected target_lengths to have value at least 0, but got value -2"),
        ((torch.tensor([4.0, 4.0]), torch.tensor([2, 2])), "input_lengths must be integral"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.nn.functional.ctc_loss(scores, targets, *lengths)


def test_lengths_that_are_no_integers_are_not_remembered(device):
    for make in (torch.empty, torch.zeros, torch.rand):
        with pytest.raises(TypeError):
            make((7.0, 3.0, 1.0), device=device)
    x = torch.ones(21, device=device)
    for wrong in (lambda: x.reshape(7.0, 3.0, 1.0), lambda: x.expand(2.0, 21.0)):
        with pytest.raises(TypeError):
            wrong()
    assert torch.ones(7, 3, 1, device=device).sum() == 21
    assert (x.reshape(7, 3, 1) + 1).sum() == 42 and (x.expand(2, 21) * 2).sum() == 84


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("reshape", "shape"), ("expand", "size"), ("broadcast_to", "size"), ("new_empty", "size"),
        ("new_zeros", "size"), ("new_ones", "size"), ("resize_", "size"), ("sum_to_size", "size"), ("permute", "dims"),
        ("repeat", "repeats"),
    ],
)  # fmt: skip
def test_methods_without_any_size(name, size):
    """No size is none at all, and not an empty one, which an empty sequence is."""
    method = getattr(torch.ones(1), name)
    with pytest.raises(TypeError, match=rf'^{name}\(\) missing 1 required positional arguments: "{size}"$'):
        method()
    if name not in ("expand", "broadcast_to", "permute", "repeat"):
        assert method(()).shape == method(*[[]]).shape == method(**{size: ()}).shape == ()


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_new_tensors_without_any_size(name):
    function = getattr(torch, name)
    for kwargs in ({}, {"dtype": torch.int64}):
        with pytest.raises(TypeError, match=rf'^{name}\(\) missing 1 required positional arguments: "size"$'):
            function(**kwargs)
    assert function(()).shape == function([]).shape == function(size=()).shape == function(shape=()).shape == ()


def test_forms_are_listed_where_there_are_several():
    with pytest.raises(TypeError, match=r"(?s)view\(\) received an invalid combination.*torch.dtype dtype.*ints size"):
        torch.ones(1).view()
    for function in (torch.rand, torch.randn):
        with pytest.raises(TypeError, match=r"received an invalid combination of arguments - got \(\)"):
            function()
    assert torch.ones(1).view(()).shape == torch.ones(1).view(size=()).shape == ()
    assert torch.ones(1).view(dtype=torch.int32).dtype is torch.int32
