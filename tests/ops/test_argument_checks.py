"""Ops raise, warn for, or accept unusual arguments as PyTorch does."""

import re
import warnings

import pytest

import torchlite as torch

F = torch.nn.functional


def shapes(parts):
    return [tuple(part.shape) for part in parts]


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (
            lambda x: torch.hsplit(x, 0),
            RuntimeError,
            "dimension 1, but the size of the dimension 3 is not divisible .* 0!",
        ),
        (lambda x: torch.hsplit(x, -1), RuntimeError, "number of sections must be larger than 0, got -1"),
        (lambda x: torch.vsplit(x[0, 0], 2), RuntimeError, "torch.vsplit requires a tensor with at least 2 dimension"),
        (lambda x: torch.dsplit(x[0], 2), RuntimeError, "torch.dsplit requires a tensor with at least 3 dimension"),
        (lambda x: torch.hsplit(x, torch.tensor([1])), TypeError, "hsplit\\(\\) received an invalid combination"),
        (lambda x: torch.tensor_split(x, 1.5), TypeError, "tensor_split\\(\\) received an invalid combination"),
        (lambda x: torch.tensor_split(x, [1.5]), TypeError, "tensor_split\\(\\) received an invalid combination"),
        (lambda x: torch.tensor_split(x, torch.tensor(1.5)), RuntimeError, "to have dtype of long, but got Float"),
        (lambda x: torch.tensor_split(x, torch.tensor([1]).int()), RuntimeError, "to have dtype of long, but got Int"),
        (lambda x: torch.tensor_split(x, torch.ones(2, 2).long()), RuntimeError, "but got a tensor with 2 dims"),
    ],
)
def test_cuts_that_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call(torch.zeros(2, 3, 4))


