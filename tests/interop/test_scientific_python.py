"""Tensors in calls of SciPy, Matplotlib and scikit-learn, and their objects in calls of torch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special
import scipy.stats
from matplotlib.figure import Figure
from sklearn.linear_model import LinearRegression

import torchlite as torch

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 5.0, 0.0]])


def _vector(*values, requires_grad=True):
    return torch.tensor(values, dtype=torch.float64, requires_grad=requires_grad)


# Each with the values between which it is defined.
SPECIAL = {
    "entr": (0.1, 3.0), "erf": (-2.0, 2.0), "erfc": (-2.0, 2.0), "erfcx": (-1.0, 2.0), "erfinv": (-0.9, 0.9),
    "exp10": (-1.0, 2.0), "exp2": (-1.0, 2.0), "expit": (-9.0, 9.0), "expm1": (-1.0, 2.0), "gammaln": (0.2, 9.0),
    "i0": (-2.0, 2.0), "i0e": (-2.0, 2.0), "i1": (-2.0, 2.0), "i1e": (-2.0, 2.0), "log1p": (-0.5, 2.0),
    "log_expit": (-40.0, 40.0), "log_ndtr": (-9.0, 2.0), "logit": (0.1, 0.9), "ndtr": (-2.0, 2.0), "ndtri": (0.1, 0.9),
    "psi": (0.2, 9.0), "digamma": (0.2, 9.0), "sinc": (-2.0, 2.0), "cbrt": (0.1, 8.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_have_scipys_values_and_gradients(name):
    function, points = getattr(scipy.special, name), np.linspace(*SPECIAL[name], 7)
    x = torch.tensor(points, requires_grad=True)
    have = function(x)
    assert have.dtype is torch.float64 and have.requires_grad
    np.testing.assert_allclose(have.detach().numpy(), function(points), rtol=1e-9, atol=1e-15)
    assert torch.autograd.gradcheck(function, (x,))


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "xlogy", "xlog1py"])
def test_special_functions_of_two_arguments(name):
    function, a, x = getattr(scipy.special, name), np.array([0.5, 1.5, 4.0]), _vector(0.25, 1.0, 3.0)
    np.testing.assert_allclose(function(a, x).detach().numpy(), function(a, x.detach().numpy()), rtol=1e-9)
    assert torch.autograd.gradcheck(lambda x: function(2.0, x), (x,))
    assert function(torch.tensor([2.0]), torch.tensor([1.5])).dtype is torch.float32


def test_zeta_runs_as_an_op():
    q = _vector(1.0, 2.5)
    have = scipy.special.zeta(torch.tensor([2.0, 3.0], dtype=torch.float64), q)
    assert have.requires_grad
    np.testing.assert_allclose(have.detach().numpy(), scipy.special.zeta([2.0, 3.0], q.detach().numpy()), rtol=1e-9)


@pytest.mark.parametrize("values", [[1, 2], [1.0 + 1.0j, 0.5j]])
def test_special_functions_of_integers_and_complex_numbers(values):
    for function in (scipy.special.expit, scipy.special.psi, scipy.special.log_ndtr, scipy.special.erfcx):
        if not np.iscomplexobj(values) or "D->D" in function.types:
            have = function(torch.tensor(values))
            np.testing.assert_allclose(np.asarray(have), function(np.array(values)), rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: scipy.special.jv(0, x),
        scipy.special.gamma,
        lambda x: scipy.special.eval_legendre(2, x),
        lambda x: scipy.special.betaln(x, 1.0),
    ],
)
def test_ufuncs_without_an_op_refuse_gradients_and_say_so(call):
    x = _vector(0.5, 1.5)
    np.testing.assert_allclose(np.asarray(call(x.detach())), call(x.detach().numpy()))
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\).*the ufunc '\w+' is not differentiable"):
        call(x)
    with torch.no_grad():
        assert call(x).shape == (2,)


def test_special_functions_on_devices(device):
    x = torch.tensor([0.5, 1.5, 2.5])
    for function in (scipy.special.expit, scipy.special.gammaln, scipy.special.log_expit):
        have = function(x.to(device))
        assert have.device.type == torch.device(device).type
        np.testing.assert_allclose(have.cpu().numpy(), function(x.numpy()), rtol=1e-5)


LAYOUTS = {"csr": torch.sparse_csr, "csc": torch.sparse_csc, "bsr": torch.sparse_bsr, "coo": torch.sparse_coo}


@pytest.mark.parametrize("form", [*LAYOUTS, "dia", "lil", "dok"])
@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_become_sparse_tensors(form, make, kind):
    have = make(kind(DENSE).asformat(form))
    assert have.layout is LAYOUTS.get(form, torch.sparse_coo) and have.dtype is torch.float64
    np.testing.assert_array_equal(have.to_dense().numpy(), DENSE)


def test_memory_of_sparse_matrices():
    matrix = sp.csr_array(DENSE)
    torch.as_tensor(matrix).values()[0] = 7.0
    assert matrix[0, 0] == 7.0
    torch.tensor(matrix).values()[0] = 9.0
    assert matrix[0, 0] == 7.0
    made = torch.tensor(matrix, dtype=torch.float32, requires_grad=True)
    assert made.dtype is torch.float32 and made.requires_grad


def test_repeated_and_unsorted_indices_are_put_in_order():
    matrix = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 3))
    have = torch.as_tensor(matrix)
    assert have.col_indices().tolist() == [0, 2] and have.values().tolist() == [2.0, 4.0]
    assert matrix.nnz == 3


def test_products_with_sparse_matrices():
    x = torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    for matrix in (sp.csr_matrix(DENSE), sp.csc_array(DENSE), sp.coo_array(DENSE)):
        have = x @ matrix
        np.testing.assert_allclose(have.detach().numpy(), x.detach().numpy() @ DENSE)
        assert torch.autograd.gradcheck(lambda x, matrix=matrix: x @ matrix, (x,))
        np.testing.assert_allclose((x[0] @ matrix).detach().numpy(), x[0].detach().numpy() @ DENSE)
        assert isinstance(matrix @ x.detach().T, np.ndarray)
        with pytest.raises(RuntimeError, match="requires grad"):
            matrix @ x.T
        product = torch.as_tensor(DENSE).to_sparse_csr() @ matrix
        np.testing.assert_allclose(product.to_dense().numpy(), DENSE @ DENSE)
    with pytest.raises(RuntimeError, match="same dtype"):
        x.float() @ sp.csr_matrix(DENSE)


def test_other_objects_answer_matmul_themselves():
    class Right:
        def __rmatmul__(self, other):
            return "right"

    assert torch.ones(2) @ Right() == "right"
    with pytest.raises(TypeError, match="unsupported operand"):
        torch.ones(2) @ "text"


def test_tensors_become_sparse_matrices():
    csr, coo = torch.as_tensor(DENSE).to_sparse_csr(), torch.as_tensor(DENSE).to_sparse()
    made = sp.csr_array((csr.values(), csr.col_indices(), csr.crow_indices()), shape=csr.shape)
    np.testing.assert_array_equal(made.toarray(), DENSE)
    made = sp.coo_array((coo.values(), coo.indices()), shape=coo.shape)
    np.testing.assert_array_equal(made.toarray(), DENSE)
    np.testing.assert_array_equal(sp.csr_array(torch.as_tensor(DENSE)).toarray(), DENSE)
    with pytest.raises(TypeError, match=r"torch.as_tensor\(x\) for a sparse tensor"):
        torch.from_numpy(made)


def test_minimize_with_gradients():
    target = torch.tensor([0.5, 1.5, 2.5], dtype=torch.float64)

    def objective(x):
        x = torch.tensor(x, requires_grad=True)
        loss = ((x - target) ** 2).sum()
        loss.backward()
        return loss.item(), x.grad.numpy()

    for method in ("BFGS", "L-BFGS-B", "CG", "SLSQP"):
        found = scipy.optimize.minimize(objective, np.zeros(3), jac=True, method=method)
        np.testing.assert_allclose(found.x, target, atol=1e-5)


def test_statistics_of_tensors():
    x = torch.tensor([0.5, 1.5, 4.0], dtype=torch.float64)
    assert isinstance(scipy.stats.norm.pdf(x), np.ndarray)
    assert scipy.stats.pearsonr(x, x**2)[0] == scipy.stats.pearsonr(x.numpy(), x.numpy() ** 2)[0]
    with pytest.raises(RuntimeError, match="requires grad"):
        scipy.stats.norm.pdf(x.requires_grad_())


class _Image:
    """As PIL's images: `__array_interface__` and no `__array__`, over read-only memory."""

    def __init__(self):
        self.pixels = bytes(range(12))

    @property
    def __array_interface__(self):
        return {"shape": (2, 2, 3), "typestr": "|u1", "version": 3, "data": self.pixels}


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
def test_objects_with_an_array_interface(make):
    have = make(_Image())
    assert have.dtype is torch.uint8 and have.shape == (2, 2, 3) and have.sum() == 66
    with pytest.raises(TypeError, match=r"torch.from_numpy\(np.array\(x\)\)"):
        torch.from_numpy(_Image())


