"""Random programs of views, `as_strided`, writes in place and backward, against a model that shares no code with them.

The model keeps each storage as a list of cells. A cell has a value and its derivatives by all inputs; a tensor is an
array of the numbers of its cells. So a view is an index, a write changes cells, and what backward has to find is read
off the cells: no strides, no graph. Where memory overlaps the model says whether PyTorch raises.

    python -m tests.programs.random_views --count 20000 [--device cpu] [--first SEED]

runs many and prints the seeds of those that differ.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings

import numpy as np

import torchlite as torch

MARGIN = 64  # guard elements before and after each storage
POISON = 0xA5


class Difference(AssertionError):
    """The tensors and the model disagree."""


class Cells:
    """A storage: each cell's value and its derivatives by the inputs."""

    def __init__(self, values: np.ndarray, slopes: np.ndarray):
        self.values, self.slopes = values.copy(), slopes.copy()


class Seen:
    """A tensor of the program and what the model knows of it: its cells' numbers, in its shape."""

    def __init__(self, tensor, cells: Cells, at: np.ndarray, writable: bool = True):
        self.tensor, self.cells, self.at, self.writable = tensor, cells, at, writable

    @property
    def values(self) -> np.ndarray:
        return self.cells.values[self.at]

    @property
    def slopes(self) -> np.ndarray:
        return self.cells.slopes[self.at]

    def strides(self) -> list[int | None]:
        """Steps between neighbours; None where there are none."""
        if 0 in self.at.shape:
            return [None] * self.at.ndim
        first = (0,) * self.at.ndim
        steps = []
        for d, n in enumerate(self.at.shape):
            second = tuple(int(e == d) for e in range(self.at.ndim))
            steps.append(int(self.at[second] - self.at[first]) if n > 1 else None)
        return steps

    def repeats(self) -> bool:
        """Whether strides of 0 say that elements share cells."""
        return self.at.size > 0 and 0 in self.strides()

    def shares(self) -> bool:
        """Whether elements share cells."""
        return len(np.unique(self.at)) < self.at.size

    def block(self) -> range | None:
        """The cells from the first to the last, if they are a block in which each is one element."""
        cells = np.sort(self.at.reshape(-1))
        full = not self.at.size or (np.diff(cells) == 1).all()
        return range(int(cells[0]), int(cells[-1]) + 1) if self.at.size and full else None


def lies_evenly(at: np.ndarray) -> bool:
    """Whether cells' numbers grow by one step along each dimension."""
    if not at.size:
        return True
    guess = np.full(at.shape, at.reshape(-1)[0])
    for d, n in enumerate(at.shape):
        if n > 1:
            step = np.take(at, 1, d).reshape(-1)[0] - np.take(at, 0, d).reshape(-1)[0]
            shape = [1] * at.ndim
            shape[d] = n
            guess = guess + (np.arange(n) * step).reshape(shape)
    return bool((guess == at).all())