def test_cuts_by_tensors_and_names(device):
    x = torch.zeros(2, 3, 4, device=device)
    assert shapes(torch.tensor_split(x, torch.tensor(2))) == [(1, 3, 4)] * 2
    assert shapes(torch.tensor_split(x, sections=2)) == [(1, 3, 4)] * 2
    assert shapes(torch.tensor_split(x, indices=[1], dim=1)) == [(2, 1, 4), (2, 2, 4)]
    assert shapes(torch.tensor_split(x, tensor_indices_or_sections=torch.tensor([1]), dim=2)) == [(2, 3, 1), (2, 3, 3)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_adaptive_pools_of_nothing(device, n):
    average, largest = (getattr(F, f"adaptive_{kind}_pool{n}d") for kind in ("avg", "max"))
    nothing = torch.ones((2, 3, 0, *(2,) * (n - 1)), device=device, requires_grad=True)
    mean = average(nothing, 1)
    assert mean.shape == (2, 3, *(1,) * n) and mean.isnan().all()
    mean.sum().backward()
    assert nothing.grad.shape == nothing.shape
    for pool in (average, largest):
        with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch dimensions"):
            pool(nothing, 2)
    no_channel = torch.ones((2, 0, *(3,) * n), device=device)
    refused = [largest] if n < 3 else [average, largest]
    for pool in refused:
        with pytest.raises(RuntimeError, match="with dimension 1 being empty"):
            pool(no_channel, 2)
    if n < 3:
        assert average(no_channel, 2).shape == (2, 0, *(2,) * n)
    assert average(torch.ones((0, 3, *(3,) * n), device=device), 2).shape == (0, 3, *(2,) * n)


def test_ctc_loss_rejects_unknown_reductions():
    log_probs, lengths = torch.zeros(5, 1, 3).log_softmax(-1), torch.tensor([5])
    for call in (F.ctc_loss, torch.nn.CTCLoss(reduction="x")):
        with pytest.raises(ValueError, match="x is not a valid value for reduction"):
            call(
                log_probs, torch.tensor([[1, 2]]), lengths, torch.tensor([2]), *([0, "x"] if call is F.ctc_loss else [])
            )
    with pytest.raises(TypeError, match="ctc_loss\\(\\) received an invalid combination of arguments"):
        torch.ctc_loss(log_probs, torch.tensor([[1, 2]]), lengths, torch.tensor([2]), 0, "x")


@pytest.mark.parametrize(
    "dtype, bounds, words",
    [
        (
            "float32",
            (0, 2**30),
            "to - 1 is out of bounds \\[-\\(2\\^24\\), 2\\^24\\]. Due to precision limitations float",
        ),
        ("float32", (2**24 + 1, 2**25), "from is out of bounds \\[-\\(2\\^24\\)"),
        ("float64", (0, 2**53 + 3), "to - 1 is out of bounds \\[-\\(2\\^53\\), 2\\^53\\]. .* double can"),
        ("float16", (2**12, 2**13), "from is out of bounds \\[-\\(2\\^11\\), 2\\^11\\]. .* c10::Half can"),
        ("bfloat16", (-300, 3), "from is out of bounds \\[-\\(2\\^8\\), 2\\^8\\]. .* c10::BFloat16 can"),
        ("float32", (0, 2**24), None),
        ("bfloat16", (0, 256), None),
    ],
)
def test_random_warns_about_bounds_beyond_the_dtypes_precision(dtype, bounds, words):
    x = torch.zeros(2, dtype=getattr(torch, dtype))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x.random_(*bounds)
    assert bool(seen) == bool(words)
    if words:
        assert re.search(words, str(seen[0].message)) and seen[0].category is UserWarning


@pytest.mark.parametrize(
    "dtype, bounds, kind, words",
    [
        ("float16", (0, 2**30), RuntimeError, "to - 1 is out of bounds for c10::Half"),
        ("float16", (2**24 + 1, 2**25), RuntimeError, "from is out of bounds for c10::Half"),
        ("int16", (0, 2**30), RuntimeError, "to - 1 is out of bounds for short int"),
        ("int8", (-(2**63), None), RuntimeError, "handles only int64, double, float and bfloat16"),
        ("float16", (-(2**63), None), NotImplementedError, "not implemented for 'Half'"),
        ("bool", (-(2**63), None), NotImplementedError, "not implemented for 'Bool'"),
    ],
)
def test_random_refuses(dtype, bounds, kind, words):
    with pytest.raises(kind, match=words):
        torch.zeros(2, dtype=getattr(torch, dtype)).random_(*bounds)


def test_permutations_are_exact():
    for n, dtype, words in ((2**24 + 2, "float32", "2\\^24\\+1 for Float"), (2050, "float16", "2049 for Half")):
        with pytest.raises(RuntimeError, match=f"n cannot be greater than {words} type."):
            torch.randperm(n, dtype=getattr(torch, dtype))
    for dtype in (torch.bool, torch.complex64):
        with pytest.raises(NotImplementedError, match='"randperm" not implemented for'):
            torch.randperm(3, dtype=dtype)


def test_kthvalue_of_nothing(device):
    with pytest.raises(IndexError, match="kthvalue\\(\\): Expected reduction dim 1 to have non-zero size."):
        torch.kthvalue(torch.ones(3, 0, device=device), 1)
    assert torch.kthvalue(torch.ones(0, 3, device=device), 1, 1).values.shape == (0,)


def test_trapezoid_errors_name_the_function():
    with pytest.raises(RuntimeError, match="^cumulative_trapezoid: There must be one `x` value"):
        torch.cumulative_trapezoid(torch.ones(3, 4), torch.ones(3))
    with pytest.raises(RuntimeError, match="^trapezoid: There must be one `x` value"):
        torch.trapezoid(torch.ones(3, 4), torch.ones(3))


def test_masks_of_masked_softmax(device):
    x, keys = torch.zeros(2, 1, 3, 3, device=device), torch.tensor([[True, False, False], [True] * 3], device=device)
    assert torch._masked_softmax(x, keys, 3, 1)[0, 0].tolist() == [[0, 0.5, 0.5]] * 3
    assert torch._masked_softmax(x, keys, 3, 1)[1].isnan().all()
    for mask, mask_type, words in (
        (keys, 0, "\\(L, L\\)"),
        (keys[:1], 1, "\\(B, L\\)"),
        (keys, 2, "match input shape"),
    ):
        with pytest.raises(RuntimeError, match=f"For mask_type == {mask_type} mask shape should .*{words}"):
            torch._masked_softmax(x, mask, 3, mask_type)
    with pytest.raises(RuntimeError, match="Mask should be a boolean tensor"):
        torch._masked_softmax(x, x, 3)
    y = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    torch._masked_softmax(y, keys[0])[1].backward()
    assert y.grad[0] == 0 and y.grad[1] != 0


def test_statistics_move_the_running_ones(device):
    x = torch.arange(24.0, device=device).reshape(2, 3, 4)
    mean, var = torch.zeros(3, device=device), torch.ones(3, device=device)
    found = torch.batch_norm_update_stats(x, mean, var, 0.1)
    assert found[0].tolist() == [7.5, 11.5, 15.5] and found[1].tolist() == [37.25] * 3
    assert torch.allclose(mean, 0.1 * found[0]) and torch.allclose(var, 0.9 + 0.1 * found[1] * 8 / 7)
    assert torch.batch_norm_update_stats(x.half(), mean, var, 0.1)[0].dtype is torch.float32
    with pytest.raises(RuntimeError, match="at least one element, but got input_sizes = \\[0, 3\\]"):
        torch.batch_norm_update_stats(x.new_ones(0, 3), mean, var, 0.1)


def test_sums_and_relus_in_place_and_into_out(device):
    x = torch.tensor([1.0, 2.0], device=device)
    assert torch._add_relu_(x, -3.0) is x and x.tolist() == [0, 0]
    out = torch.ones(1, 2, device=device)
    torch._compute_linear_combination(torch.ones(3, 2, device=device), torch.ones(1, 3, device=device), out=out)
    assert out.tolist() == [[4, 4]]


def test_maps_refuse():
    x = torch.arange(3.0)
    assert x.clone().map2_(x, torch.tensor(2.0), lambda a, b, c: a + b * c).tolist() == [0, 3, 6]
    first = lambda *values: values[0]
    for call, kind, words in (
        (
            lambda: x.map_(x.int(), first),
            TypeError,
            "map_: expected torch.FloatTensor for 'other' \\(got torch.IntTensor",
        ),
        (lambda: x.map2_(x, x.int(), first), TypeError, "map2_: expected torch.FloatTensor for argument 'y'"),
        (lambda: x.map_(x.clone().requires_grad_(), first), RuntimeError, "Use var.detach\\(\\).map_\\(\\) instead"),
    ):
        with pytest.raises(kind, match=words):
            call()


def test_removed_methods_name_their_replacement():
    x = torch.ones(2, 2)
    for name, args in (("eig", ()), ("symeig", ()), ("lstsq", (x,)), ("solve", (x,))):
        with pytest.raises(
            RuntimeError, match="This function was deprecated since version 1.9 and is now removed"
        ) as e:
            getattr(x, name)(*args)
        assert "should be replaced with:" in str(e.value)


def test_assertions():
    torch._check(True)
    torch._check_tensor_all(torch.tensor([True, True]))
    for check, kind in (
        (torch._check, RuntimeError), (torch._check_index, IndexError), (torch._check_value, ValueError),
        (torch._check_type, TypeError), (torch._check_not_implemented, NotImplementedError),
    ):  # fmt: skip
        with pytest.raises(kind, match="said so"):
            check(False, lambda: "said so")
    with pytest.raises(RuntimeError, match="Expected cond to be True, but got False"):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        torch._check(1)
    with pytest.raises(TypeError, match="message must be a callable"):
        torch._check(False, "no")
    with pytest.raises(TypeError, match="cond tensor must have dtype torch.bool"):
        torch._check_tensor_all(torch.ones(1))


def test_the_switch_of_onednn():
    assert torch._C._get_mkldnn_enabled() is True
    torch._C._set_mkldnn_enabled(False)
    assert torch.backends.mkldnn.enabled is False
    torch._C._set_mkldnn_enabled(True)
    with pytest.raises(RuntimeError, match="set_enabled_mkldnn expects a bool, but got int"):
        torch._C._set_mkldnn_enabled(1)


@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "cumsum", "cumprod"])
def test_out_must_have_the_given_dtype(device, name):
    op, x = getattr(torch, name), torch.ones(3, dtype=torch.int32, device=device)
    for dtype in (torch.uint8, torch.int32, torch.float32):
        assert op(x, 0, out=torch.empty(0, dtype=dtype, device=device)).dtype is dtype
    for asked, out, words in (
        ("int32", "uint8", "int, but got unsigned char"),
        ("int64", "float32", "long int, but got float"),
    ):
        with pytest.raises(RuntimeError, match=f"Expected out tensor to have dtype {words} instead"):
            op(x, 0, dtype=getattr(torch, asked), out=torch.empty(0, dtype=getattr(torch, out), device=device))


