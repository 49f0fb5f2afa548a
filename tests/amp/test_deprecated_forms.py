"""`torch.cuda.amp` and `torch.cpu.amp`: the same with a FutureWarning."""

import importlib
import pickle

import pytest

import torchlite as torch


def older(device_type):
    return importlib.import_module("torchlite.cpu.amp" if device_type == "cpu" else "torchlite.amp._cuda_amp")


@pytest.mark.filterwarnings("ignore:.*CUDA is not available:UserWarning")
@pytest.mark.parametrize("device_type,dtype", [("cpu", torch.bfloat16), ("cuda", torch.float16)])
def test_classes(device_type, dtype):
    module = older(device_type)
    words = r"`torch.{0}.amp.{1}\(args...\)` is deprecated. Please use `torch.amp.{1}\('{0}', args...\)` instead."
    with pytest.warns(FutureWarning, match=words.format(device_type, "autocast")):
        region = module.autocast()
    assert isinstance(region, torch.autocast) and region.device == device_type and region.fast_dtype is dtype
    with pytest.warns(FutureWarning, match=words.format(device_type, "GradScaler")):
        scaler = module.GradScaler(8.0)
    assert isinstance(scaler, torch.amp.GradScaler)
    if device_type == "cpu":
        assert scaler.get_scale() == 8.0 and pickle.loads(pickle.dumps(scaler)).get_scale() == 8.0
        with region:
            assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.bfloat16


def test_decorators():
    module = older("cuda")
    with pytest.warns(
        FutureWarning, match=r"Please use `torch.amp.custom_fwd\(args..., device_type='cuda'\)` instead."
    ):
        forward = module.custom_fwd(cast_inputs=torch.float16)
    with pytest.warns(
        FutureWarning, match=r"Please use `torch.amp.custom_bwd\(args..., device_type='cuda'\)` instead."
    ):
        backward = module.custom_bwd(lambda ctx, g: g)
    ctx = type("Ctx", (), {})()
    assert forward(lambda ctx, x: x + 1)(ctx, 1) == 2 and not ctx._fwd_used_autocast
    assert callable(backward)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("cuda.amp.common", ["amp_definitely_not_available"]),
        ("cuda.amp.autocast_mode", ["autocast", "custom_bwd", "custom_fwd"]),
        ("cuda.amp.grad_scaler", ["GradScaler"]),
        ("cpu.amp.autocast_mode", ["autocast"]),
        ("cpu.amp.grad_scaler", ["GradScaler"]),
    ],
)
def test_modules_of_the_old_names(path, names):
    package = importlib.import_module(f"torchlite.{path.rpartition('.')[0]}")
    module = getattr(package, path.rpartition(".")[2])
    assert module.__all__ == names
    assert all(getattr(module, name) is getattr(package, name) for name in names)
