"""The network of digits_cnn.py on several processes, each with its part of every batch (needs scikit-learn and mpi4py).

python -m torchlite.distributed.run --nproc-per-node 2 examples/ddp_digits.py
python examples/ddp_digits.py --spawn 2
"""

import argparse
import os
from typing import Any, cast

from sklearn.datasets import load_digits

import torchlite as torch
import torchlite.distributed as dist
import torchlite.multiprocessing as mp
from torchlite import nn
from torchlite.nn.parallel import DistributedDataParallel
from torchlite.utils.data import DataLoader, DistributedSampler, TensorDataset


def network() -> nn.Module:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 16, 10),
    )  # fmt: skip
    return cast(nn.Module, nn.SyncBatchNorm.convert_sync_batchnorm(model))


def train(epochs: int, batch_size: int) -> float:
    """Train in the process group that there is; the share of all test images that the model gets right."""
    digits = cast(Any, load_digits())
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    torch.manual_seed(0)
    order = torch.randperm(len(images))
    learned, tested = order[:1440], order[1440:]
    data = TensorDataset(images[learned], labels[learned])
    sampler: DistributedSampler[int] = DistributedSampler(data)
    loader = DataLoader(data, batch_size=batch_size // dist.get_world_size(), sampler=sampler)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    accuracy = 0.0
    for epoch in range(epochs):
        sampler.set_epoch(epoch)  # another order, the same on all ranks
        model.train()
        total = torch.zeros(2)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        model.eval()
        with torch.no_grad():
            mine = tested[dist.get_rank() :: dist.get_world_size()]
            right = (model(images[mine]).argmax(1) == labels[mine]).sum()
        dist.all_reduce(right)
        accuracy = right.item() / len(tested)
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}  loss {total[0].item() / total[1].item():.3f}  test accuracy {accuracy:.1%}")
    return accuracy


def work(rank: int, world_size: int, epochs: int, batch_size: int) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    train(epochs, batch_size)
    dist.destroy_process_group()


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--spawn", type=int, default=0, help="start so many processes from here")
    options = parser.parse_args(arguments)
    if options.spawn:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "29500")
        mp.spawn(work, (options.spawn, options.epochs, options.batch_size), nprocs=options.spawn)
        return 0.0
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:  # alone
        dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        return train(options.epochs, options.batch_size)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