def test_draws_about_infinity_are_infinite():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for size in (2, 20):
            for draw in ("cauchy_", "normal_", "log_normal_"):
                assert getattr(torch.empty(size, dtype=dtype), draw)(float("inf"), 0.5).eq(float("inf")).all(), draw
            assert torch.empty(size, dtype=dtype).cauchy_(-float("inf"), 0.5).eq(-float("inf")).all()


@pytest.mark.parametrize("name", ["complex", "polar"])
def test_parts_of_complex_numbers_are_of_floating_point(device, name):
    for dtype, word in (("bool", "Bool"), ("int64", "Long"), ("complex64", "ComplexFloat"), ("bfloat16", "BFloat16")):
        x = torch.ones(2, device=device).to(getattr(torch, dtype))
        with pytest.raises(RuntimeError, match=f"Half, Float or Double tensors but got {word} and {word}"):
            getattr(torch, name)(x, x)
    x = torch.ones(2, device=device)
    assert getattr(torch, name)(x, x).dtype is torch.complex64
    assert getattr(torch, name)(x.half(), x.half()).dtype is torch.complex32


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (
            lambda: torch.histogram(torch.tensor([1, 2]), 3),
            NotImplementedError,
            "\"histogramdd\" not implemented for 'Long'",
        ),
        (lambda: torch.histogram(torch.ones(2).half(), 3), NotImplementedError, "not implemented for 'Half'"),
        (lambda: torch.histogram(torch.tensor([True]), 3), NotImplementedError, "not implemented for 'Bool'"),
        (lambda: torch.histogramdd(torch.ones(3, 2).long(), [2, 2]), NotImplementedError, "not implemented for 'Long'"),
        (
            lambda: torch.histogram(torch.tensor([1, 2]), torch.tensor([0, 1])),
            NotImplementedError,
            "\"histogram_cpu\" not implemented for 'Long'",
        ),
        (
            lambda: torch.histogram(torch.ones(2), torch.tensor([0, 1])),
            RuntimeError,
            "should have the same dtype, but got input with dtype float and bins for dimension 0 with dtype long int",
        ),
        (
            lambda: torch.histogramdd(torch.ones(2, 2).double(), [torch.ones(2).double(), torch.ones(2)]),
            RuntimeError,
            "but got input with dtype double and bins for dimension 1 with dtype float",
        ),
        (
            lambda: torch.histogram(torch.ones(2), 3, weight=torch.tensor([1, 2])),
            RuntimeError,
            "but got input(float), and weight(long int)",
        ),
        (
            lambda: torch.meshgrid(torch.ones(2), torch.ones(2, device="meta"), indexing="ij"),
            RuntimeError,
            "meshgrid expects all tensors to have the same device",
        ),
        (
            lambda: torch.meshgrid(torch.ones(2), torch.ones(2, device="meta", dtype=torch.int8), indexing="ij"),
            RuntimeError,
            "meshgrid expects all tensors to have the same dtype",
        ),
        (lambda: torch.chain_matmul(), RuntimeError, "chain_matmul(): Expected one or more matrices"),
        (lambda: torch.chain_matmul(torch.ones(3)), RuntimeError, "Tensor dimension is 1, expected 2 instead."),
        (
            lambda: torch.chain_matmul(torch.ones(3, 3), torch.ones(3)),
            RuntimeError,
            "Tensor dimension is 1, expected 2 instead.",
        ),
        (
            lambda: torch.chain_matmul(torch.ones(2, 3, 3), torch.ones(3, 3)),
            RuntimeError,
            "Tensor dimension is 3, expected 2 instead.",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dtypes_devices_and_dimensions_that_are_refused(call, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        call()


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce_refuses_dtypes_without_a_kernel(dtype, reduce, device):
    x, index = torch.ones(2, dtype=dtype, device=device), torch.tensor([0, 0], device=device)
    with pytest.raises(NotImplementedError, match='"index_func_" not implemented for'):
        x.index_reduce(0, index, x, reduce)


NUMBERS = {
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "addmm": lambda x, v: torch.addmm(x, x, x, alpha=v),
    "add": lambda x, v: torch.add(x, x, alpha=v),
    "isclose": lambda x, v: torch.isclose(x, x, v),
    "threshold": lambda x, v: torch.threshold(x, 0.5, v),
    "layer_norm": lambda x, v: torch.layer_norm(x, (3,), eps=v),
    "batch_norm": lambda x, v: torch.batch_norm(x, None, None, None, None, True, 0.1, v, False),
    "renorm": lambda x, v: torch.renorm(x, 2, 0, v),
    "vector_norm": lambda x, v: torch.linalg.vector_norm(x, v),
    "cosine_similarity": lambda x, v: torch.cosine_similarity(x, x, eps=v),
    "trapezoid": lambda x, v: torch.trapezoid(x, dx=v),
    "full": lambda x, v: torch.full((2,), v),
    "full_like": lambda x, v: torch.full_like(x, v),
    "arange": lambda x, v: torch.arange(0.0, 3.0, v),
    "nan_to_num": lambda x, v: torch.nan_to_num(x, nan=v),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_may_be_tensors_without_a_gradient(name, device):
    call, x = NUMBERS[name], torch.tensor([[0.5, 1.0, -2.0]] * 3, device=device)
    want, got = call(x, 0.25), call(x, torch.tensor(0.25))
    assert (want.cpu() == got.cpu()).all()
    with pytest.raises(TypeError, match="Tensor"):
        call(x, torch.tensor(0.25, requires_grad=True))
    with pytest.raises(TypeError, match="Parameter"):
        call(x, torch.nn.Parameter(torch.tensor(0.25)))


def test_wording_for_a_number_with_a_gradient():
    x, v = torch.ones(2), torch.tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError, match="^addcmul\\(\\): argument 'value' must be Number, not Tensor$"):
        x.addcmul(x, x, value=v)
    with pytest.raises(TypeError, match="^add\\(\\): argument 'alpha' must be Number, not Tensor$"):
        torch.add(x, x, alpha=v)


@pytest.mark.parametrize("call", [torch.trapezoid, torch.cumulative_trapezoid])
def test_spacing_of_the_trapezoidal_rule(call, device):
    y = torch.ones(3, 3, device=device)
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        call(y, y, dx=3)
    for dx in (1j, True):
        with pytest.raises(RuntimeError, match="Currently, we only support dx as a real number"):
            call(y, dx=dx)


def test_masked_softmax_has_mask_types_for_four_dimensions(device):
    x = torch.zeros(1, 1, 4, device=device)
    mask = torch.tensor([[[True, False, False, True]]], device=device)
    for mask_type in (0, 1, 2):
        assert torch._masked_softmax(x, mask, 2, mask_type)[0, 0].tolist() == [0, 0.5, 0.5, 0]
    with pytest.raises(RuntimeError, match="For mask_type == 2 mask shape should match input shape"):
        torch._masked_softmax(x, mask[0], 2, 1)
    with pytest.raises(RuntimeError, match="mask shape should be \\(B, L\\)"):
        torch._masked_softmax(torch.zeros(1, 1, 2, 4, device=device), mask[0], 3, 1)


def test_unique_slices_with_nan_are_distinct(device):
    nan = float("nan")
    x = torch.tensor([nan, 0.0, 0.0, nan, 1.0], device=device)
    values, inverse, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    assert values[:2].tolist() == [0, 1] and values[2:].isnan().tolist() == [True, True]
    assert inverse.tolist() == [2, 0, 0, 3, 1] and counts.tolist() == [2, 1, 1, 1]
    rows = torch.tensor([[1.0, nan], [1.0, 2.0], [1.0, nan]], device=device)
    values, inverse = torch.unique(rows, dim=0, return_inverse=True)
    assert values[:, 0].tolist() == [1, 1, 1] and values[0, 1] == 2
    assert inverse.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.cross_entropy(x[0, :2, :3], torch.tensor([0, 1], device=x.device), ignore_index=0.5),
        lambda x: F.nll_loss(x[0, :2, :3], torch.tensor([0, 1], device=x.device), ignore_index=0.5),
        lambda x: F.fold(x.reshape(1, 4, 9), (4.5, 4), 2),
        lambda x: F.unfold(x[None], (2.5, 2)),
        lambda x: F.conv2d(x[None], x[:1, :2, :2][None], padding=(0.5, 0)),
        lambda x: F.conv_transpose2d(x[None], x[:1, :2, :2][None], stride=(1.5, 1)),
        lambda x: F.max_pool2d(x, 2, padding=(0.5, 0)),
        lambda x: F.affine_grid(torch.ones(1, 2, 3, device=x.device), (1, 1, 2.5, 2)),
        lambda x: torch.fft.rfftfreq(4.5, device=x.device),
        lambda x: x.triu(1.5),
        lambda x: torch.randint(0.5, 3, (2,), device=x.device),
        lambda x: torch.randint_like(x, 2.5),
        lambda x: x.select(0, 0.0),
        lambda x: x.narrow(1, 1.0, 1),
    ],
)
def test_a_float_is_no_integer(call, device):
    with pytest.raises(TypeError, match="must be int|must be tuple of ints|invalid combination|as an integer"):
        call(torch.ones(1, 6, 6, device=device))


