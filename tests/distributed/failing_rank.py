"""A program in which a rank fails once: `failing_rank.py HOW WHERE RANK`. It goes on from its last checkpoint."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist


def fail(how):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ValueError("this rank is tired")
    if how == "exit":
        sys.exit(3)
    if how == "hang":
        time.sleep(600)


class Failing(torch.autograd.Function):
    """Fails on its way back."""

    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        fail(ctx.how)
        return grad, None


class Stage(torch.nn.Linear):
    """A part of a model that fails in its third microbatch's forward, or backward."""

    def __init__(self, how, where):
        super().__init__(4, 4)
        self.how, self.where, self.count = how, where, 0

    def forward(self, x):
        self.count += 1
        if self.count == 3 and self.where == "stage's forward":
            fail(self.how)
        out = super().forward(x)
        return Failing.apply(out, self.how) if self.count == 3 and self.where == "stage's backward" else out


def pipeline(how, where, bad):
    """Two steps of three stages."""
    from torchlite.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, size = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(Stage(how, where if rank == bad else ""), rank, size, "cpu")
    schedule = Schedule1F1B(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    for _ in range(2):
        schedule.step(
            *([torch.randn(8, 4)] if rank == 0 else []), target=torch.randn(8, 4) if rank == size - 1 else None
        )
    print("loss came to an end")


def main():
    how, where, bad, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    dist.init_process_group("gloo", timeout=timedelta(seconds=2 if how == "hang" else 60))
    rank, size = dist.get_rank(), dist.get_world_size()
    assert rank == int(os.environ["RANK"]) and size == int(os.environ["WORLD_SIZE"])
    if where.startswith("stage"):
        pipeline(how, where, bad)
        return
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    path = os.path.join(folder, "checkpoint.pt")
    weight, start = torch.ones(4, requires_grad=True), 0
    if os.path.exists(path):
        state = torch.load(path)
        weight, start = state["weight"].requires_grad_(), state["step"]
    for step in range(start, 6):
        failing = first and rank == bad and step == 3
        x = torch.arange(4.0) + rank + step
        if failing and where == "forward":
            fail(how)
        out = weight * x
        loss = ((Failing.apply(out, how) if failing and where == "backward" else out) ** 2).mean()
        loss.backward()
        if failing and where == "collective":
            dist.all_reduce(weight.grad, async_op=True)
            fail(how)
        dist.all_reduce(weight.grad)
        with torch.no_grad():
            weight -= 1e-3 * weight.grad
        weight.grad = None
        if rank == 0:
            torch.save({"weight": weight.detach(), "step": step + 1}, path + ".new")
            os.replace(path + ".new", path)
        dist.barrier()
    total = loss.detach()
    dist.all_reduce(total)
    if rank == 0:
        print(f"loss {total.item():.9f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
