"""Creation functions: dtypes, memory layouts, out=, and the errors of wrong arguments (values are compared in the op
table).
"""

import re
import warnings

import numpy as np
import pytest

import torchlite as torch


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: torch.arange(3), torch.int64),
        (lambda: torch.arange(3.0), torch.float32),
        (lambda: torch.arange(0, 1, 0.5), torch.float32),
        (lambda: torch.arange(torch.tensor(3)), torch.int64),
        (lambda: torch.full((2,), 1), torch.int64),
        (lambda: torch.full((2,), True), torch.bool),
        (lambda: torch.full((2,), 1.0), torch.float32),
        (lambda: torch.full((2,), 1j), torch.complex64),
        (lambda: torch.zeros(2), torch.float32),
        (lambda: torch.zeros(2, dtype=int), torch.int64),
        (lambda: torch.ones(2, dtype=float), torch.float64),
        (lambda: torch.linspace(0, 1, 3), torch.float32),
        (lambda: torch.linspace(0, 1j, 3), torch.complex64),
        (lambda: torch.eye(2), torch.float32),
        (lambda: torch.tril_indices(2, 2), torch.int64),
        (lambda: torch.scalar_tensor(3), torch.float32),
        (lambda: torch.ones(2, dtype=torch.int64).new_full((2,), 1.5), torch.int64),
    ],
)
def test_inferred_dtype(make, dtype):
    assert make().dtype is dtype


def test_default_dtype_is_followed():
    torch.set_default_dtype(torch.float64)
    try:
        for made in (
            torch.zeros(2),
            torch.arange(2.0),
            torch.linspace(0, 1, 2),
            torch.full((1,), 0.5),
            torch.rand(2),
            torch.hann_window(3),
        ):
            assert made.dtype is torch.float64
        assert torch.full((1,), 1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)


def test_ranges_in_integers_are_pytorchs():
    assert torch.arange(1.5, 4.7, 1.6, dtype=torch.int64).tolist() == [1, 2, 3]
    assert torch.arange(1.5, 4.7, 1.6, dtype=torch.int32).tolist() == [1, 2]
    assert torch.arange(1.5, 4.7, 0.5, dtype=torch.int32).tolist() == [1] * 7
    assert torch.arange(250, 256, dtype=torch.uint8).tolist() == list(range(250, 256))
    assert torch.linspace(-2, 5, 4, dtype=torch.int64).tolist() == [-2, 0, 2, 5]


def test_sizes_in_every_form():
    for made in (
        torch.zeros(2, 3),
        torch.zeros((2, 3)),
        torch.zeros([2, 3]),
        torch.zeros(size=(2, 3)),
        torch.zeros(torch.Size([2, 3])),
        torch.ones(4).new_zeros(2, 3),
    ):
        assert made.shape == (2, 3)
    assert torch.zeros(()).shape == ()
    assert torch.ones(torch.tensor(2)).shape == (2,)


def test_order_in_memory():
    assert torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    turned = torch.ones(2, 3).t()
    assert torch.zeros_like(turned).stride() == (1, 3)
    assert torch.zeros_like(turned, memory_format=torch.contiguous_format).stride() == (2, 1)
    assert torch.empty_like(torch.empty(2, 3, 4)[:, :, ::2].permute(2, 0, 1)).stride() == (1, 6, 2)
    assert torch.empty_like(torch.ones(3, 1).expand(3, 4)).stride() == (4, 1)
    assert not torch.zeros_like(turned)._is_view()


def test_out_and_requires_grad():
    out = torch.empty(3, dtype=torch.int64)
    assert torch.full((3,), 7, out=out) is out
    assert out.tolist() == [7, 7, 7]
    assert torch.arange(3, out=torch.empty(3)).dtype is torch.float32
    with pytest.raises(RuntimeError, match="dtype Long does not match dtype of out parameter"):
        torch.zeros(2, out=torch.empty(2), dtype=torch.int64)
    made = torch.rand(2, requires_grad=True)
    assert made.requires_grad
    assert made.is_leaf
    assert torch.zeros_like(made).requires_grad is False


