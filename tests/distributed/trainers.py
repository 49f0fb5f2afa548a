"""Trainers of other packages over torchlite, named torch: `trainers.py KIND FOLDER` prints the losses of a rank.

Variables (RANK, WORLD_SIZE, MASTER_ADDR ...) say which rank it is; without them it is one process.
"""

from __future__ import annotations

import functools
import json
import os
import sys

import torch

BATCH, ROWS = 12, 48  # of all ranks


class Net(torch.nn.Module):
    """A network with the interface that transformers' Trainer wants."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def forward(self, x, labels=None):
        out = self.layers(x)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.randn(ROWS, 6, generator=torch.Generator().manual_seed(1))
        self.y = self.x.sum(1, keepdim=True).sin()

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.y[index]}


def size():
    return int(os.environ.get("WORLD_SIZE", "1"))


def with_accelerate(folder):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = Net()
    loader = torch.utils.data.DataLoader(Rows(), batch_size=BATCH // accelerator.num_processes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = model(**batch)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            losses.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
    return losses


def with_transformers(folder, prepare=lambda trainer: trainer):
    from transformers import Trainer, TrainingArguments

    options = TrainingArguments(
        output_dir=folder, per_device_train_batch_size=BATCH // size(), num_train_epochs=2, use_cpu=True, seed=3,
        report_to="none", lr_scheduler_type="constant", learning_rate=0.01, save_strategy="no", disable_tqdm=True,
        logging_steps=1,
    )  # fmt: skip
    trainer = prepare(Trainer(model=Net(), args=options, train_dataset=Rows()))
    trainer.train()
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


def lightning_parts():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.losses = Net(), []

        def training_step(self, batch, index):
            loss = self.net(**batch)["loss"]
            self.losses.append(self.all_gather(loss.detach()).mean().item())
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.net.parameters(), lr=0.01)

    rows = Rows()
    sampler = torch.utils.data.DistributedSampler(rows, size(), int(os.environ.get("RANK", "0")), shuffle=False)
    return Module(), torch.utils.data.DataLoader(rows, batch_size=BATCH // size(), sampler=sampler)


def with_lightning(folder, prepare=lambda trainer: trainer, **options):
    import lightning
    from lightning.pytorch.plugins.environments import LightningEnvironment

    module, loader = lightning_parts()
    if size() > 1:  # without its environment Lightning begins MPI to look for mpiexec
        options = {"strategy": "ddp", "devices": size(), "plugins": [LightningEnvironment()], **options}
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder, use_distributed_sampler=False, **options,
    )  # fmt: skip
    prepare(trainer).fit(module, loader)
    return module.losses


def with_lightning_fsdp(folder, kind):
    """Lightning's FSDP: two epochs, a checkpoint, and two more in another trainer that loads it.

    The strategy's own class is refused without a GPU; a class derived from it is not.
    """
    import lightning
    from lightning.pytorch.plugins.environments import LightningEnvironment
    from lightning.pytorch.strategies import FSDPStrategy

    class OnTheCPU(FSDPStrategy):
        pass

    variables = dict(os.environ)

    def fitted(epochs, checkpoint):
        os.environ.update(variables)  # a trainer's end removes WORLD_SIZE
        options = {}
        if size() > 1:
            wrapped = OnTheCPU(state_dict_type=kind, auto_wrap_policy={torch.nn.Linear})
            options = {"strategy": wrapped, "devices": size(), "plugins": [LightningEnvironment()]}
        module, loader = lightning_parts()
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=epochs, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=folder, use_distributed_sampler=False, **options,
        )  # fmt: skip
        trainer.fit(module, loader, ckpt_path=checkpoint)
        return trainer, module.losses

    path = os.path.join(os.path.dirname(os.path.abspath(folder)), f"of_{size()}")  # which all ranks see
    trainer, losses = fitted(2, None)
    trainer.save_checkpoint(path)
    return losses + fitted(4, path)[1]


TRAINERS = {"accelerate": with_accelerate, "transformers": with_transformers, "lightning": with_lightning}
for _kind in ("full", "sharded"):
    TRAINERS[f"lightning_{_kind}"] = functools.partial(with_lightning_fsdp, kind=_kind)


def report(losses):
    sys.stdout.write(f"\nlosses {json.dumps(losses)}\n")
    sys.stdout.flush()


def launched():
    """A process of accelerate's debug_launcher."""
    import torch.distributed as dist

    assert dist.get_world_size() == 2
    report(with_accelerate(""))


def main():
    kind, folder = sys.argv[1:]
    if kind == "debug_launcher":
        from accelerate import debug_launcher

        debug_launcher(launched, num_processes=2)
    else:
        report(TRAINERS[kind](folder))


if __name__ == "__main__":
    main()
