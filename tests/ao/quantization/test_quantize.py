"""Prepared models: their files, hooks, older names, and what is refused."""

from __future__ import annotations

import importlib
import io
import pickle
import subprocess
import sys

import pytest

import torchlite as torch
from torchlite.ao import quantization as ao


def model_of_training():
    layers = (
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.BatchNorm2d(2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 3),
    )
    model = ao.fuse_modules_qat(torch.nn.Sequential(*layers), ["0", "1", "2"])
    model.qconfig = ao.get_default_qat_qconfig("qnnpack")
    return ao.prepare_qat(model)


class TestFiles:
    def test_pickled_and_saved_models_compute_the_same(self):
        model, x = model_of_training(), torch.randn(2, 1, 4, 4)
        model(x)
        model.eval().apply(ao.disable_observer)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        for again in (pickle.loads(pickle.dumps(model)), torch.load(saved, weights_only=False)):
            assert torch.equal(again(x), model(x))

    def test_channels_of_another_number_are_loaded(self):
        source, target = (ao.default_fused_per_channel_wt_fake_quant() for _ in range(2))
        source(torch.randn(5, 3))
        target.load_state_dict(source.state_dict())
        assert torch.equal(target.scale, source.scale)
        assert torch.equal(target.activation_post_process.min_val, source.activation_post_process.min_val)

    def test_the_older_names_of_channels_buffers(self):
        source, target = ao.PerChannelMinMaxObserver(), ao.PerChannelMinMaxObserver()
        source(torch.tensor([[1.0, 2.0], [-3.0, 4.0]]))
        state = source.state_dict()
        state["min_vals"], state["max_vals"] = state.pop("min_val"), state.pop("max_val")
        state._metadata[""]["version"] = 2
        target.load_state_dict(state)
        assert target.min_val.tolist() == [1.0, -3.0] and target.max_val.tolist() == [2.0, 4.0]

    def test_the_empty_range_of_older_histograms(self):
        observer = ao.HistogramObserver(bins=4)
        state = observer.state_dict()
        state["min_val"] = state["max_val"] = torch.empty(0)
        state._metadata[""]["version"] = 2
        observer.load_state_dict(state)
        assert observer.min_val.item() == float("inf") and observer.max_val.item() == -float("inf")


class TestHooks:
    def test_fusion_moves_hooks(self):
        model, seen = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU()).eval(), []
        model[0].register_forward_pre_hook(lambda module, args: seen.append(type(module).__name__))
        model[1].register_forward_hook(lambda module, args, out: seen.append(type(module).__name__))
        ao.fuse_modules(model, ["0", "1"])(torch.ones(1))
        assert seen == ["LinearReLU", "LinearReLU"]

    def test_prepared_modules_keep_hooks_and_observe_first(self):
        layer, seen = torch.nn.Linear(1, 1), []
        layer.register_forward_hook(lambda module, args, out: seen.append(type(module).__name__))
        model = torch.nn.Sequential(layer)
        model.qconfig = ao.get_default_qat_qconfig("qnnpack")
        ao.prepare_qat(model, inplace=True)(torch.ones(1))
        assert seen == ["Linear"] and type(model[0]) is torch.ao.nn.qat.Linear
        assert next(iter(model[0]._forward_hooks.values())).__name__ == "_observer_forward_hook"

    def test_parametrizations_are_kept(self):
        model = torch.nn.Sequential(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2)))
        model.qconfig = ao.get_default_qat_qconfig("qnnpack")
        x, plain = torch.ones(1, 2), model[0].weight
        prepared = ao.prepare_qat(model)
        assert torch.nn.utils.parametrize.is_parametrized(prepared[0], "weight")
        assert torch.equal(prepared[0].weight, plain) and prepared(x).shape == (1, 2)

    def test_converted_models_have_neither_observers_nor_configurations(self):
        model = model_of_training()
        kinds = {type(model[0]): torch.nn.Identity, type(model[4]): torch.nn.Identity}
        for kind in kinds:
            kinds[kind] = type("Plain", (), {"from_float": staticmethod(lambda mod: mod.to_float())})
        plain = ao.convert(model, kinds)
        assert not [name for name, _ in plain.named_modules() if "fake_quant" in name or "activation_post" in name]
        assert not any(hasattr(module, "qconfig") for module in plain.modules())


