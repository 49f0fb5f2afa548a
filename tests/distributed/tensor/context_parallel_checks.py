"""Sequences cut over the ranks: `mpiexec -n 3 python -m tests.distributed.tensor.context_parallel_checks`."""

from __future__ import annotations

import copy
import itertools
import warnings

import pytest

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed.tensor import DTensor, Shard
from torchlite.distributed.tensor.experimental import _attention, context_parallel
from torchlite.distributed.tensor.experimental._attention import context_parallel_unshard, set_rotate_method
from torchlite.nn import functional as F

from .training import GPT, LENGTH, WORDS


def operands(size, heads=4, key_heads=4, length=0, value_width=6, dtype=torch.float32):
    generator = torch.Generator().manual_seed(7)
    length = length or 4 * size
    shapes = (2, heads, length, 6), (2, key_heads, length, 6), (2, key_heads, length, value_width)
    made = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    return made, torch.randn((2, heads, length, value_width), generator=generator).to(dtype)


def alone(tensors, weight, **options):
    leaves = [t.clone().requires_grad_() for t in tensors]
    out = F.scaled_dot_product_attention(*leaves, **options)
    (out * weight).sum().backward()
    return [out.detach(), *(leaf.grad for leaf in leaves)]


def over_ranks(mesh, tensors, weight, **options):
    with context_parallel(mesh, buffers=[*tensors, weight], buffer_seq_dims=[2] * 4):
        leaves = [t.clone().requires_grad_() for t in tensors]
        assert leaves[0].shape[2] * mesh.size() == weight.shape[2] * mesh.size()
        out = F.scaled_dot_product_attention(*leaves, **options)
        (out * weight).sum().backward()
        parts = [out.detach(), *(leaf.grad for leaf in leaves)]
        return context_parallel_unshard(mesh, parts, [2] * 4)


def one_attention(mesh):
    """Results and gradients are those of one process: all kinds of order, travel, dtype and heads."""
    size = mesh.size()
    whole = F.scaled_dot_product_attention
    for balanced, method, causal in itertools.product((True, False), ("allgather", "alltoall"), (True, False)):
        if balanced and not causal:
            continue
        set_rotate_method(method)
        _attention._cp_options.enable_load_balance = balanced
        for kind, limit in (
            ({}, 1e-5), ({"key_heads": 2}, 1e-5), ({"value_width": 3}, 1e-5), ({"dtype": torch.float64}, 1e-12),
            ({"dtype": torch.bfloat16}, 0.05), ({"length": size}, 1e-5),
        ):  # fmt: skip
            tensors, weight = operands(size, **kind)
            options = {"is_causal": causal, "enable_gqa": "key_heads" in kind, "scale": 0.3}
            right = alone(tensors, weight, **options)
            for found, expected in zip(over_ranks(mesh, tensors, weight, **options), right, strict=True):
                assert found.dtype == expected.dtype
                torch.testing.assert_close(found, expected, rtol=limit, atol=limit)
            assert F.scaled_dot_product_attention is whole
            assert tensors[0].shape == right[0].shape[:3] + (6,)  # restored
    set_rotate_method("allgather")
    _attention._cp_options.enable_load_balance = True


def dropped_weights(mesh):
    """Dropout: the gradient is that of the function computed forward, by differences."""
    tensors, weight = operands(mesh.size(), dtype=torch.float64)
    with context_parallel(mesh, buffers=[*tensors, weight], buffer_seq_dims=[2] * 4):

        def loss(query, key, value):
            torch.manual_seed(3)
            total = (F.scaled_dot_product_attention(query, key, value, None, 0.4, True) * weight).sum()
            dist.all_reduce(total.data)
            return total

        leaves = [t.clone().requires_grad_() for t in tensors]
        total = loss(*leaves)
        assert total == loss(*leaves) and total != (F.scaled_dot_product_attention(*leaves, is_causal=True)).sum()
        total.backward()
        generator = torch.Generator().manual_seed(dist.get_rank())
        steps = [torch.randn(t.shape, generator=generator, dtype=t.dtype) * 1e-6 for t in tensors]
        slope = (loss(*(t + s for t, s in zip(tensors, steps, strict=True))) - total).detach()
        expected = sum((leaf.grad * s).sum() for leaf, s in zip(leaves, steps, strict=True))
        dist.all_reduce(expected)
        torch.testing.assert_close(slope, expected, rtol=1e-4, atol=0)


