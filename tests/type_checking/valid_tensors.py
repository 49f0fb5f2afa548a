"""Tensors and functions as a strict user's program has them: the types of results, which the tests also run."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import torchlite as torch
from torchlite import Tensor


def operators() -> None:
    x = torch.ones(2, 3)
    array = np.ones((2, 3), np.float32)
    assert_type(x + 1, Tensor)
    assert_type(1 + x, Tensor)
    assert_type(x - 1.5, Tensor)
    assert_type(2.0 / x, Tensor)
    assert_type(x * array, Tensor)
    assert_type(x @ x.T, Tensor)
    assert_type(x**2, Tensor)
    assert_type(-x, Tensor)
    assert_type(abs(x), Tensor)
    assert_type(x == 1, Tensor)
    assert_type(x != x, Tensor)
    assert_type(x < 2, Tensor)
    assert_type((x > 0) & (x < 2), Tensor)
    assert_type(~(x > 0), Tensor)
    assert_type(x // 2 % 2, Tensor)
    x += 1
    x *= x
    assert_type(x, Tensor)


def what_it_is() -> None:
    x = torch.zeros(2, 3, dtype=torch.float64, device="cpu")
    assert_type(x.shape, torch.Size)
    assert_type(x.shape[0], int)
    assert_type(x.shape[1:], torch.Size)
    assert_type(x.size(), torch.Size)
    assert_type(x.size(-1), int)
    assert_type(x.stride(), tuple[int, ...])
    assert_type(x.dtype, torch.dtype)
    assert_type(x.device, torch.device)
    assert_type(x.device.type, str)
    assert_type(x.requires_grad, bool)
    assert_type(x.grad, Tensor | None)
    assert_type(x.numel(), int)
    assert_type(len(x), int)
    assert_type(x.is_contiguous(), bool)
    assert_type(float(x[0, 0]), float)
    assert_type(bool((x == 0).all()), bool)
    rows, columns = x.shape
    assert_type(rows, int)
    assert_type(columns * 2, int)
    number: float = x.sum().item()
    nested: list[list[float]] = x.tolist()
    array: np.ndarray[Any, Any] = x.numpy()
    assert number == 0 and nested[0] == [0, 0, 0] and array.shape == (2, 3)


def indexing() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert_type(x[0], Tensor)
    assert_type(x[..., -1], Tensor)
    assert_type(x[:, 1:, None], Tensor)
    assert_type(x[x > 3], Tensor)
    assert_type(x[torch.tensor([0, 1])], Tensor)
    assert_type(x[[0, 1], [1, 2]], Tensor)
    assert_type(x[np.array([0])], Tensor)
    x[0] = 1
    x[:, 0] = torch.zeros(4)
    x[x > 20] = 0.5
    for row in x:
        assert_type(row, Tensor)
    first, second = x.unbind(0)
    assert_type(first, Tensor)
    assert second.ndim == 2


def making() -> None:
    shape = (2, 3)
    assert_type(torch.tensor([[1, 2], [3, 4]], dtype=torch.int64), Tensor)
    assert_type(torch.tensor(3.0, requires_grad=True), Tensor)
    assert_type(torch.as_tensor(np.zeros(3)), Tensor)
    assert_type(torch.from_numpy(np.zeros(3)), Tensor)
    assert_type(torch.zeros(shape), Tensor)
    assert_type(torch.ones(shape, dtype=torch.int32), Tensor)
    assert_type(torch.empty(2, 3, device=torch.device("cpu")), Tensor)
    assert_type(torch.full(shape, 1.5), Tensor)
    assert_type(torch.full((2,), True), Tensor)
    assert_type(torch.arange(5), Tensor)
    assert_type(torch.arange(0, 1, 0.25, dtype=torch.float32), Tensor)
    assert_type(torch.linspace(0, 1, 5), Tensor)
    assert_type(torch.eye(3), Tensor)
    assert_type(torch.rand(2, 2, generator=torch.Generator().manual_seed(0)), Tensor)
    assert_type(torch.randn(shape), Tensor)
    assert_type(torch.randint(0, 10, (3,)), Tensor)
    assert_type(torch.randint(10, (3,)), Tensor)
    assert_type(torch.randperm(4), Tensor)
    x = torch.ones(2)
    assert_type(torch.zeros_like(x), Tensor)
    assert_type(x.new_zeros(3), Tensor)
    assert_type(x.new_tensor([1.0]), Tensor)


def reductions() -> None:
    x = torch.rand(2, 3)
    assert_type(x.max(), Tensor)
    assert_type(x.max(0).values, Tensor)
    assert_type(x.max(dim=0).indices, Tensor)
    values, indices = torch.min(x, dim=1, keepdim=True)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    assert_type(torch.max(x, x), Tensor)
    assert_type(torch.median(x, 0).values, Tensor)
    assert_type(torch.sort(x, descending=True).indices, Tensor)
    assert_type(x.topk(2).values, Tensor)
    assert_type(x.kthvalue(1).values, Tensor)
    assert_type(x.mean((0, 1)), Tensor)
    assert_type(x.sum(dim=-1, keepdim=True, dtype=torch.float64), Tensor)
    assert_type(x.std(0, unbiased=False), Tensor)
    assert_type(torch.var_mean(x, 0), tuple[Tensor, Tensor])
    assert_type(x.argmax(1), Tensor)
    assert_type(torch.allclose(x, x), bool)
    assert_type(torch.equal(x, x), bool)
    assert_type(torch.unique(x), Tensor)
    assert_type(torch.unique(x, return_counts=True), tuple[Tensor, Tensor])
    assert_type(x.cumsum(0), Tensor)
    assert_type(torch.where(x > 0.5, x, 0.0), Tensor)
    assert_type(torch.where(x > 0.5), tuple[Tensor, ...])
    assert_type(x.nonzero(), Tensor)
    assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])


def shapes() -> None:
    x = torch.arange(12.0)
    y = x.view(3, 4)
    assert_type(y.reshape(-1), Tensor)
    assert_type(y.reshape((4, 3)), Tensor)
    assert_type(y.permute(1, 0), Tensor)
    assert_type(y.transpose(0, 1), Tensor)
    assert_type(y.T, Tensor)
    assert_type(y.unsqueeze(0).squeeze(0), Tensor)
    assert_type(y.expand(2, 3, 4), Tensor)
    assert_type(y.flatten(start_dim=0), Tensor)
    assert_type(torch.cat([y, y], dim=1), Tensor)
    assert_type(torch.stack((x, x)), Tensor)
    assert_type(y.chunk(2, dim=1), tuple[Tensor, ...])
    assert_type(torch.split(y, [1, 2]), tuple[Tensor, ...])
    assert_type(y.repeat(2, 1), Tensor)
    assert_type(torch.einsum("ij,kj->ik", y, y), Tensor)
    assert_type(torch.meshgrid(x, x, indexing="ij"), tuple[Tensor, ...])
    assert_type(y.gather(1, torch.zeros(3, 1, dtype=torch.long)), Tensor)
    assert_type(y.masked_fill(y > 3, float("-inf")), Tensor)
    assert_type(torch.atleast_2d(x), Tensor)


def conversions() -> None:
    x = torch.ones(2)
    assert_type(x.to("cpu"), Tensor)
    assert_type(x.to(torch.float16), Tensor)
    assert_type(x.to(device="cpu", dtype=torch.int8, non_blocking=True), Tensor)
    assert_type(x.to(x), Tensor)
    assert_type(x.float().double().long().bool(), Tensor)
    assert_type(x.cpu(), Tensor)
    assert_type(x.type(), str)
    assert_type(x.type(torch.int32), Tensor)
    assert_type(x.detach().clone(), Tensor)
    assert_type(x.requires_grad_(), Tensor)
    assert_type(torch.finfo(torch.float32).eps, float)
    assert_type(torch.iinfo(torch.int32).max, int)


def in_place() -> None:
    x = torch.ones(3)
    assert_type(x.add_(1).mul_(2).clamp_(min=0), Tensor)
    assert_type(x.zero_().fill_(3.0), Tensor)
    assert_type(x.normal_(0, 1).uniform_(), Tensor)
    assert_type(x.copy_(torch.zeros(3)), Tensor)
    assert_type(x.index_add_(0, torch.tensor([0]), torch.ones(1)), Tensor)
    torch.add(x, x, alpha=2, out=x)
    parameter = torch.nn.Parameter(x)
    assert_type(parameter.data, Tensor)
    assert_type(parameter * 2, Tensor)


def namespaces() -> None:
    x = torch.eye(3)
    result = torch.linalg.svd(x)
    assert_type(result.S, Tensor)
    q, r = torch.linalg.qr(x)
    assert_type(q @ r, Tensor)
    assert_type(torch.linalg.eigh(x).eigenvalues, Tensor)
    assert_type(torch.linalg.solve(x, x), Tensor)
    assert_type(torch.linalg.norm(x, ord="fro"), Tensor)
    assert_type(torch.linalg.vector_norm(x, 2, dim=(0, 1)), Tensor)
    assert_type(torch.linalg.slogdet(x).logabsdet, Tensor)
    assert_type(torch.fft.fft(x, dim=0, norm="ortho"), Tensor)
    assert_type(torch.fft.rfftfreq(4), Tensor)
    assert_type(torch.special.erfcx(x), Tensor)
    assert_type(torch.special.zeta(x + 1, 2.0), Tensor)
    F = torch.nn.functional
    assert_type(F.relu(x), Tensor)
    assert_type(F.softmax(x, dim=-1), Tensor)
    assert_type(F.cross_entropy(x, torch.tensor([0, 1, 2]), reduction="sum"), Tensor)
    assert_type(F.mse_loss(x, x), Tensor)
    assert_type(F.pad(x, (1, 1), value=0.0), Tensor)
    assert_type(F.one_hot(torch.tensor([0, 1]), num_classes=3), Tensor)
    images = torch.rand(1, 3, 8, 8)
    assert_type(F.conv2d(images, torch.rand(2, 3, 3, 3), padding="same"), Tensor)
    assert_type(F.max_pool2d(images, 2), Tensor)
    assert_type(F.max_pool2d(images, 2, return_indices=True), tuple[Tensor, Tensor])
    assert_type(F.interpolate(images, scale_factor=2.0, mode="bilinear", align_corners=False), Tensor)
    assert_type(F.scaled_dot_product_attention(images, images, images, is_causal=True), Tensor)


def modes() -> None:
    with torch.no_grad():
        assert_type(torch.is_grad_enabled(), bool)
    with torch.device("cpu"), torch.random.fork_rng():
        torch.manual_seed(3)
    torch.set_default_dtype(torch.get_default_dtype())
    torch.set_printoptions(precision=4)
    assert_type(torch.get_num_threads(), int)


if __name__ == "__main__":
    for check in (
        operators,
        what_it_is,
        indexing,
        making,
        reductions,
        shapes,
        conversions,
        in_place,
        namespaces,
        modes,
    ):
        check()
