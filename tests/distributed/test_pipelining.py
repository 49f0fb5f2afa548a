"""Pipelines on two, three and four ranks; fifty steps of networks are in `python -m
tests.distributed.nightly_pipelines`.
"""

import pytest

import torchlite as torch
import torchlite.distributed as dist
from tests.distributed.ddp.world_launcher import run
from torchlite.distributed import pipelining
from torchlite.distributed.pipelining import _pipeline_orders
from torchlite.distributed.pipelining._utils import PipeliningMetadataError
from torchlite.distributed.pipelining.microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from torchlite.distributed.pipelining.schedules import get_schedule_class
from torchlite.nn import functional as F

from . import pipeline_checks
from .rank_launcher import needs_mpi


@needs_mpi
@pytest.mark.parametrize("size", [2, 3, 4])
def test_ranks(tmp_path, size):
    checks = [
        pipeline_checks.gradients_are_those_of_one_process,
        pipeline_checks.gradients_add_up_unscaled_and_in_pieces_of_other_sizes,
        pipeline_checks.gradients_that_nobody_has,
        pipeline_checks.models_are_cut,
    ]
    run(
        tmp_path,
        size,
        *checks,
        *([pipeline_checks.data_parallel_stages, pipeline_checks.sharded_stages] if size == 4 else []),
    )


def test_orders():
    pipeline_checks.orders_have_no_circle(0, 1)
    with pytest.raises(ValueError, match=r"a multiple of the number of rounds \(2\), but got 9"):
        _pipeline_orders.interleaved_one_forward_one_backward(4, 2, 9)
    with pytest.raises(RuntimeError, match="wait for each other"):
        pipeline_checks.simulate_times({0: [_pipeline_orders.Action(0, "B", 0)]}, {0: 0}, {"B": 1.0})


@pytest.fixture
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def linear(**options):
    return pipelining.PipelineStage(torch.nn.Linear(4, 4), 0, 1, torch.device("cpu"), **options)


def test_mistakes(alone):
    x = torch.randn(6, 4)
    with (
        pytest.raises(ValueError, match="Expecting 8 arg_mbs but got 6"),
        pytest.warns(UserWarning, match="downsizing"),
    ):
        pipelining.ScheduleGPipe(linear(), 8).step(x)
    schedule = pipelining.ScheduleGPipe(linear(), 3, loss_fn=F.mse_loss)
    with pytest.raises(PipeliningMetadataError, match="Stage 0: loss_fn and target required for last stage"):
        schedule.step(x)
    with pytest.raises(TypeError, match="losses must be a list but got a <class 'int'>"):
        schedule.step(x, target=x, losses=3)
    with torch.no_grad(), pytest.raises(RuntimeError, match="Please call eval"):
        schedule.step(x, target=x)
    with pytest.raises(
        PipeliningMetadataError, match=r"Stage 0: arg\[1\] has type int. All stage args must be tensors"
    ):
        schedule.step(x, 5, target=x)
    with pytest.raises(PipeliningMetadataError, match=r"input\[0\] has a dtype mismatch: expected torch.float64"):
        pipelining.ScheduleGPipe(linear(input_args=torch.ones(2, 4).double()), 3).step(x)
    with pytest.raises(PipeliningMetadataError, match=r"output\[0\] has a shape mismatch: expected \(2, 3\)"):
        pipelining.ScheduleGPipe(linear(output_args=(torch.ones(2, 3),)), 3).step(x)
    for wrong in (0, 1):
        with pytest.raises(ValueError, match=f"Stage index 1 is out of range of {wrong}"):
            pipelining.PipelineStage(torch.nn.Identity(), 1, wrong, "cpu")
    with pytest.raises(ValueError, match="greater than or equal to the number of stages"):
        pipelining.Schedule1F1B(linear(), 0)
    with pytest.raises(ValueError, match="ZBV requires exactly 2 stages per rank, but got 1"):
        pipelining.ScheduleZBVZeroBubble([linear()], 2)
    with pytest.raises(NotImplementedError, match="ScheduleDualPipeV"):
        pipelining.ScheduleDualPipeV([linear()], 2)
    with pytest.raises(NotImplementedError, match="backward_requires_autograd=False"):
        pipelining.ScheduleLoopedBFS([linear()], 2, backward_requires_autograd=False)
    with pytest.raises(ValueError, match="Unknown schedule name 'nope'"):
        get_schedule_class("nope")
    with pytest.raises(RuntimeError, match="does not support loss"):
        pipelining._ScheduleForwardOnly(linear(), 2).step(x, target=x)
    with pytest.raises(AssertionError, match=r"`backward_one_chunk\(full_backward=False\)`"):
        linear(dw_builder=lambda: None).backward_weight_one_chunk(0)


def test_weights_left_to_a_function(alone):
    calls = []
    for kind in (pipelining.ScheduleGPipe, pipelining.ScheduleInterleavedZeroBubble):
        stage = linear(dw_builder=lambda: lambda: calls.append("weights"))
        schedule = kind(stage if kind is pipelining.ScheduleGPipe else [stage], 3, loss_fn=F.mse_loss)
        schedule.step(torch.randn(6, 4), target=torch.randn(6, 4))
        assert calls == ["weights"] * 3
        calls.clear()


