"""A script for several processes: a process group, a distributed sampler, DistributedDataParallel."""

import os

import torchlite as torch
import torchlite.distributed as dist
import torchlite.nn as nn
from torchlite.nn.parallel import DistributedDataParallel as DDP
from torchlite.utils.data import DataLoader, TensorDataset
from torchlite.utils.data.distributed import DistributedSampler


def setup(rank: int, world_size: int) -> None:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def train(rank: int, world_size: int) -> float:
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    dataset = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, shuffle=True)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.zeros(())
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, op=dist.ReduceOp.SUM)
    mean /= world_size
    if rank == 0:
        print("state", sorted(model.module.state_dict()))
    return mean.item()


def main() -> None:
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    setup(rank, world_size)
    try:
        final = train(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
    print("final", final)
    assert final < 0.5


if __name__ == "__main__":
    main()