def a_network(mesh):
    """A GPT's loss, gradients and positions, with buffers that are not restored."""
    torch.manual_seed(0)
    model = GPT()
    x = torch.randint(WORDS, (4, LENGTH))
    target = x.roll(-1, 1)
    places = torch.arange(LENGTH).repeat(4, 1)
    single = copy.deepcopy(model)
    right = F.cross_entropy(single(x).flatten(0, 1), target.flatten())
    right.backward()
    size = mesh.size()
    if LENGTH % size:
        return
    torch_arange, given = torch.arange, [x, target, places]
    with context_parallel(mesh, buffers=given, buffer_seq_dims=[1] * 3, no_restore_buffers={target}):
        assert x.shape == target.shape == places.shape == (4, LENGTH // size)
        h = model.words(x) + model.places(places)
        for block in model.blocks:
            h = block(h)
        loss = F.cross_entropy(model.last(model.norm(h)).flatten(0, 1), target.flatten())
        loss.backward()
    assert torch.arange is torch_arange and x.shape == places.shape == (4, LENGTH)
    assert target.shape == (4, LENGTH // size) and torch.equal(places, torch.arange(LENGTH).repeat(4, 1))
    total = loss.detach().clone()
    dist.all_reduce(total)
    torch.testing.assert_close(total / size, right.detach(), rtol=1e-5, atol=1e-5)
    for own, other in zip(model.parameters(), single.parameters(), strict=True):
        dist.all_reduce(own.grad)
        torch.testing.assert_close(own.grad / size, other.grad, rtol=1e-5, atol=1e-5)


def a_layer(mesh):
    """`MultiheadAttention` computes the ring's attention too."""
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(3, 2 * mesh.size(), 8)
    options = {
        "attn_mask": torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1]),
        "is_causal": True, "need_weights": False,
    }  # fmt: skip
    right = layer(x, x, x, **options)[0]
    with context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
        out = layer(x, x, x, **options)[0]
        torch.testing.assert_close(context_parallel_unshard(mesh, [out], [1])[0], right.detach())


def one_dimension_of_a_mesh():
    """Two ranks of four cut the sequence, the others the batch."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
    tensors, weight = operands(2)
    right = alone(tensors, weight, is_causal=True)
    row = mesh.get_local_rank("dp")
    found = over_ranks(mesh["cp"], [t[row : row + 1].clone() for t in tensors], weight[row : row + 1].clone(),
                       is_causal=True)  # fmt: skip
    for own, whole in zip(found, right, strict=True):
        torch.testing.assert_close(own, whole[row : row + 1], rtol=1e-5, atol=1e-5)


def dtensors_and_orders(mesh):
    size = mesh.size()
    tensors, _ = operands(size)
    right = F.scaled_dot_product_attention(*tensors, is_causal=True)
    with context_parallel(mesh, buffers=tensors, buffer_seq_dims=[2] * 3):
        given = [DTensor.from_local(t, mesh, [Shard(2)]) for t in tensors]
        out = F.scaled_dot_product_attention(*given, is_causal=True)
        assert not isinstance(out, DTensor)
        torch.testing.assert_close(context_parallel_unshard(mesh, [out], [2])[0], right)
        with pytest.raises(AssertionError, match=r"must be placed by \(Shard\(2\),\)"):
            F.scaled_dot_product_attention(DTensor.from_local(tensors[0], mesh, [Shard(1)]), *given[1:])
    line = torch.arange(4 * size)
    with context_parallel(mesh, buffers=[line], buffer_seq_dims=[0]):
        first = 2 * mesh.get_local_rank()
        assert line.tolist() == [first, first + 1, 4 * size - 2 - first, 4 * size - 1 - first]
        assert context_parallel_unshard(mesh, [line], [-1])[0].tolist() == list(range(4 * size))


def refusals(mesh):
    tensors, _ = operands(mesh.size())
    with pytest.raises(ValueError, match="`seq_dims` must have the same number of elements as `buffers`"):
        with context_parallel(mesh, buffers=tensors, buffer_seq_dims=[2]):
            pass
    with pytest.raises(ValueError, match="`no_restore_buffers` must be a subset of `buffers`"):
        with context_parallel(mesh, buffers=tensors, buffer_seq_dims=[2] * 3, no_restore_buffers={torch.ones(1)}):
            pass
    with pytest.raises(NotImplementedError, match="does not support using ring for kv shards rotation"):
        set_rotate_method("ring")
    if mesh.size() > 1:
        with pytest.raises(ValueError, match="cannot be cut into"):
            with context_parallel(mesh, buffers=[torch.ones(mesh.size() + 1)], buffer_seq_dims=[0]):
                pass
    with context_parallel(mesh, buffers=tensors, buffer_seq_dims=[2] * 3):
        with pytest.raises(RuntimeError, match="Load balancing requires `is_causal=True`"):
            F.scaled_dot_product_attention(*tensors)
        with pytest.raises(NotImplementedError, match="attn_bias is not supported yet"):
            F.scaled_dot_product_attention(*tensors, torch.ones(1, 1))
        with pytest.raises(NotImplementedError, match="requires the same query and context sequence lengths"):
            F.scaled_dot_product_attention(tensors[0][:, :, :1], *tensors[1:], is_causal=True)
        with pytest.raises(RuntimeError, match="8 heads of the query do not fit 4"):
            F.scaled_dot_product_attention(tensors[0].repeat(1, 2, 1, 1), *tensors[1:], is_causal=True)
        with pytest.raises(RuntimeError, match="must have 4 dimensions"):
            F.scaled_dot_product_attention(*(t[0] for t in tensors), is_causal=True)


def main():
    warnings.simplefilter("error")
    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for check in (one_attention, dropped_weights, a_network, a_layer, dtensors_and_orders, refusals):
        check(mesh)
    if mesh.size() == 4:
        one_dimension_of_a_mesh()
    print("agrees", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