class _Column:
    """As a Series: a sequence with `__array__` and `to_numpy`, of memory that others read."""

    def __init__(self, *values):
        self.array = np.array(values)
        self.array.flags.writeable = False

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        return self.array[index]

    def __array__(self, dtype=None, copy=None):
        return self.array

    def to_numpy(self):
        return self.array


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
def test_read_only_columns_are_copied(make):
    column = _Column(1.0, 2.0)
    have = make(column)
    have[0] = 5.0
    assert have.dtype is torch.float64 and column[0] == 1.0
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got _Column\). Use torch.from_numpy\(x.to_numpy\(\)\)"):
        torch.from_numpy(column)


def test_columns_in_lists_and_as_indices():
    assert torch.tensor([_Column(1.0, 2.0), _Column(3.0, 4.0)]).dtype is torch.float64
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x[_Column(True, False, True)].tolist() == [1.0, 3.0]
    assert x[_Column(2, 0)].tolist() == [3.0, 1.0]
    with pytest.raises(IndexError, match="integer"):
        x[_Column(0.5)]


def test_matplotlib_reads_tensors_as_arrays():
    axes, x = Figure().subplots(), torch.arange(30.0).reshape(10, 3)
    counts, _, _ = axes.hist(x)
    assert counts.shape == (3, 10)  # a histogram for each column
    assert isinstance(axes.plot(x[:, 0])[0].get_ydata(), np.ndarray)
    assert len(axes.plot(x)) == 3 and axes.imshow(x).get_array().shape == (10, 3)
    assert axes.scatter(x[:, 0], x[:, 1], c=x[:, 2]).get_offsets().shape == (10, 2)
    with pytest.raises(RuntimeError, match="requires grad"):
        axes.plot(x.requires_grad_())


def test_scikit_learn_fits_tensors():
    x = torch.arange(12.0).reshape(6, 2) ** 1.5
    y = x @ torch.tensor([2.0, -1.0]) + 0.5
    model = LinearRegression().fit(x, y)
    np.testing.assert_allclose(model.coef_, [2.0, -1.0], atol=1e-4)
    assert isinstance(model.predict(x), np.ndarray)
