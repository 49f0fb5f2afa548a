"""Ops of DTensors against those of plain tensors: values and gradients, for placements chosen at random.

`mpiexec -n 4 python -m tests.distributed.tensor.op_checks --count 200` is a long form; `--only softmax` and `--seed 3`
choose.
"""

from __future__ import annotations

import argparse
import itertools
import random
import zlib

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torchlite.distributed.tensor._utils import compute_local_shape
from torchlite.distributed.tensor.experimental import implicit_replication
from torchlite.nn import functional as F


def _set(a, b):
    c = a * 1
    c[1] = b
    c[:, 0] = 7
    c[torch.tensor([0, 2]), 1] = 3
    return c


def _written(a, b):
    c = a * 1
    c.mul_(b).add_(1).copy_(c * 2).clamp_(-1)
    c.t().mul_(2)
    return c


WORDS = torch.tensor([[0, 1, 4], [2, 2, 3]])
KINDS = torch.tensor([0, 1, 2, -100, 0])
ROWS = torch.tensor([[0], [1], [2], [0], [1]])

# By name: the function, and the shapes of its arguments.
CASES = {
    "add": (lambda a, b: a + b, [(5, 3), (5, 3)]),
    "add broadcast": (lambda a, b: a + b, [(5, 3), (3,)]),
    "mul broadcast": (lambda a, b: a * b, [(5, 1), (5, 3)]),
    "numbers": (lambda a: (a * 2 + 1).exp() - 3 / (a * a + 1), [(5, 3)]),
    "div": (lambda a, b: a / (b * b + 1), [(5, 3), (5, 3)]),
    "where": (lambda a, b: torch.where(a > 0, a, b), [(5, 3), (5, 3)]),
    "lerp": (lambda a, b: torch.lerp(a, b, 0.3), [(5, 3), (5, 3)]),
    "addcmul": (lambda a, b, c: torch.addcmul(a, b, c, value=2), [(5, 3)] * 3),
    "clamp": (lambda a: a.clamp(-0.5, 0.5), [(5, 3)]),
    "activations": (lambda a: F.silu(a) * F.softplus(a) + F.gelu(a) * F.elu(a), [(5, 3)]),
    "masked_fill": (lambda a: a.masked_fill(a > 0, 0), [(5, 3)]),
    "cast": (lambda a: a.to(torch.float32).to(torch.float64), [(5, 3)]),
    "square of itself": (lambda a: a * a + a, [(5, 3)]),
    "sum": (lambda a: a.sum(), [(5, 3)]),
    "sum of rows": (lambda a: a.sum(0), [(5, 3)]),
    "mean": (lambda a: a.mean(1, keepdim=True), [(5, 3)]),
    "mean of all": (lambda a: a.mean(), [(5, 3)]),
    "var": (lambda a: a.var(1), [(5, 3)]),
    "std": (lambda a: a.std(), [(5, 3)]),
    "max": (lambda a: a.max(1)[0], [(5, 3)]),
    "amax": (lambda a: a.amax(0), [(5, 3)]),
    "amax of equals": (lambda a: a.relu().amin((0, 1)), [(5, 3)]),
    "prod": (lambda a: a.prod(0), [(5, 3)]),
    "norm": (lambda a: a.norm(), [(5, 3)]),
    "norm 1": (lambda a: torch.linalg.vector_norm(a, 1, dim=0), [(5, 3)]),
    "norm inf": (lambda a: torch.linalg.vector_norm(a, float("inf")), [(5, 3)]),
    "logsumexp": (lambda a: a.logsumexp(1), [(5, 3)]),
    "cumsum": (lambda a: a.cumsum(0), [(5, 3)]),
    "any": (lambda a: (a > 1).any(0).double() + (a > -1).all(0), [(5, 3)]),
    "argmax": (lambda a: a.argmax(1).double(), [(5, 3)]),
    "topk": (lambda a: a.topk(2, 1)[0], [(5, 3)]),
    "sort": (lambda a: a.sort(0)[0], [(5, 3)]),
    "mm": (lambda a, b: a @ b, [(5, 3), (3, 4)]),
    "product of stacks": (lambda a, b: a @ b, [(2, 5, 3), (3, 4)]),
    "product of broadcast stacks": (lambda a, b: a @ b, [(1, 4, 5, 3), (2, 4, 3, 2)]),
    "bmm": (lambda a, b: torch.bmm(a, b), [(2, 5, 3), (2, 3, 4)]),
    "mv": (lambda a, b: a @ b, [(5, 3), (3,)]),
    "dot": (lambda a, b: torch.dot(a, b), [(5,), (5,)]),
    "outer": (lambda a, b: torch.outer(a, b), [(5,), (3,)]),
    "gram": (lambda a: a @ a.t(), [(5, 3)]),
    "linear": (lambda a, b, c: F.linear(a, b, c), [(2, 5, 3), (4, 3), (4,)]),
    "linear of vectors": (lambda a, b: F.linear(a, b), [(5, 3), (4, 3)]),
    "addmm": (lambda a, b, c: torch.addmm(a, b, c), [(4,), (5, 3), (3, 4)]),
    "addmm scaled": (lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), [(5, 4), (5, 3), (3, 4)]),
    "baddbmm": (lambda a, b, c: torch.baddbmm(a, b, c), [(2, 5, 4), (2, 5, 3), (2, 3, 4)]),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), [(2, 5, 3), (2, 3, 4)]),
    "t": (lambda a: a.t() * 2, [(5, 3)]),
    "permute": (lambda a: a.permute(2, 0, 1), [(2, 5, 3)]),
    "split dimension": (lambda a: a.reshape(4, 3, 2), [(4, 6)]),
    "join dimensions": (lambda a: a.reshape(24), [(4, 6)]),
    "join dimensions that two of the mesh cut": (lambda a: a.reshape(-1) * 2, [(6, 6)]),
    "another split": (lambda a: a.view(4, 2, 3), [(4, 6)]),
    "flatten": (lambda a: a.flatten(1), [(4, 2, 3)]),
    "squeeze": (lambda a: a.squeeze(1).unsqueeze(0), [(5, 1, 3)]),
    "expand": (lambda a: a.expand(4, 5, 3), [(5, 1)]),
    "cat": (lambda a, b: torch.cat([a, b], 1), [(5, 3), (5, 2)]),
    "stack": (lambda a, b: torch.stack([a, b], 1), [(5, 3), (5, 3)]),
    "split": (lambda a: a.split(2, 0)[1], [(5, 3)]),
    "chunk": (lambda a: torch.cat([c * i for i, c in enumerate(a.chunk(3, 1))]), [(5, 6)]),
    "unbind": (lambda a: sum(a.unbind(1)), [(5, 3)]),
    "flip and roll": (lambda a: a.flip(0).roll(1, 1), [(5, 3)]),
    "repeat": (lambda a: a.repeat(2, 1), [(5, 3)]),
    "pad": (lambda a: F.pad(a, (1, 1)), [(5, 3)]),
    "tril": (lambda a: a.tril(), [(5, 3)]),
    "index": (lambda a: a[1:3, 0], [(5, 3)]),
    "index of arrays": (lambda a: a[:, torch.tensor([0, 2])], [(5, 3)]),
    "index of a mask": (lambda a: a[a > 0], [(5, 3)]),
    "gather": (lambda a: a.gather(1, ROWS), [(5, 3)]),
    "indices with a slice between": (lambda a: a[torch.tensor([1, 0]), :, torch.tensor([[2, 0], [1, 1]])], [(2, 5, 3)]),
    "indices behind": (lambda a: a[..., torch.tensor([2, 0, 0])], [(2, 5, 3)]),
    "index_select": (lambda a: a.index_select(0, torch.tensor([4, 0, 0])), [(5, 3)]),
    "index_select of another": (lambda a: a.index_select(1, torch.tensor([2, 0, 0, 1])), [(5, 3)]),
    "scatter": (lambda a, b: a.scatter(1, ROWS, b), [(5, 3), tuple(ROWS.shape)]),
    "scatter of a number": (lambda a: a.scatter(1, ROWS, 2.0), [(5, 3)]),
    "scatter_add": (lambda a, b: a.scatter_add(1, ROWS, b), [(5, 3), tuple(ROWS.shape)]),
    "index_add": (lambda a, b: a.index_add(1, torch.tensor([2, 0]), b), [(5, 3), (5, 2)]),
    "index_copy": (lambda a, b: a.index_copy(1, torch.tensor([2, 0]), b), [(5, 3), (5, 2)]),
    "put": (_set, [(5, 3), (3,)]),
    "written": (_written, [(5, 3), (5, 3)]),
    "softmax": (lambda a: a.softmax(-1), [(5, 3)]),
    "log_softmax": (lambda a: F.log_softmax(a, 0), [(5, 3)]),
    "layer norm": (lambda a, b, c: F.layer_norm(a, (4,), b, c), [(5, 3, 4), (4,), (4,)]),
    "rms norm": (lambda a, b: F.rms_norm(a, (4,), b), [(5, 3, 4), (4,)]),
    "group norm": (lambda a: F.group_norm(a, 2), [(3, 4, 5)]),
    "batch norm": (lambda a: F.batch_norm(a, None, None, training=True), [(4, 3)]),
    "convolution": (lambda a, b: F.conv2d(a, b), [(2, 3, 5, 5), (4, 3, 2, 2)]),
    "convolution of channels": (lambda a, b, c: F.conv2d(a, b, c, padding=1), [(2, 4, 3, 3), (8, 4, 2, 2), (8,)]),
    "transposed convolution": (
        lambda a, b, c: F.conv_transpose2d(a, b, c, stride=2), [(2, 4, 3, 3), (4, 8, 2, 2), (8,)]
    ),
    "convolution in groups": (lambda a, b: F.conv1d(a, b, groups=2), [(2, 4, 5), (6, 2, 3)]),
    "pooling": (lambda a: F.max_pool2d(a, 2), [(2, 3, 4, 4)]),
    "attention": (lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), [(2, 3, 5, 4)] * 3),
    "embedding": (lambda a: F.embedding(WORDS, a), [(5, 4)]),
    "embedding with padding": (lambda a: F.embedding(WORDS, a, padding_idx=2), [(5, 4)]),
    "cross entropy": (lambda a: F.cross_entropy(a, KINDS), [(5, 3)]),
    "cross entropy, weighted": (
        lambda a, b: F.cross_entropy(a, KINDS, (b * b).detach(), reduction="sum"), [(5, 3), (3,)]
    ),
    "cross entropy, smoothed": (lambda a: F.cross_entropy(a, KINDS, label_smoothing=0.1), [(5, 3)]),
    "cross entropy of places": (lambda a: F.cross_entropy(a, WORDS[:, :2], reduction="none"), [(2, 5, 2)]),
    "nll": (lambda a: F.nll_loss(a.log_softmax(1), KINDS), [(5, 3)]),
    "mse": (lambda a, b: F.mse_loss(a, b), [(5, 3), (5, 3)]),
    "bce": (lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()), [(5, 3), (5, 3)]),
    "one element": (lambda a: a * 2, [(1,)]),
    "no element": (lambda a: (a * 2).sum(0), [(0, 3)]),
}  # fmt: skip


