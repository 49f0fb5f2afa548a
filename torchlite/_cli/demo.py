"""`python -m torchlite demo`: trains a small convolutional network on scikit-learn's digits, on every device."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import torchlite as torch

from .command_line import CommandError, check_output, parse_positive_int, parse_seed, program_name
from .device_argument import check_device

TARGET = 0.97
EPOCHS = 7  # with fewer, a network that computes right may stay below the target
TRAINING_ROWS = 1437  # of 1797: four fifths


@dataclass
class Result:
    """Result of one device."""

    device: str
    seconds: float = 0.0
    accuracy: float = 0.0
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    images: object = None
    labels: object = None
    predictions: object = None


def load_digits():
    """Return the images (1797, 1, 8, 8) in 0 … 1 and their labels, in a fixed shuffled order."""
    from sklearn.datasets import load_digits as load

    data = load()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    return images[order], torch.tensor(data.target)[order]


def make_network() -> torch.nn.Module:
    """Return two convolutions and two linear layers: 38,000 parameters."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def train(device: str, epochs: int, seed: int, images, labels) -> Result:
    """Train on one device; record the loss of every step and the test accuracy of every epoch."""
    from torchlite.utils._progress_bar import make_progress_bar
    from torchlite.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    result = Result(device)
    test_images, test_labels = images[TRAINING_ROWS:].to(device), labels[TRAINING_ROWS:].to(device)
    loader = DataLoader(TensorDataset(images[:TRAINING_ROWS], labels[:TRAINING_ROWS]), batch_size=64, shuffle=True)
    model = make_network().to(device)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    bar, start = make_progress_bar(epochs * len(loader), desc=device, file=sys.stdout), time.perf_counter()
    for epoch in range(epochs):
        model.train()
        tested = f"{100 * result.accuracy:5.2f}%" if epoch else "  ... "
        for batch, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            schedule.step()
            result.losses.append(loss.item())
            text = f"epoch {epoch + 1}/{epochs}  loss {result.losses[-1]:.3f}  test {tested}"
            bar.set_postfix_str(text, refresh=False)
            bar.update()
        model.eval()
        with torch.no_grad():
            predictions = model(test_images).argmax(1)
        result.accuracy = (predictions == test_labels).float().mean().item()
        result.accuracies.append(result.accuracy)
        bar.set_postfix_str(
            f"epoch {epoch + 1}/{epochs}  loss {sum(result.losses[-len(loader) :]) / len(loader):.3f}  test "
            f"{100 * result.accuracy:5.2f}%"
        )
    bar.close()
    result.seconds = time.perf_counter() - start
    result.images, result.labels, result.predictions = test_images.cpu(), test_labels.cpu(), predictions.cpu()
    return result


def format_results_table(results: list[Result]) -> str:
    """Return a table of device, seconds and accuracy."""
    lines = [f"{'device':<12}{'seconds':>9}{'accuracy':>10}", "-" * 31]
    return "\n".join(lines + [f"{r.device:<12}{r.seconds:>9.1f}{100 * r.accuracy:>9.2f}%" for r in results])


def _plot_training_curves(axes, results: list[Result]) -> None:
    import numpy as np

    loss, accuracy = axes
    for r in results:
        window = min(10, len(r.losses))
        smooth = np.convolve(r.losses, np.ones(window) / window, "valid")
        (line,) = loss.plot(np.arange(window, len(r.losses) + 1), smooth, label=r.device)
        loss.plot(np.arange(1, len(r.losses) + 1), r.losses, color=line.get_color(), alpha=0.25, linewidth=0.8)
        accuracy.plot(
            np.arange(1, len(r.accuracies) + 1),
            100 * np.array(r.accuracies),
            marker="o",
            markersize=4,
            label=f"{r.device}: {100 * r.accuracy:.2f}%",
        )
    loss.set(title="training loss", xlabel="step", yscale="log")
    accuracy.set(title="test accuracy (%)", xlabel="epoch")
    accuracy.axhline(100 * TARGET, color="grey", linestyle="--", linewidth=0.8)
    loss.legend(frameon=False)
    accuracy.legend(frameon=False, loc="lower right")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)