FLOATS_FOR_INTEGERS = {
    "conv2d": lambda: F.conv2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), groups=1.0),
    "conv_transpose1d": lambda: F.conv_transpose1d(torch.ones(1, 1, 2), torch.ones(1, 1, 2), groups=1.0),
    "layer_norm": lambda: F.layer_norm(torch.ones(2, 2), (2, 2.0)),
    "rms_norm": lambda: F.rms_norm(torch.ones(2, 2), [2, 2.0]),
    "istft": lambda: torch.istft(torch.ones(3, 5) + 0j, 4, win_length=4.0),
    "unflatten": lambda: torch.ones(4).unflatten(0, (2, 2.0)),
    "fftn": lambda: torch.fft.fftn(torch.ones(2, 2), s=(2, 2.0)),
}


@pytest.mark.parametrize("name", FLOATS_FOR_INTEGERS)
def test_floats_are_no_integers(name):
    with pytest.raises(TypeError, match="float"):
        FLOATS_FOR_INTEGERS[name]()


@pytest.mark.parametrize(
    ("dtype", "int32"), [("float32", False), ("int32", False), ("int64", True)], ids=["float32", "int32", "int64"]
)
def test_searches_write_indices_of_their_dtype(dtype, int32):
    out, bounds = torch.empty(0, dtype=getattr(torch, dtype)), torch.tensor([1.0, 2.0])
    for search in (lambda: torch.bucketize(bounds, bounds, out_int32=int32, out=out),
                   lambda: torch.searchsorted(bounds, bounds, out_int32=int32, out=out)):  # fmt: skip
        with pytest.raises(RuntimeError, match="output tensor's dtype is wrong"):
            search()


