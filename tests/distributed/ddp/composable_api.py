"""`replicate` and `checkpoint`, which leave a module the object that it is."""

from __future__ import annotations

import copy

import pytest

import torchlite as torch
from torchlite import nn
from torchlite.distributed._composable import checkpoint, contract, replicate
from torchlite.distributed._composable.contract import _get_registry
from torchlite.nn import functional as F


def replicated_and_recomputed(rank, size):
    alone = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.GELU()), nn.Linear(8, 2))
    model, calls = copy.deepcopy(alone), []
    model[1][0].register_forward_hook(lambda *_: calls.append(1))
    assert checkpoint(model[1], preserve_rng_state=True) is model[1]
    assert replicate(model, ignored_modules=[model[2]], bucket_cap_mb=1) is model
    assert isinstance(model, nn.Sequential) and type(model).__name__ == "DDPSequential"
    assert list(model.state_dict()) == list(alone.state_dict()) and list(_get_registry(model)) == ["replicate"]
    x, y = torch.randn(4 * size, 4), torch.randn(4 * size, 2)
    part = slice(rank, None, size)
    for sync in (True, False, True):
        model.set_requires_gradient_sync(sync)
        for net, mine in ((alone, slice(None) if sync else part), (model, part)):
            net.zero_grad()
            F.mse_loss(net(x[mine]), y[mine]).backward()
        for one, other in zip(model[:2].parameters(), alone[:2].parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad)
    assert len(calls) == 6  # each forward twice
    with torch.no_grad():
        model(x[part])
    assert len(calls) == 7
    with pytest.raises(AssertionError, match="replicate has already been applied"):
        replicate(model)
    with pytest.raises(AssertionError, match="DDP does not support deepcopy"):
        copy.deepcopy(model)


def what_contracts_ask_for(rank, size):
    @contract()
    def renames(module):
        module.other = nn.Linear(1, 1)

    @contract()
    def nothing(module, number):
        nothing.state(module).number = number

    layer = nn.Linear(1, 1)
    assert nothing(layer, 3) is layer and nothing.state(layer).number == 3 and nothing.state(nn.Linear(1, 1)) is None
    with pytest.raises(RuntimeError, match="Checking parameters: Composable distributed API implementations cannot"):
        renames(layer)
    broken = checkpoint(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        broken(torch.ones(1, 2))
    broken(torch.ones(1, 1)).sum().backward()  # what failed has left nothing behind
    assert broken.weight.grad.item() == 1
