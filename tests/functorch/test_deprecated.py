import pytest

import torchlite as torch
from torchlite._functorch import deprecated


def test_functions_warn_and_are_those_of_torch_func():
    with pytest.warns(FutureWarning, match="torch.func.vmap"):
        doubled = deprecated.vmap(lambda x: x * 2)
    assert doubled(torch.ones(2)).tolist() == [2, 2]
    with pytest.warns(FutureWarning, match="torch.func.grad,"):
        assert deprecated.grad(lambda x: x * x)(torch.tensor(3.0)) == 6


def test_functional_models_warn():
    with pytest.warns(FutureWarning, match="functional_call"):
        model, parameters = deprecated.make_functional(torch.nn.Linear(2, 1))
    assert model(parameters, torch.ones(1, 2)).shape == (1, 1)