def test_frequencies_of_degenerate_distances():
    assert torch.fft.rfftfreq(4, d=0.0).tolist()[1:] == [float("inf")] * 2
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        torch.fft.fftfreq(-1)


def test_lobpcg_of_no_matrices():
    values, vectors = torch.lobpcg(torch.zeros(0, 3, 3), 1)
    assert values.shape == (0, 1) and vectors.shape == (0, 3, 1)


OTHER_CALLS_WITH_FLOATS = """
    F.embedding(torch.tensor([1]), x[0], padding_idx=1.0)
    F.ctc_loss(x, torch.ones(3, 1, dtype=torch.int64), torch.tensor([2] * 3), torch.tensor([1] * 3), blank=0.0)
    torch.broadcast_to(x, (2.0, 3, 4)) ; x.expand(2.0, 3, 4) ; x.expand((2, 3, 4.0)) ; torch.expand_copy(x, (2, 3.0, 4))
    torch.ones(1).expand(2.0) ; torch.tensor(1.0).expand(2.0) ; x.sum_to_size(2, 3.0, 4)
    torch.fft.fft(x, 4.0) ; torch.fft.rfft(x, 4.0) ; torch.fft.irfft(x, 4.0) ; torch.fft.ihfft(x, 4.0)
    torch.linalg.vander(x[0, 0], N=2.0) ; torch.polygamma(1.0, x) ; torch.special.polygamma(1.0, x) ; x.polygamma(1.0)
    x.round(decimals=1.0) ; torch.round(x, decimals=0.0) ; x.clone().round_(decimals=1.0)
    torch.affine_grid_generator(x[:, :2, :3], (2.0, 1, 2, 2), False)
    torch.utils.data.random_split([1, 2], [1.0, 1]) ; torch.quantize_per_tensor(x, 1.0, 0.0, torch.quint8)
    torch.sparse_coo_tensor([[0]], [1.0], (2.0,)) ; torch.sparse_csr_tensor([0, 1], [0], [1.0], (1.0, 1))
"""


