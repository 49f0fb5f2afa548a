"""`Context`: arguments of a workload, and helpers for training steps and synchronisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# A workload is a generator of (row name, timed call); contexts entered around a `yield` (no_grad, say) are active
# during the timing.
Rows = Iterator[tuple[str, Callable[[], Any]]]


class Context:
    """Module under test, device, and scale of sizes."""

    def __init__(self, T: Any, device: str = "cpu", scale: float = 1.0):
        self.T, self.device, self.scale = T, device, scale

    def size(self, n: int, multiple: int = 1) -> int:
        """Return `n` times the scale, rounded to a positive multiple of `multiple`."""
        return max(multiple, int(n * self.scale) // multiple * multiple)

    def normal(self, *shape: int, **kwargs: Any) -> Any:
        return self.T.randn(shape, device=self.device, **kwargs)

    def integers(self, below: int, *shape: int) -> Any:
        return self.T.randint(0, below, shape, device=self.device)

    def wait(self, result: Any) -> None:
        """Wait for the device; libraries that wait for a result get that."""
        if hasattr(self.T, "block_until_ready"):  # JAX
            self.T.block_until_ready(result)
        elif hasattr(self.T, "TinyJit"):
            self.T.Device[self.T.Device.DEFAULT].synchronize()
        kind = self.device.partition(":")[0]
        if kind in ("cuda", "opencl"):
            getattr(self.T, kind).synchronize()

    def step(self, model: Any, inputs: tuple, loss: Callable[[Any], Any], optimizer: Any) -> Callable[[], Any]:
        """Return a function that runs one training step: `loss(model(*inputs))`, backward and the optimizer."""

        def run_training_step() -> None:
            optimizer.zero_grad()
            loss(model(*inputs)).backward()
            optimizer.step()

        return run_training_step