def test_halves_compute_each_gradient_once(alone):
    """The first half computes no gradient of a parameter, the second none of the input."""
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, name):
            ctx.save_for_backward(x, weight)
            ctx.name = name
            return x @ weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight.t(), x.t() @ grad, None

    from torchlite.distributed.pipelining import _split_backward

    x = torch.randn(3, 4, requires_grad=True)
    layer, tied = torch.nn.Linear(4, 4), torch.nn.Parameter(torch.randn(4, 4))
    layer.weight.register_hook(lambda grad: seen.append("weight"))
    x.register_hook(lambda grad: seen.append("x"))
    out = Product.apply(layer(layer(x)).tanh() @ tied, tied, "")  # each is used twice
    other = (tied * 2).sum()
    wanted = torch.autograd.grad((out, other), (x, layer.weight, layer.bias, tied), (out.detach(), None), True)
    seen.clear()
    (found,), left = _split_backward.backward_input([(out, out.detach()), (other, None)], [x])
    torch.testing.assert_close(found, wanted[0])
    assert seen == ["x"] and layer.weight.grad is None and tied.grad is None
    _split_backward.backward_weight(left)
    assert seen == ["x", "weight"] and x.grad is None
    for parameter, grad in zip((layer.weight, layer.bias, tied), wanted[1:], strict=True):
        torch.testing.assert_close(parameter.grad, grad)


def test_microbatches():
    x = torch.arange(12.0).reshape(6, 2)
    args, kwargs = split_args_kwargs_into_chunks((x, 3, [x, None]), {"a": {"b": x}, "m": 1}, 3)
    assert [piece[0].tolist() for piece in args] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert args[1][1] == 3 and args[1][2][1] is None and args[2][2][0].tolist() == [[8, 9], [10, 11]]
    assert kwargs[2]["m"] == 1 and kwargs[2]["a"]["b"].tolist() == [[8, 9], [10, 11]]
    args, _ = split_args_kwargs_into_chunks((x.t(), x), None, 3, TensorChunkSpec.from_tuple((1, 0)))
    assert torch.equal(merge_chunks(args, (TensorChunkSpec(1), TensorChunkSpec(0)))[0], x.t())
    with pytest.warns(UserWarning, match="Tensor size on chunking dimension is 2, downsizing the number of chunks"):
        assert len(split_args_kwargs_into_chunks((x[:2],), {}, 3)[0]) == 2
    with pytest.raises(AssertionError, match=r"args_dict.keys\(\) = \[0, 1\] args_chunk_spec.keys\(\) = \[0\]"):
        split_args_kwargs_into_chunks((x, x), {}, 2, (TensorChunkSpec(0),))
    with pytest.raises(AssertionError, match="Expected TensorChunkSpec, got <class 'int'>"):
        split_args_kwargs_into_chunks((x,), {}, 2, (7,))
    assert merge_chunks([{"a": x}, {"a": x}], None)["a"].shape == (12, 2)
    assert merge_chunks([(x, 3), (x, 3)], (TensorChunkSpec(0), None))[1] == 3
    with pytest.raises(AssertionError, match="Expected 3, got 4"):
        merge_chunks([(x, 3), (x, 4)], (TensorChunkSpec(0), None))
    with pytest.raises(ValueError, match="did not match chunk spec None"):
        merge_chunks([(x,), (x, x)], None)


def test_models_are_cut_at_their_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()))
    x = torch.randn(2, 3)
    spec = {"1": pipelining.SplitPoint.BEGINNING, "1.0": pipelining.SplitPoint.END}
    pipe = pipelining.pipeline(model, (x,), split_spec=spec)
    assert pipe.num_stages == 3 and torch.equal(pipe(x)[0], model(x))
    assert not model[1]._forward_pre_hooks and not model[1][0]._forward_hooks
    assert pipe.info().num_stages == 3 and list(pipe.get_stage_module(1).state_dict()) == ["1.0.weight", "1.0.bias"]
    with pytest.raises(ValueError, match="Invalid stage index 3"):
        pipe.get_stage_module(3)
    with pytest.raises(ValueError, match="Cannot specify both"):
        pipelining.pipeline(model, (x,), split_spec=spec, split_policy=lambda graph: graph)
    with pytest.raises(AttributeError, match="no attribute"):
        pipelining.pipeline(model, (x,), split_spec={"7": pipelining.SplitPoint.END})

    class Asking(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="cannot capture your model as a full graph"):
        pipelining.pipeline(Asking(), (x,))


def test_few_microbatches_in_a_v():
    """PyTorch's order of ZB-V for two ranks and two microbatches, without its gaps."""
    found = _pipeline_orders.zero_bubble_v(2, 2)
    assert [" ".join(map(str, found[rank])) for rank in range(2)] == [
        "0F0 0F1 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 0I1 0W1",
        "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1",
    ]