class Program:
    """One random program, run while it is generated."""

    def __init__(self, seed: int, device: str = "cpu"):
        self.draw = random.Random(seed)
        self.device, self.log = device, []
        self.buffers: list[tuple[np.ndarray, int]] = []
        self.recorded = self.draw.random() < 0.75  # else no gradients, but set_ and resize_
        self.inputs, self.live = [], []
        shapes = [self.shape() for _ in range(self.draw.randint(1, 2))]
        self.width = sum(int(np.prod(s)) for s in shapes)
        start = 0
        for shape in shapes:
            n = int(np.prod(shape))
            values = self.numbers(n)
            slopes = np.zeros((n, self.width))
            slopes[np.arange(n), start + np.arange(n)] = 1.0
            start += n
            leaf = torch.tensor(values.reshape(shape), device=device, requires_grad=self.recorded)
            self.inputs.append(leaf)
            self.add(self.placed(leaf, shape), values.reshape(shape), slopes.reshape(*shape, self.width))

    # -- numbers --

    def shape(self) -> tuple[int, ...]:
        return tuple(self.draw.randint(1, 4) for _ in range(self.draw.randint(1, 3)))

    def numbers(self, *shape: int) -> np.ndarray:
        return np.array([self.draw.randint(-8, 8) / 4 for _ in range(int(np.prod(shape)))]).reshape(shape)

    def placed(self, source, shape):
        """A copy of a tensor in memory that lies between poisoned margins, where memory is the host's."""
        if self.device != "cpu":
            return source.clone()
        n = int(np.prod(shape))
        buffer = np.frombuffer(bytearray([POISON]) * ((n + 2 * MARGIN) * 8), np.float64)
        self.buffers.append((buffer, n))
        return torch.from_numpy(buffer[MARGIN : MARGIN + n]).view(shape).copy_(source)

    # -- what is live --

    def add(self, tensor, values: np.ndarray, slopes: np.ndarray) -> Seen:
        """Add a tensor with new memory and the given strides."""
        if tensor.shape != values.shape:
            raise Difference(f"shape {tuple(tensor.shape)}, should be {values.shape}")
        order = sorted(range(values.ndim), key=lambda d: -tensor.stride(d))
        at = np.empty(values.shape, np.int64)
        at.transpose(order)[...] = np.arange(values.size).reshape([values.shape[d] for d in order])
        back = np.argsort(at.reshape(-1))
        cells = Cells(values.reshape(-1)[back], slopes.reshape(values.size, self.width)[back])
        return self.keep(Seen(tensor, cells, at))

    def view(self, of: Seen, tensor, at: np.ndarray, writable: bool = True) -> Seen:
        return self.keep(Seen(tensor, of.cells, at, of.writable and writable))

    def keep(self, seen: Seen) -> Seen:
        self.check_place(seen)
        self.live.append(seen)
        if len(self.live) > 8:
            self.live.pop(self.draw.randrange(len(self.live)))
        return seen

    def check_place(self, seen: Seen) -> None:
        tensor, at = seen.tensor, seen.at
        if tuple(tensor.shape) != at.shape:
            raise Difference(f"shape {tuple(tensor.shape)}, should be {at.shape}")
        if at.size:
            have = [s if n > 1 else None for s, n in zip(tensor.stride(), at.shape, strict=True)]
            if have != seen.strides() or tensor.storage_offset() != int(at.reshape(-1)[0]):
                raise Difference(f"strides {tensor.stride()} at {tensor.storage_offset()}, should be {seen.strides()}")
        if tensor.untyped_storage().nbytes() != len(seen.cells.values) * 8:
            raise Difference(f"a storage of {tensor.untyped_storage().nbytes()} bytes, {len(seen.cells.values)} cells")

    def pick(self) -> Seen:
        return self.draw.choice(self.live)

    # -- steps --

    def run(self) -> None:
        for _ in range(self.draw.randint(4, 14)):
            kinds = [self.step_view] * 5 + [self.step_write] * 5 + [self.step_new] * 2 + [self.step_strided] * 2
            if not self.recorded:
                kinds += [self.step_set, self.step_resize]
            self.draw.choice(kinds)()
        self.finish()

    def step_view(self) -> None:
        x = self.pick()
        t, at, n = x.tensor, x.at, x.at.ndim
        name = self.draw.choice(
            ("slice", "select", "transpose", "permute", "expand", "unsqueeze", "squeeze", "flatten", "view", "diagonal",
             "unfold", "narrow", "unbind", "split", "alias", "detach", "t", "movedim", "reshape"),
        )  # fmt: skip
        self.log.append(name)
        if name == "slice" and n:
            index = []
            for m in at.shape:
                a, step = self.draw.randint(0, m), self.draw.randint(1, 2)
                index.append(slice(a, self.draw.randint(a, m), step))
            index = tuple(index)
            if 0 not in at[index].shape:
                self.view(x, t[index], at[index])
        elif name == "select" and n:
            d = self.draw.randrange(n)
            i = self.draw.randint(-at.shape[d], at.shape[d] - 1)
            self.view(x, t.select(d, i), np.take(at, i, d))
        elif name == "transpose" and n:
            a, b = self.draw.randrange(n), self.draw.randrange(n)
            self.view(x, t.transpose(a, b - n), at.swapaxes(a, b))
        elif name == "permute":
            order = self.draw.sample(range(n), n)
            self.view(x, t.permute(order), at.transpose(order))
        elif name == "movedim" and n:
            a, b = self.draw.randrange(n), self.draw.randrange(n)
            self.view(x, t.movedim(a, b), np.moveaxis(at, a, b))
        elif name == "t" and n <= 2:
            self.view(x, t.t(), at.T)
        elif name == "expand" and n < 4:
            size = [self.draw.randint(1, 3) if m == 1 else m for m in at.shape]
            lead = [self.draw.randint(1, 3)] * self.draw.randint(0, 1)
            shown = [-1 if m == at.shape[d] and self.draw.random() < 0.3 else m for d, m in enumerate(size)]
            self.view(x, t.expand((*lead, *shown)), np.broadcast_to(at, (*lead, *size)))
        elif name == "unsqueeze" and n < 4:
            d = self.draw.randint(0, n)
            self.view(x, t.unsqueeze(d), np.expand_dims(at, d))
        elif name == "squeeze":
            self.view(x, t.squeeze(), at.squeeze())
        elif name in ("flatten", "view", "reshape"):
            shape = self.shape_of(at.size)
            seen = at.reshape(shape)
            if lies_evenly(seen):
                made = t.view(shape) if name == "view" else t.reshape(shape)
                self.view(x, made, seen)
            elif name == "view":
                self.refused(lambda: t.view(shape), "view size is not compatible")
            else:
                self.add(t.reshape(shape), x.values.reshape(shape), x.slopes.reshape(*shape, self.width))
        elif name == "diagonal" and n >= 2:
            offset = self.draw.randint(-1, 1)
            seen = np.diagonal(at, offset, 0, 1)
            if seen.size:
                self.view(x, t.diagonal(offset, 0, 1), seen)
        elif name == "unfold" and n and n < 4:
            d = self.draw.randrange(n)
            size, step = self.draw.randint(1, at.shape[d]), self.draw.randint(1, 2)
            windows = np.lib.stride_tricks.sliding_window_view(at, size, d)
            self.view(x, t.unfold(d, size, step), np.take(windows, range(0, windows.shape[d], step), d))
        elif name == "narrow" and n:
            d = self.draw.randrange(n)
            start = self.draw.randrange(at.shape[d])
            length = self.draw.randint(1, at.shape[d] - start)
            self.view(x, t.narrow(d, start, length), np.take(at, range(start, start + length), d))
        elif name == "unbind" and n:
            d, i = self.draw.randrange(n), 0
            i = self.draw.randrange(at.shape[d])
            self.view(x, t.unbind(d)[i], np.take(at, i, d), writable=False)
        elif name == "split" and n:
            d = self.draw.randrange(n)
            part = t.split(self.draw.randint(1, at.shape[d]), d)[0]
            self.view(x, part, np.take(at, range(part.shape[d]), d), writable=False)
        elif name == "alias":
            self.view(x, t[...], at)
        elif name == "detach":
            with torch.no_grad():
                seen = t.detach()
            self.check_place(Seen(seen, x.cells, at))
            same(seen, x.values)

    def shape_of(self, size: int) -> tuple[int, ...]:
        shape = []
        while size > 1:
            n = self.draw.choice([m for m in range(2, size + 1) if size % m == 0])
            shape.append(n)
            size //= n
        if self.draw.random() < 0.2:
            shape.insert(self.draw.randint(0, len(shape)), 1)
        return tuple(shape)

    def step_strided(self) -> None:
        x = self.pick()
        held = len(x.cells.values)
        size = tuple(self.draw.randint(1, 3) for _ in range(self.draw.randint(0, 3)))
        stride = tuple(self.draw.randint(0, 5) for _ in size)
        offset = self.draw.choice((None, 0, 1, self.draw.randint(0, held + 2), 2**40))
        first = (int(x.at.reshape(-1)[0]) if x.at.size else 0) if offset is None else offset
        at = np.asarray(first)
        for n, s in zip(size, stride, strict=True):
            at = at[..., None] + np.arange(n) * s
        self.log.append(f"as_strided{size, stride, offset}")
        if at.max() >= held:
            self.refused(lambda: x.tensor.as_strided(size, stride, offset), "out of bounds for storage of size")
        elif not self.recorded or np.isin(at, x.at).all():  # beside its own cells a tensor has no derivative
            self.view(x, x.tensor.as_strided(size, stride, offset), at)

    def step_new(self) -> None:
        x = self.pick()
        name = self.draw.choice(("clone", "mul", "add", "product", "sum", "contiguous", "cat", "index"))
        self.log.append(name)
        t, values, slopes = x.tensor, x.values, x.slopes
        if name == "clone":
            self.add(t.clone(memory_format=torch.contiguous_format), values, slopes)
        elif name == "mul":
            c = self.numbers(*values.shape)
            self.add(t * torch.tensor(c, device=self.device), values * c, slopes * c[..., None])
        elif name == "add":
            y = self.pick()
            try:
                shape = np.broadcast_shapes(values.shape, y.at.shape)
            except ValueError:
                return self.refused(lambda: t + y.tensor, "must match the size of tensor b")
            if int(np.prod(shape)) <= 256 and len(shape) <= 5:
                wide = (*shape, self.width)
                total = np.broadcast_to(self.lead(slopes, len(shape)), wide) + self.lead(y.slopes, len(shape))
                self.add(t + y.tensor, values + y.values, total)
        elif name == "product":
            y = self.pick()
            if y.at.shape == values.shape:
                made = t.clone() * y.tensor.clone()
                self.add(made, values * y.values, slopes * y.values[..., None] + y.slopes * values[..., None])
        elif name == "sum" and values.ndim:
            d = self.draw.randrange(values.ndim)
            self.add(t.sum(d), values.sum(d), slopes.sum(d))
        elif name == "contiguous":
            made = t.contiguous()
            if made is not t:
                self.add(made, values, slopes)
        elif name == "cat" and values.ndim:
            made = torch.cat([t, t], 0)
            if values.size <= 128:
                self.add(made, np.concatenate([values, values]), np.concatenate([slopes, slopes]))
        elif name == "index" and values.ndim:
            index = [self.draw.randrange(values.shape[0]) for _ in range(self.draw.randint(1, 3))]
            self.add(t[torch.tensor(index, device=self.device)], values[index], slopes[index])

    def lead(self, slopes: np.ndarray, ndim: int) -> np.ndarray:
        return slopes.reshape((1,) * (ndim + 1 - slopes.ndim) + slopes.shape)

    def step_write(self) -> None:
        x = self.pick()
        if not x.writable:
            return
        name = self.draw.choice(
            ("add_", "mul_", "fill_", "zero_", "copy_", "add_ of", "mul_ of", "sin_", "item", "items", "no_grad", "out")
        )
        self.log.append(name)
        t, at, c = x.tensor, x.at, self.draw.randint(-4, 4) / 2
        other = self.pick()
        fits = other.at.shape == at.shape
        if x.repeats() and name not in ("fill_", "zero_", "no_grad"):
            if name in ("add_", "mul_", "sin_"):
                return self.refused(
                    lambda: t.sin_() if name == "sin_" else getattr(t, name)(c), "more than one element"
                )
            if fits and name == "copy_" and not (other.cells is x.cells and (other.at == at).all()):
                return self.refused(lambda: t.copy_(other.tensor), "more than one element")
            return None
        if x.shares() and (self.recorded or name not in ("fill_", "zero_")):
            return None  # PyTorch has no derivative of that
        values, slopes = x.values, x.slopes
        if name == "add_":
            t.add_(c)
            self.write(x, values + c, slopes)
        elif name == "mul_":
            t.mul_(c)
            self.write(x, values * c, slopes * c)
        elif name in ("fill_", "zero_"):
            c = 0.0 if name == "zero_" else c
            t.zero_() if name == "zero_" else t.fill_(c)
            self.write(x, np.full(at.shape, c), np.zeros_like(slopes))
        elif name == "sin_":
            t.sin_()
            self.write(x, np.sin(values), slopes * np.cos(values)[..., None])
        elif name == "item" and at.ndim:
            i = self.draw.randrange(at.shape[0])
            t[i] = c
            values[i], slopes[i] = c, 0.0
            self.write(x, values, slopes)
        elif name == "items" and at.ndim:
            index = self.draw.sample(range(at.shape[0]), self.draw.randint(1, at.shape[0]))
            t[torch.tensor(index, device=self.device)] = c
            values[index], slopes[index] = c, 0.0
            self.write(x, values, slopes)
        elif name == "no_grad":
            if not x.repeats():
                with torch.no_grad():
                    t.add_(c)
                self.write(x, values + c, slopes)
        elif name == "out" and not self.recorded:
            torch.add(torch.tensor(values, device=self.device), c, out=t)
            self.write(x, values + c, slopes)
        elif name in ("copy_", "add_ of", "mul_ of") and fits:
            self.write_of(name, x, other)
        return None

    def write_of(self, name: str, x: Seen, other: Seen) -> None:
        def write():
            if name == "copy_":
                x.tensor.copy_(other.tensor)
            elif name == "add_ of":
                x.tensor.add_(other.tensor)
            else:
                x.tensor.mul_(other.tensor.clone())

        values, slopes, read, by = x.values, x.slopes, other.values, other.slopes
        if name != "mul_ of" and x.cells is other.cells and np.isin(x.at, other.at).any():
            ours, theirs = x.block(), other.block()
            if other.shares() or ours is None or theirs is None:
                return None  # PyTorch does not check, and its result is undefined
            if (x.at == other.at).all() and 1 in x.at.shape:
                return None  # steps along one element count for PyTorch
            if not (x.at == other.at).all():
                return self.refused(write, "some elements of the input tensor")
        write()
        if name == "copy_":
            self.write(x, read, by)
        elif name == "add_ of":
            self.write(x, values + read, slopes + by)
        else:
            self.write(x, values * read, slopes * read[..., None] + by * values[..., None])
        return None

    def write(self, x: Seen, values: np.ndarray, slopes: np.ndarray) -> None:
        x.cells.values[x.at] = values
        x.cells.slopes[x.at] = slopes
        # One of several views of a changed base has no history any more, and PyTorch refuses to go on with it.
        self.live = [y for y in self.live if y.writable or y.cells is not x.cells]

    def step_set(self) -> None:
        x, y = self.pick(), self.pick()
        if self.buffers or x.cells is y.cells:
            n = len(y.cells.values)
            offset = self.draw.randrange(n)
            length = self.draw.randint(1, n - offset)
            self.log.append("set_")
            made = torch.empty(0, dtype=torch.float64, device=self.device)
            made.set_(y.tensor.untyped_storage(), offset, (length,))
            self.view(y, made, np.arange(offset, offset + length))

    def step_resize(self) -> None:
        """A clone with views on it grows, and they go along."""
        x = self.pick()
        seen = self.add(x.tensor.clone(memory_format=torch.contiguous_format), x.values, x.slopes)
        part = self.view(seen, seen.tensor.reshape(-1)[-1:], seen.at.reshape(-1)[-1:])
        n, more = len(seen.cells.values), self.draw.randint(-2, 3)
        size = max(n + more, 1)
        self.log.append(f"resize_ from {n} to {size}")
        seen.tensor.resize_(size)
        if size > n:
            seen.tensor[n:] = 0.5
            seen.cells.values = np.concatenate([seen.cells.values, np.full(size - n, 0.5)])
            seen.cells.slopes = np.concatenate([seen.cells.slopes, np.zeros((size - n, self.width))])
        seen.at = np.arange(size)
        self.check_place(seen)
        self.check_place(part)

    def refused(self, call, words: str) -> None:
        try:
            call()
        except RuntimeError as error:
            if words not in str(error):
                raise Difference(f"raised {error!r}, should say '{words}'") from error
        else:
            raise Difference(f"was accepted, should say '{words}'")

    # -- the end --

    def finish(self) -> None:
        for x in self.live:
            self.check_place(x)
            same(x.tensor, x.values)
        if self.recorded:
            self.go_back()
        for buffer, n in self.buffers:
            around = np.concatenate([buffer[:MARGIN], buffer[MARGIN + n :]])
            if (around.view(np.uint8) != POISON).any():
                raise Difference("wrote outside a storage")

    def go_back(self) -> None:
        chosen = self.draw.sample(self.live, self.draw.randint(1, len(self.live)))
        want, total = np.zeros(self.width), None
        for x in chosen:
            weights = self.numbers(*x.at.shape)
            part = (x.tensor * torch.tensor(weights, device=self.device)).sum()
            total = part if total is None else total + part
            want += (weights[..., None] * x.slopes).reshape(-1, self.width).sum(0)
        if not total.requires_grad:
            if want.any():
                raise Difference("the result has no history")
            return
        gradients = torch.autograd.grad(total, self.inputs, allow_unused=True)
        start = 0
        for leaf, gradient in zip(self.inputs, gradients, strict=True):
            n = leaf.numel()
            have = np.zeros(n) if gradient is None else gradient.cpu().numpy().reshape(-1)
            if not np.allclose(have, want[start : start + n], rtol=1e-9, atol=1e-9):
                raise Difference(f"gradient {have.tolist()}, should be {want[start : start + n].tolist()}")
            start += n


def same(tensor, values: np.ndarray) -> None:
    have = tensor.detach().cpu().numpy()
    if not np.allclose(have, values, rtol=1e-9, atol=1e-9):
        raise Difference(f"values {have.tolist()}, should be {values.tolist()}")


def run(seed: int, device: str = "cpu") -> None:
    """One program. Difference where the model and the tensors disagree, with the steps up to there."""
    program = Program(seed, device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program.run()
        except Exception as error:
            raise Difference(f"seed {seed} on {device}, after {', '.join(program.log)}: {error!r}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    failed = 0
    for seed in range(given.first, given.first + given.count):
        try:
            run(seed, given.device)
        except Difference as error:
            failed += 1
            print(error, flush=True)
    print(f"{given.count} programs on {given.device}: {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
