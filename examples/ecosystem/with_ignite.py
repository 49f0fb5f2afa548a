"""pytorch-ignite: training with handlers, metrics, schedules, averaged weights, checkpoints."""

import os
import tempfile

import torch
from ignite import metrics
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    CosineAnnealingScheduler,
    EarlyStopping,
    EMAHandler,
    ModelCheckpoint,
    PiecewiseLinear,
    TerminateOnNan,
)
from ignite.utils import manual_seed
from show import show

manual_seed(3)
x = torch.randn(128, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion)
evaluator = create_supervised_evaluator(
    model,
    {
        "accuracy": metrics.Accuracy(),
        "loss": metrics.Loss(criterion),
        "confusion": metrics.ConfusionMatrix(3),
        "precision": metrics.Precision(average=False),
        "recall": metrics.Recall(average=True),
        "fbeta": metrics.Fbeta(1),
        "top": metrics.TopKCategoricalAccuracy(2),
        "iou": metrics.mIoU(metrics.ConfusionMatrix(3)),
    },
)
metrics.RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running")
folder = tempfile.mkdtemp()
checkpoint = ModelCheckpoint(folder, "net", n_saved=2, score_function=lambda engine: engine.state.metrics["accuracy"])
kept = {"model": model, "optimizer": optimizer}
evaluator.add_event_handler(Events.COMPLETED, checkpoint, kept)
evaluator.add_event_handler(
    Events.COMPLETED, EarlyStopping(10, lambda engine: engine.state.metrics["accuracy"], trainer)
)
trainer.add_event_handler(Events.ITERATION_STARTED, PiecewiseLinear(optimizer, "lr", [(0, 0.1), (8, 0.2), (24, 0.01)]))
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
averaged = EMAHandler(model, momentum=0.1)
averaged.attach(trainer)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    """Print the metrics of an epoch."""
    evaluator.run(loader)
    for name, value in evaluator.state.metrics.items():
        show(name, value)
    show("running", engine.state.metrics["running"])


show("last", trainer.run(loader, max_epochs=3).output)
show("weights", torch.nn.utils.parameters_to_vector(model.parameters()))
show("averaged", torch.nn.utils.parameters_to_vector(averaged.ema_model.parameters()))
show("files", len(os.listdir(folder)))
checkpoint.load_objects(kept, checkpoint=checkpoint.last_checkpoint)
show("loaded", torch.nn.utils.parameters_to_vector(model.parameters()))
images = metrics.SSIM(1.0)
images.update((torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16)))
show("ssim", images.compute())
rates = CosineAnnealingScheduler.simulate_values(
    num_events=10, param_name="lr", start_value=0.1, end_value=0.01, cycle_size=5
)
show("rates", [rate for _, rate in rates])