def _plot_prediction_grid(figure, result: Result, rows: int = 4, columns: int = 12) -> None:
    """Draw test images with their predictions; mistakes first, in red."""
    wrong = (result.predictions != result.labels).nonzero().flatten().tolist()  # type: ignore[attr-defined]
    right = (result.predictions == result.labels).nonzero().flatten().tolist()  # type: ignore[attr-defined]
    shown = (wrong + right)[: rows * columns]
    cells = figure.subplots(
        rows,
        columns,
        gridspec_kw={"hspace": 0.45, "wspace": 0.1, "left": 0.03, "right": 0.97, "bottom": 0.03, "top": 0.82},
    )
    for cell in cells.flat:
        cell.axis("off")
    for cell, i in zip(cells.flat, shown, strict=False):
        found, truth = int(result.predictions[i]), int(result.labels[i])  # type: ignore[index]
        cell.imshow(result.images[i, 0].numpy(), cmap="gray_r")  # type: ignore[index]
        cell.set_title(
            str(found) if found == truth else f"{found}, is {truth}",
            fontsize=9,
            color="black" if found == truth else "crimson",
            pad=2,
        )
    total = len(result.labels)  # type: ignore[arg-type]
    figure.suptitle(
        f"predictions on the test images ({result.device}): {len(wrong)} of {total} wrong, shown first", fontsize=11
    )


def save_picture(results: list[Result], path: str) -> None:
    """Save the training curves and a grid of predictions as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout=None)
    FigureCanvasAgg(figure)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.1])  # type: ignore[misc]
    _plot_training_curves(
        top.subplots(1, 2, gridspec_kw={"left": 0.07, "right": 0.97, "bottom": 0.15, "top": 0.9}), results
    )
    _plot_prediction_grid(bottom, results[0])
    figure.savefig(path, dpi=110)


def add_parser(commands: Any) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "demo",
        help="train a small convolutional network on handwritten digits",
        description="Trains a small convolutional network on scikit-learn's handwritten digits on each usable device,\n"
        "prints time and accuracy, and draws training curves and predictions. A device takes some seconds.\n"
        f"The exit status is 1 if a device stays below {TARGET:.0%} in {EPOCHS} epochs or more.\n"
        "Needs scikit-learn and matplotlib.",
        epilog="examples:\n  torchlite demo\n  torchlite demo --device cpu --epochs 3 --output digits.png",
    )
    parser.add_argument("--device", action="append", help="only this device (may be given several times)")
    parser.add_argument(
        "--epochs", type=parse_positive_int, default=EPOCHS, help="passes over the training data (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=parse_seed, default=0, help="seed of initialisation, order and dropout (default: %(default)s)"
    )
    parser.add_argument(
        "--output", metavar="FILE.png", default="torchlite-demo.png", help="the picture (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; return 0, or raise CommandError if a device trained for long enough and missed the accuracy."""
    check_output("--output", options.output, (".png",))
    for name in options.device or ():
        check_device(name, with_data=True)
    for package, installed in (("sklearn", "scikit-learn"), ("matplotlib", "matplotlib")):
        try:
            __import__(package)
        except ImportError:
            raise CommandError(f"the demo needs {installed}: pip install 'torchlite-nd[demo]'")
    from .info import usable_devices

    images, labels = load_digits()
    print(
        f"torchlite {torch.__torchlite_version__}: handwritten digits, {TRAINING_ROWS} to learn from, "
        f"{len(labels) - TRAINING_ROWS} to test on",
        flush=True,
    )
    names = list(dict.fromkeys(options.device or usable_devices()))
    results = [train(name, options.epochs, options.seed, images, labels) for name in names]
    save_picture(results, options.output)
    print(f"\n{format_results_table(results)}\n\ntraining curves and predictions: {options.output}")
    _check_accuracy(results, options.epochs)
    return 0


def _check_accuracy(results: list[Result], epochs: int) -> None:
    below = ", ".join(f"{100 * r.accuracy:.2f}% on {r.device}" for r in results if r.accuracy < TARGET)
    if below and epochs < EPOCHS:
        print(
            f"{below}: fewer than {EPOCHS} epochs may stay below {TARGET:.0%}; run without --epochs to check a device"
        )
    elif below:
        raise CommandError(
            f"{below} after {epochs} epochs, below {TARGET:.0%}; if another --seed gives the same, "
            f"report it with the output of `{program_name()} info`"
        )
