"""lightning: fit, validate, checkpoint, resume, predict, Fabric, bfloat16."""

import logging
import tempfile
import warnings

import lightning as L
import torch
from lightning.fabric import Fabric
from show import gradients, show

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("lightning.fabric").setLevel(logging.ERROR)


class Net(L.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))

    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("validated", torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

    def predict_step(self, batch, index):
        return self.layers(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}


def loader():
    torch.manual_seed(5)
    x = torch.randn(32, 4)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)


def trainer(folder, **more):
    return L.Trainer(
        accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=folder, **more,
    )  # fmt: skip


with tempfile.TemporaryDirectory() as folder:
    L.seed_everything(0, verbose=False)
    net = Net()
    fitting = trainer(folder, max_epochs=2)
    fitting.fit(net, loader(), loader())
    show("fit.loss", fitting.callback_metrics["loss"])
    show("fit.validated", fitting.callback_metrics["validated"])
    path = f"{folder}/kept.ckpt"
    fitting.save_checkpoint(path)
    show("loaded", Net.load_from_checkpoint(path).layers[0].weight)
    resumed = trainer(folder, max_epochs=4)
    resumed.fit(Net(), loader(), loader(), ckpt_path=path)
    show("resumed.validated", resumed.callback_metrics["validated"])
    show("predicted", torch.cat(resumed.predict(net, loader())))
    L.seed_everything(0, verbose=False)
    half = trainer(folder, max_epochs=1, precision="bf16-mixed", gradient_clip_val=0.5, accumulate_grad_batches=2)
    net = Net()
    half.fit(net, loader())
    show("bf16.loss", half.callback_metrics["loss"])
    show("bf16.weight", net.layers[0].weight)

fabric = Fabric(accelerator="cpu", devices=1)
L.seed_everything(1, verbose=False)
module = torch.nn.Linear(4, 1)
model, optimizer = fabric.setup(module, torch.optim.SGD(module.parameters(), lr=0.1))
for x, y in fabric.setup_dataloaders(loader()):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    fabric.backward(loss)
    fabric.clip_gradients(model, optimizer, max_norm=1.0)
    optimizer.step()
show("fabric.loss", loss)
show("fabric.gradients", gradients(model))