@pytest.mark.parametrize(
    "call", [c.strip() for line in OTHER_CALLS_WITH_FLOATS.split("\n") for c in line.split(";") if c.strip()]
)
def test_a_float_is_no_integer_in_other_calls(call):
    x = torch.arange(24.0).reshape(2, 3, 4)
    with pytest.raises(TypeError):
        eval(call, {"torch": torch, "F": torch.nn.functional, "x": x})


@pytest.mark.parametrize("name", ["set_num_threads", "set_num_interop_threads"])
def test_numbers_of_threads_are_positive_integers(name):
    for wrong, words in ((1.0, "an int, but got float"), (True, "an int, but got bool"), (0, "a positive integer")):
        with pytest.raises(RuntimeError, match=f"{name} expects {words}"):
            getattr(torch, name)(wrong)


def test_unsigned_products_take_negative_factors(device):
    """They are counted modulo 256."""
    m = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8, device=device)
    assert torch.addmm(m, m, m, alpha=-1).tolist() == [[250, 248], [244, 238]]
    assert torch.addmm(m, m, m, beta=-2).tolist() == [[5, 6], [9, 14]]
    assert torch.addmv(m[0], m, m[0], alpha=-1).tolist() == [252, 247]
    assert torch.addbmm(m, m[None], m[None], alpha=-1).tolist() == [[250, 248], [244, 238]]
    assert torch.baddbmm(m[None], m[None], m[None], alpha=-2).tolist() == [[[243, 238], [229, 216]]]
    for factor in (256, -256) if device == "cpu" else ():  # devices count factors modulo 256
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            torch.addmm(m, m, m, alpha=factor)
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            torch.addr(m, m[0], m[0], alpha=factor)


