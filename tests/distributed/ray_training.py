"""Ray Train, Data and Tune over torchlite under the name torch: `ray_training.py FOLDER`.

Each trial prints a line of JSON with its losses and those of one process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile

import ray
import ray.train
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ray import tune
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

from tests.distributed import trainers

STEPS, ROWS = 6, 24


def network_and_optimizer(wrap=lambda model: model, lr=0.02):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    model = wrap(model)
    return model, torch.optim.Adam(model.parameters(), lr=lr)


def rows():
    x = torch.randn(ROWS, 6, generator=torch.Generator().manual_seed(1))
    return x, x.sum(1, keepdim=True).sin()


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def losses_of_one_process(lr=0.02):
    model, optimizer = network_and_optimizer(lr=lr)
    return [step(model, optimizer, *rows()).item() for _ in range(STEPS)]


class Shard(torch.utils.data.IterableDataset):
    """The rows of a worker's part of a data set of Ray."""

    def __init__(self, part):
        self.part = part

    def __iter__(self):
        for row in self.part.iter_rows():
            yield torch.as_tensor(row["x"]), torch.as_tensor(row["y"])


def share(how):
    """A worker's half of the rows."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = rows()
    if how == "loader":
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=ROWS // size)
        (batch,) = prepare_data_loader(loader)
        return batch
    if how == "data":
        batches = list(torch.utils.data.DataLoader(Shard(ray.train.get_dataset_shard("train")), batch_size=5))
        return tuple(map(torch.cat, zip(*batches, strict=True)))
    if how == "batches":
        batches = list(ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=5))
        return tuple(torch.cat([batch[name] for batch in batches]) for name in "xy")
    return x[rank::size], y[rank::size]


def train(config):
    """The loop of a worker, with a checkpoint after each step."""
    how = config["how"]
    assert torch.__torchlite_version__ and dist.is_initialized()
    model, optimizer = network_and_optimizer(fully_shard if how == "fsdp" else prepare_model)
    done, before = [], ray.train.get_checkpoint()
    if before is not None:
        with before.as_directory() as folder:
            weights, moments = get_state_dict(model, optimizer)
            state = {"model": weights, "optimizer": moments, "losses": ""}
            dcp.load(state, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        done = json.loads(state["losses"])
    resumed = len(done)
    x, y = share(how)
    assert len(x) == ROWS // dist.get_world_size()
    while len(done) < STEPS:
        if config.get("kill") == len(done) and not resumed and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        mean = step(model, optimizer, x, y)
        dist.all_reduce(mean)
        done.append(mean.item() / dist.get_world_size())
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "losses": json.dumps(done)}
        with tempfile.TemporaryDirectory() as folder:
            places = [folder]
            dist.broadcast_object_list(places)
            dcp.save(state, checkpoint_id=places[0])
            mine = Checkpoint.from_directory(folder) if dist.get_rank() == 0 else None
            ray.train.report({"losses": list(done), "resumed": resumed}, checkpoint=mine)


def fit(name, how, folder, workers=2, tcp=False, **config):
    x, y = rows()
    sets = {"train": ray.data.from_items([{"x": a.numpy(), "y": b.numpy()} for a, b in zip(x, y, strict=True)])}
    result = TorchTrainer(
        train,
        train_loop_config={"how": how, **config},
        torch_config=TorchConfig(init_method="tcp" if tcp else "env", timeout_s=60),
        scaling_config=ScalingConfig(num_workers=workers),
        run_config=RunConfig(name=name, storage_path=folder, failure_config=FailureConfig(max_failures=1)),
        datasets=sets if how in ("data", "batches") else {},
    ).fit()
    return {
        "found": result.metrics["losses"],
        "resumed": result.metrics["resumed"],
        "expected": losses_of_one_process(),
    }


def report(losses):
    """Report losses with a checkpoint, without which Ray keeps no metrics."""
    with tempfile.TemporaryDirectory() as folder:
        mine = Checkpoint.from_directory(folder) if dist.get_rank() == 0 else None
        ray.train.report({"losses": losses}, checkpoint=mine)


def train_by_lightning(config):
    from ray.train.lightning import RayDDPStrategy, RayLightningEnvironment, prepare_trainer

    options = {"strategy": RayDDPStrategy(), "plugins": [RayLightningEnvironment()], "devices": "auto"}
    report(trainers.with_lightning(".", prepare_trainer, **options))


def train_by_transformers(config):
    from ray.train.huggingface.transformers import prepare_trainer

    report(trainers.with_transformers(".", prepare_trainer))


def train_by_accelerate(config):
    report(trainers.with_accelerate("."))


def fit_trainer(name, loop, folder):
    result = TorchTrainer(
        loop, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(name=name, storage_path=folder)
    ).fit()
    return {"found": result.metrics["losses"], "resumed": 0, "expected": trainers.TRAINERS[name](folder)}


def search(config):
    model, optimizer = network_and_optimizer(lr=config["lr"])
    for _ in range(STEPS):
        tune.report({"loss": step(model, optimizer, *rows()).item()})


def tuned(folder):
    rates = [0.001, 0.05, 0.02]
    results = tune.Tuner(
        search,
        param_space={"lr": tune.grid_search(rates)},
        tune_config=tune.TuneConfig(metric="loss", mode="min"),
        run_config=tune.RunConfig(name="tune", storage_path=folder),
    ).fit()
    assert not results.errors
    best = results.get_best_result()
    expected = {rate: losses_of_one_process(rate)[-1] for rate in rates}
    assert best.config["lr"] == min(expected, key=expected.get)
    return {"found": [best.metrics["loss"]], "resumed": 0, "expected": [min(expected.values())]}


def main():
    folder, *wanted = sys.argv[1:]
    trials = {
        "ddp": lambda: fit("ddp", "rows", folder),
        "fsdp over tcp": lambda: fit("fsdp", "fsdp", folder, tcp=True),
        "a loader": lambda: fit("loader", "loader", folder),
        "ray.data in a DataLoader": lambda: fit("data", "data", folder),
        "batches of ray.data": lambda: fit("batches", "batches", folder),
        "ddp, killed": lambda: fit("killed", "rows", folder, kill=3),
        "fsdp, killed": lambda: fit("killed_fsdp", "fsdp", folder, kill=2),
        "accelerate": lambda: fit_trainer("accelerate", train_by_accelerate, folder),
        "lightning": lambda: fit_trainer("lightning", train_by_lightning, folder),
        "transformers": lambda: fit_trainer("transformers", train_by_transformers, folder),
        "tune": lambda: tuned(folder),
    }
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        for name in wanted or trials:
            sys.stdout.write(f"\n{json.dumps({'name': name, **trials[name]()})}\n")
            sys.stdout.flush()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