def test_on_meta():
    made = torch.zeros(2, 3, device="meta")
    assert made.is_meta
    assert torch.empty_like(made.t()).stride() == (1, 3)
    assert torch.rand_like(made).shape == (2, 3)
    with torch.device("meta"):
        assert torch.arange(4).is_meta


def test_grids_share_the_vectors_memory_and_history():
    x = torch.arange(3.0, requires_grad=True)
    a, b = torch.meshgrid(x, torch.arange(2.0), indexing="xy")
    assert a.shape == b.shape == (2, 3)
    (a * b).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


ERRORS = [
    (lambda: torch.arange(5, 0), RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    (lambda: torch.arange(1, 5, 0), RuntimeError, "step must be nonzero"),
    (lambda: torch.arange(float("nan")), RuntimeError, "unsupported range: 0 -> nan"),
    (lambda: torch.arange(2, dtype=torch.bool), NotImplementedError, "\"arange_cpu\" not implemented for 'Bool'"),
    (lambda: torch.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
    (
        lambda: torch.linspace(torch.ones(2), 1, 5),
        RuntimeError,
        "linspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s).",
    ),
    (lambda: torch.eye(-1), RuntimeError, "n must be greater or equal to 0, got -1"),
    (lambda: torch.full(2, 1), TypeError, "full(): argument 'size' (position 1) must be tuple of ints, not int"),
    (
        lambda: torch.full((2,), float("nan"), dtype=torch.int64),
        RuntimeError,
        "value cannot be converted to type int64_t without overflow",
    ),
    (
        lambda: torch.full((2,), 300, dtype=torch.uint8),
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    (lambda: torch.zeros(-1), RuntimeError, "zeros: Dimension size must be non-negative."),
    (lambda: torch.zeros(2.5), TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not float"),
    (lambda: torch.zeros((2, 2.5)), TypeError, "zeros(): argument 'size' failed to unpack the object at pos 2"),
    (lambda: torch.zeros(2, dtype="float32"), TypeError, "zeros(): argument 'dtype' must be torch.dtype, not str"),
    (
        lambda: torch.zeros(2, dtype=torch.int64, requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    (
        lambda: torch.empty_strided((2, 3), (1,)),
        RuntimeError,
        "dimensionality of sizes (2) must match dimensionality of strides (1)",
    ),
    (lambda: torch.empty_permuted((2, 3), (0, 0)), RuntimeError, "Duplicate dim not allowed"),
    (lambda: torch.tril_indices(3, -3), RuntimeError, "col must be non-negative, got-3"),
    (
        lambda: torch.meshgrid(torch.arange(2), torch.arange(3.0), indexing="ij"),
        RuntimeError,
        "meshgrid expects all tensors to have the same dtype",
    ),
    (lambda: torch.cartesian_prod(torch.ones(2, 2)), RuntimeError, "Expect a 1D vector, but got shape [2, 2]"),
    (lambda: torch.combinations(torch.arange(3), r=-1), RuntimeError, "Expect a non-negative number, but got -1"),
    (
        lambda: torch.hann_window(-1),
        RuntimeError,
        "hann_window requires non-negative window_length, got window_length=-1",
    ),
    (lambda: torch.signal.windows.hann(-5), ValueError, "general_cosine requires non-negative window length, got M=-5"),
    (
        lambda: torch.signal.windows.gaussian(5, std=-1),
        ValueError,
        "Standard deviation must be positive, got: -1 instead.",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for _, _, words in ERRORS])
def test_errors(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


WINDOWS = {  # of 5 points, from PyTorch 2.13
    "bartlett": ([0.0, 0.5, 1.0, 0.5, 0.0], {}),
    "blackman": ([0.0, 0.34, 1.0, 0.34, 0.0], {}),
    "cosine": ([0.309017, 0.809017, 1.0, 0.809017, 0.309017], {}),
    "exponential": ([0.135335, 0.367879, 1.0, 0.367879, 0.135335], {}),
    "gaussian": ([0.135335, 0.606531, 1.0, 0.606531, 0.135335], {}),
    "general_cosine": ([0.1, 0.4, 0.9, 0.4, 0.1], {"a": [0.45, 0.4, 0.05]}),
    "general_hamming": ([0.2, 0.6, 1.0, 0.6, 0.2], {"alpha": 0.6}),
    "hamming": ([0.08, 0.54, 1.0, 0.54, 0.08], {}),
    "hann": ([0.0, 0.5, 1.0, 0.5, 0.0], {}),
    "kaiser": ([5.277344e-05, 0.215672, 1.0, 0.215672, 5.277344e-05], {}),
    "nuttall": ([0.000363, 0.226982, 1.0, 0.226982, 0.000363], {}),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    want, options = WINDOWS[name]
    window = getattr(torch.signal.windows, name)
    assert window(5, **options, dtype=torch.float64).tolist() == pytest.approx(want, abs=1e-6)
    assert window(0, **options).shape == (0,)
    assert window(1, **options).shape == (1,)
    assert torch.allclose(window(6, **options, sym=False), window(7, **options)[:6], atol=1e-6)


def test_new_memory_is_filled_in_deterministic_mode(device):
    """Unwritten elements are NaN or the largest integer."""
    filling = torch.utils.deterministic
    torch.use_deterministic_algorithms(True)
    try:
        assert filling.fill_uninitialized_memory
        for made in (
            torch.empty(2, 3, device=device),
            torch.empty_like(torch.zeros(2, 3, device=device)),
            torch.empty_strided((2, 3), (1, 2), device=device),
            torch.empty_permuted((2, 3), (1, 0), device=device),
            torch.zeros(1, device=device).new_empty(2),
        ):
            assert bool(made.isnan().all())
        assert torch.empty(2, dtype=torch.int16, device=device).tolist() == [32767] * 2
        assert torch.empty(2, dtype=torch.bool, device=device).tolist() == [True] * 2
        x = torch.zeros(2, dtype=torch.int32, device=device)
        assert x.resize_(4).tolist() == [0, 0, 2**31 - 1, 2**31 - 1]
        filling.fill_uninitialized_memory = False
        assert not torch.utils.deterministic.fill_uninitialized_memory
    finally:
        filling.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False)


class _Real:
    def __float__(self):
        return 2.5


class _Whole:
    def __index__(self):
        return 3


@pytest.mark.parametrize(
    ("data", "dtype", "want"),
    [
        ([torch.ones(1), torch.ones(1, 1)], None, [1.0, 1.0]),
        ([[torch.ones(1)], [torch.ones(())]], None, [[1.0], [1.0]]),
        ([2, torch.ones(1)], None, [2.0, 1.0]),
        ([[], [1]], None, [[], []]),
        ([_Real(), 1], torch.float32, [2.5, 1.0]),
        (_Real(), torch.float64, 2.5),
        ([1, _Whole()], torch.int64, [1, 3]),
        ([_Whole()], torch.float16, [3.0]),
        ([range(2), [5, 6]], None, [[0, 1], [5, 6]]),
    ],
)
def test_tensor_from_numbers(data, dtype, want):
    assert torch.tensor(data, dtype=dtype).tolist() == want


@pytest.mark.parametrize(
    ("data", "dtype", "error", "words"),
    [
        (None, None, RuntimeError, "Could not infer dtype of NoneType"),
        ([1, None], None, RuntimeError, "Could not infer dtype of NoneType"),
        ([[1, 2], None], None, RuntimeError, "Could not infer dtype of NoneType"),
        ([1, {}], None, RuntimeError, "Could not infer dtype of dict"),
        ({1}, None, RuntimeError, "Could not infer dtype of set"),
        (_Real(), None, RuntimeError, "Could not infer dtype of _Real"),
        (torch.float32, None, RuntimeError, "Could not infer dtype of torch.dtype"),
        ([1, None], torch.float32, TypeError, "must be real number, not NoneType"),
        ([1, None], torch.int64, TypeError, "'NoneType' object cannot be interpreted as an integer"),
        ([1, None], torch.bool, TypeError, "'NoneType' object cannot be interpreted as an integer"),
        ([1, "a"], None, TypeError, "new(): invalid data type 'str'"),
        ([[1], ["a"]], None, TypeError, "new(): invalid data type 'str'"),
        (["a", 1], None, ValueError, "too many dimensions 'str'"),
        ([1, b"a"], None, TypeError, "new(): invalid data type 'bytes'"),
        ([1, "a"], torch.float32, TypeError, "must be real number, not str"),
        ([1, [2]], None, TypeError, "'list' object cannot be interpreted as an integer"),
        ([1.0, [2]], None, TypeError, "must be real number, not list"),
        ([[1], 2], None, TypeError, "not a sequence"),
        ([range(3), range(2)], None, ValueError, "expected sequence of length 3 at dim 1 (got 2)"),
        ([[[1]], [[1, 2]]], None, ValueError, "expected sequence of length 1 at dim 2 (got 2)"),
        ([torch.ones(2), torch.ones(2)], None, ValueError, "only one element tensors can be converted to Python"),
        ([1, torch.ones(2)], None, ValueError, "only one element tensors can be converted to Python scalars"),
        ([torch.ones(0)], torch.float64, ValueError, "only one element tensors can be converted to Python scalars"),
        ([torch.tensor([0, 1])], None, TypeError, "only integer tensors of a single element can be converted to an"),
        ([3, torch.tensor([0, 1])], torch.bool, TypeError, "only integer tensors of a single element can be"),
        ([torch.tensor(1.5)], torch.int64, TypeError, "only integer tensors of a single element can be converted to"),
        ([1, torch.tensor(1.5)], torch.uint8, TypeError, "only integer tensors of a single element can be converted"),
        ([torch.tensor(1j)], torch.float32, RuntimeError, "value cannot be converted to type double without overflow"),
        ([1, torch.tensor(1j)], torch.bool, TypeError, "only integer tensors of a single element can be converted"),
    ],
)
def test_why_data_is_no_tensor(data, dtype, error, words):
    with pytest.raises(error, match=re.escape(words)):
        torch.tensor(data, dtype=dtype)


def test_a_list_of_arrays_is_warned_of_once(monkeypatch):
    from torchlite._tensor import nested_sequences

    monkeypatch.setattr(nested_sequences, "_has_warned", False)
    with pytest.warns(UserWarning, match="Creating a tensor from a list of numpy.ndarrays is extremely slow"):
        torch.tensor([np.ones(2), np.ones(2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.tensor([np.ones(2), np.ones(2)])


def test_ragged_data_of_old_constructors():
    with pytest.raises(ValueError, match=re.escape("expected sequence of length 2 at dim 1 (got 1)")):
        torch.Tensor([[1, 2], [3]])
    with pytest.raises(TypeError, match=re.escape("new(): data must be a sequence (got dict)")):
        torch.Tensor({})


@pytest.mark.parametrize(
    ("arguments", "dtype", "message"),
    [
        ((0, 5, float("nan")), None, "step must be nonzero"),
        ((0, 5, float("nan")), torch.int64, "step must be nonzero"),
        ((0, 5, float("inf")), torch.int64, "value cannot be converted to type int64_t without overflow"),
        ((0, 5, 1e-320), None, "invalid size, possible overflow"),
        ((0, 1e30, 1), torch.int64, "invalid size, possible overflow"),
        ((float("nan"), 5), None, "unsupported range: nan -> 5"),
    ],
)
@pytest.mark.parametrize("function", [torch.arange, torch.range])
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_ranges_without_a_count_are_errors(function, arguments, dtype, message):
    with pytest.raises(RuntimeError, match=message):
        function(*arguments, dtype=dtype)


def test_spaced_integers_are_cast_as_pytorchs():
    assert torch.linspace(-2, 2, 5, dtype=torch.uint8).tolist() == [254, 191, 128, 65, 2]
    assert torch.linspace(-200, 100, 4, dtype=torch.uint8).tolist() == [56, 70, 85, 100]
    for function in (torch.linspace, torch.logspace):
        for ends, dtype, name in (
            ((300, 0), torch.uint8, "uint8_t"),
            ((-1.5, 2), torch.uint8, "uint8_t"),
            ((-200, 100), torch.int8, "int8_t"),
            ((float("nan"), 1), torch.int64, "int64_t"),
            ((0, float("inf")), torch.int32, "int"),
        ):
            with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
                function(*ends, 3, dtype=dtype)
        with pytest.raises(NotImplementedError, match=f"\"{function.__name__}_cpu\" not implemented for 'Bool'"):
            function(0, 1, 3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("default", "wanted"),
    [(torch.float16, torch.complex64), (torch.float32, torch.complex64), (torch.float64, torch.complex128)],
)
def test_full_of_a_complex_number_under_another_default(default, wanted, device):
    torch.set_default_dtype(default)
    try:
        assert torch.full((2,), 1 + 2j, device=device).dtype is wanted
        assert torch.full((2,), 1 + 2j, dtype=torch.complex64, device=device).dtype is torch.complex64
        assert torch.full((2,), 1.5, device=device).dtype is default
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("n", [torch.tensor(3), torch.tensor([3]), torch.tensor(3, dtype=torch.uint8)], ids=str)
def test_a_size_that_is_a_tensor_of_one_integer(n):
    assert sorted(torch.randperm(n).tolist()) == sorted(torch.randperm(n=n, dtype=torch.int32).tolist()) == [0, 1, 2]
    assert torch.eye(n).shape == torch.eye(3, n).shape == (3, 3)
    with pytest.raises(TypeError, match=r"eye\(\): argument 'n' \(position 1\) must be int"):
        torch.eye(torch.tensor(3.0))


def test_empty_leaves_what_a_given_tensor_holds(device):
    given = torch.arange(4.0, device=device)
    assert torch.empty(4, out=given) is given and given.tolist() == [0, 1, 2, 3]
    assert torch.empty(2, 2, out=given).tolist() == [[0, 1], [2, 3]]
    assert torch.empty(2, out=given).tolist() == [0, 1]
    assert torch.empty(2, out=given, device=device).tolist() == [0, 1]
    assert torch.empty(2, out=given, requires_grad=True) is given and given.requires_grad
    with pytest.raises(RuntimeError, match="'memory_format' argument is incompatible with 'out' tensor argument"):
        torch.empty(1, 1, 2, 1, out=given, memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="device type meta does not match device type of out parameter"):
        torch.empty(2, out=given, device="meta")
    with pytest.raises(RuntimeError, match="dtype Int does not match dtype of out parameter"):
        torch.empty(2, out=given, dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.bool, torch.complex64])
def test_deterministic_algorithms_fill_empty_tensors(device, dtype):
    def given(*size):
        return torch.zeros(size, dtype=dtype, device=device)

    torch.use_deterministic_algorithms(True)
    try:
        made = [torch.empty(3, out=given(3)), torch.empty(3, out=given(1)), torch.empty_like(given(3))]
        torch.utils.deterministic.fill_uninitialized_memory = False
        kept = torch.empty(3, out=given(3))
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = True
    floating = dtype.is_floating_point or dtype.is_complex
    for x in made:
        assert x.shape == (3,) and (x.isnan() if floating else x == (dtype is torch.bool or 2**15 - 1)).all()
    assert not kept.any()