def _int32(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


SIZES_THAT_DO_NOT_FIT = {
    "offsets beyond the indices": (
        lambda: torch.nn.functional.embedding_bag(torch.tensor([1, 2, 3]), torch.ones(9, 2), torch.tensor([0, 50, 2])),
        "offsets have to ascend",
    ),
    "pivots of ldl_solve": (
        lambda: torch.linalg.ldl_solve(torch.eye(3), _int32(1, 2), torch.eye(3)),
        r"Expected LD.shape\[:-1\] and pivots.shape to be the same",
    ),
    "floats as pivots": (
        lambda: torch.linalg.ldl_solve(torch.eye(3), torch.tensor([1.0, 2.0, 3.0]), torch.eye(3)),
        "Expected pivots to be integers. Got Float",
    ),
    "right-hand side of ldl_solve": (
        lambda: torch.linalg.ldl_solve(torch.eye(3), _int32(1, 2, 3), torch.ones(2, 2)),
        "each A matrix is 3 by 3 but each b matrix is 2 by 2",
    ),
    "pivots of lu_solve": (
        lambda: torch.linalg.lu_solve(torch.eye(3), _int32(1, 2), torch.eye(3)),
        "Number of pivots per batch should be same",
    ),
    "pivots of lu_unpack": (lambda: torch.lu_unpack(torch.eye(3), _int32(1, 2)), r"LU_pivots to have shape \[3\]"),
    "weights of points": (
        lambda: torch.histogramdd(torch.ones(4, 2), [2, 2], weight=torch.ones(2, 2)),
        r"input with shape \[4, 2\] and weight with shape \[2, 2\]",
    ),
    "range of a histogram": (
        lambda: torch.histogramdd(torch.ones(4, 2), [2, 2], range=[0.0, 1.0]),
        "range should have 4 elements, but got 2",
    ),
    "weight of a cell": (
        lambda: torch.gru_cell(torch.ones(2, 3), torch.ones(2, 4), torch.ones(11, 3), torch.ones(12, 4)),
        r"weight_ih first dim must be 3 \* hidden_size = 12, but got 11",
    ),
    "no pixels to repeat": (
        lambda: torch.nn.functional.pad(torch.ones(1, 1, 0, 2), (1, 1, 1, 1), mode="replicate"),
        "possibly 0 batch size and other non-zero dimensions",
    ),
    "repeats of two dimensions": (
        lambda: torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([[1, 2]])),
        "repeats must be 0-dim or 1-dim tensor",
    ),
}


@pytest.mark.parametrize("call, words", SIZES_THAT_DO_NOT_FIT.values(), ids=SIZES_THAT_DO_NOT_FIT)
def test_sizes_that_do_not_fit_are_refused(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


@pytest.mark.parametrize("call", [lambda x: x.sort(stable=True), lambda x: torch.argsort(x, stable=True)])
def test_a_kernels_error_is_not_that_of_another_order_of_arguments(call):
    """Parameters that are keywords in PyTorch have positions in the record."""
    with pytest.raises(RuntimeError, match="Sort does not support complex dtypes on CPU"):
        call(torch.ones(3) + 1j)