class TestObservers:
    def test_ranges_are_forgotten(self):
        for observer in (ao.MinMaxObserver(), ao.MovingAverageMinMaxObserver()):
            observer(torch.ones(2))
            observer.reset_min_max_vals()
            assert observer.min_val.item() == float("inf") and observer.max_val.item() == -float("inf")
        channels = ao.PerChannelMinMaxObserver()
        channels(torch.ones(2, 2))
        channels.reset_min_max_vals()
        assert channels.min_val.numel() == channels.max_val.numel() == 0

    def test_arguments_that_are_called(self):
        numbers = iter([0.1, 0.2, 0.3])
        make = ao.MinMaxObserver.with_callable_args(eps=lambda: next(numbers)).with_args(quant_min=0, quant_max=7)
        first, second, third = make(), make(eps=0.5), make()
        assert [round(x.eps.item(), 1) for x in (first, second, third)] == [0.1, 0.5, 0.2] and first.quant_max == 7

    def test_base_classes_are_abstract(self):
        for kind in (ao.ObserverBase, ao.FakeQuantizeBase, ao.AffineQuantizedObserverBase):
            with pytest.raises(TypeError, match="abstract"):
                kind()

    def test_warnings(self):
        with pytest.warns(UserWarning, match="must run observer before calling calculate_qparams"):
            ao.MinMaxObserver().calculate_qparams()
        with pytest.warns(UserWarning, match="Please use quant_min and quant_max"):
            ao.MinMaxObserver(reduce_range=True)
        with pytest.warns(UserWarning, match="torch.inf detected"):
            ao.HistogramObserver()(torch.tensor([1.0, float("inf")]))
        with pytest.warns(UserWarning, match="None of the submodule got qconfig applied"):
            ao.prepare(torch.nn.Sequential(torch.nn.Linear(1, 1)))

    def test_observers_are_made_on_the_device_of_the_layer(self, device):
        model = torch.nn.Sequential(torch.nn.Linear(1, 1)).to(device)
        model.qconfig = ao.default_per_channel_qconfig
        prepared = ao.prepare(model)
        assert prepared[0].activation_post_process.min_val.device.type == torch.device(device).type
        assert prepared[0].qconfig.weight().min_val.device.type == torch.device(device).type

    @pytest.mark.parametrize(
        "granularity,size",
        [
            (ao.PerTensor(), (2, 6)),
            (ao.PerAxis(1), (2, 1)),
            (ao.PerGroup(3), (1, 3)),
            (ao.PerRow(), (1, 6)),
            (ao.PerToken(), (1, 6)),
        ],
    )
    def test_sizes_of_blocks(self, granularity, size):
        assert ao.get_block_size((2, 6), granularity) == size


class TestNames:
    @pytest.mark.parametrize(
        "old,new",
        [
            ("quantization.observer", "ao.quantization.observer"),
            ("quantization.fake_quantize", "ao.quantization.fake_quantize"),
            ("quantization.fuse_modules", "ao.quantization.fuse_modules"),
            ("nn.intrinsic.qat", "ao.nn.intrinsic.qat"),
            ("nn.intrinsic.modules", "ao.nn.intrinsic.modules"),
            ("nn.qat.dynamic", "ao.nn.qat.dynamic"),
            ("nn.quantized.modules", "ao.nn.quantized.modules"),
        ],
    )
    def test_older_names_are_the_same_modules(self, old, new):
        assert importlib.import_module(f"torchlite.{old}") is importlib.import_module(f"torchlite.{new}")

    def test_older_packages_are_loaded_when_they_are_named(self):
        assert torch.nn.quantized.FloatFunctional is torch.ao.nn.quantized.FloatFunctional
        assert torch.nn.qat.Linear is torch.ao.nn.qat.Linear and torch.nn.intrinsic.qat is torch.ao.nn.intrinsic.qat

    def test_none_of_it_is_loaded_with_the_library(self):
        program = "import sys, torchlite, torchlite.nn; print([n for n in sys.modules if n.startswith('torchlite.ao')])"
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == "[]"

    def test_classes_name_public_modules(self):
        assert ao.MinMaxObserver.__module__.endswith("ao.quantization.observer")
        assert ao.FakeQuantizeBase.__module__.endswith("ao.quantization.fake_quantize")
        assert torch.ao.nn.intrinsic.ConvReLU2d.__module__.endswith("ao.nn.intrinsic.modules.fused")


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_reference_layers_hold_quantized_weights():
    model = ao.QuantWrapper(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())).eval()
    model.qconfig, x = ao.get_default_qconfig("fbgemm"), torch.tensor([[0.5, -1.0], [2.0, 1.5]])
    prepared = ao.prepare(model)
    prepared(x)
    made, quantized = ao.convert(prepared, is_reference=True), ao.convert(prepared)
    layer = made.module[0]
    assert type(layer) is torch.ao.nn.quantized.reference.Linear and type(made.quant).__name__ == "Quantize"
    assert torch.equal(layer.get_quantized_weight(), quantized.module[0].weight())
    assert torch.equal(layer.get_weight(), layer.get_quantized_weight().dequantize())
    assert ao.get_static_quant_module_class(torch.nn.Conv2d, is_reference=True).__module__.endswith(
        "reference.modules.conv"
    )


def test_synchronized_batch_norms_keep_their_configuration():
    model = torch.nn.Sequential(torch.nn.BatchNorm2d(2))
    model[0].qconfig = ao.default_qconfig
    assert torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)[0].qconfig is ao.default_qconfig


def test_inputs_of_all_modules():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x, second=5)

    class Inner(torch.nn.Module):
        def forward(self, x, first=3, second=4):
            return x

    found = ao.utils.get_fqn_to_example_inputs(Net(), (torch.ones(1),))
    assert list(found) == ["", "inner"] and found["inner"][1:] == (3, 5)


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_observers_of_symmetric_bytes_refuse_reduced_ranges_and_histograms_take_them():
    given = {"dtype": torch.quint8, "reduce_range": True}
    for observer, scheme in (
        (ao.MinMaxObserver, torch.per_tensor_symmetric),
        (ao.MovingAverageMinMaxObserver, torch.per_tensor_symmetric),
        (ao.PerChannelMinMaxObserver, torch.per_channel_symmetric),
        (ao.MovingAveragePerChannelMinMaxObserver, torch.per_channel_symmetric),
    ):
        with pytest.raises(NotImplementedError, match="Cannot reduce range for symmetric quantization for quint8"):
            observer(qscheme=scheme, **given)
    observer = ao.HistogramObserver(qscheme=torch.per_tensor_symmetric, **given)
    assert (observer.quant_min, observer.quant_max) == (0, 127)