def _placed(rng, shape, mesh):
    ways = [Replicate(), *(Shard(d) for d in range(len(shape))), Partial()]
    return [rng.choice(ways) for _ in range(mesh.ndim)]


def _check(function, plain, mesh, places):
    given = [distribute_tensor(p.detach(), mesh, how).requires_grad_() for p, how in zip(plain, places, strict=True)]
    wanted = function(*plain)
    with implicit_replication():
        out = function(*given)
    assert isinstance(out, DTensor) and out.shape == wanted.shape and out.dtype is wanted.dtype
    assert tuple(out._local_tensor.shape) == compute_local_shape(out.shape, mesh, out.placements)
    torch.testing.assert_close(out.full_tensor().detach(), wanted.detach())
    if not wanted.requires_grad:
        assert not out.requires_grad
        return
    g = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(0), dtype=wanted.dtype)
    whole = DTensor.from_local(g, mesh, [Replicate()] * mesh.ndim)
    grads = torch.autograd.grad(out, given, whole, allow_unused=True)
    for tensor, grad, right in zip(given, grads, torch.autograd.grad(wanted, plain, g, allow_unused=True), strict=True):
        if right is not None:
            assert isinstance(grad, DTensor) and grad.shape == tensor.shape
            torch.testing.assert_close(grad.full_tensor(), right)


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--count", type=int, default=5)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", default="")
    options = asked.parse_args()
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    meshes = [dist.init_device_mesh("cpu", (size,))]
    if size == 4:
        meshes.append(dist.init_device_mesh("cpu", (2, 2)))
    checked = 0
    for (name, (function, shapes)), mesh in itertools.product(CASES.items(), meshes):
        if options.only not in name:
            continue
        rng = random.Random(f"{name} {options.seed}")
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) + options.seed)
        plain = [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]
        for _ in range(options.count):
            places = [_placed(rng, shape, mesh) for shape in shapes]
            try:
                _check(function, plain, mesh, places)
            except BaseException as error:
                raise AssertionError(f"{name} on {mesh.shape}, {places}, seed {options.seed}: {error}") from error
            checked += 1
    print(f"{checked} agree, seed {options.seed}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
