"""What a workload is given, and how it says what is to be timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# A workload makes what it needs, and yields the name of a row and the call that is timed, one after the other; what it
# entered around a `yield` (no_grad, say) holds meanwhile.
Rows = Iterator[tuple[str, Callable[[], Any]]]


class Context:
    """The module under test, the device and the scale of sizes."""

    def __init__(self, T: Any, device: str = "cpu", scale: float = 1.0):
        self.T, self.device, self.scale = T, device, scale

    def size(self, n: int, multiple: int = 1) -> int:
        """`n` at the scale that was asked for: a multiple of `multiple`, and not below it."""
        return max(multiple, int(n * self.scale) // multiple * multiple)

    def normal(self, *shape: int, **kwargs: Any) -> Any:
        return self.T.randn(*shape, device=self.device, **kwargs)

    def integers(self, below: int, *shape: int) -> Any:
        return self.T.randint(0, below, shape, device=self.device)

    def wait(self, result: Any) -> None:
        """Return when the device has done what it was given; libraries that wait for a result are given that."""
        if hasattr(self.T, "block_until_ready"):  # JAX
            self.T.block_until_ready(result)
        elif hasattr(self.T, "TinyJit"):
            self.T.Device[self.T.Device.DEFAULT].synchronize()
        kind = self.device.partition(":")[0]
        if kind in ("cuda", "opencl"):
            getattr(self.T, kind).synchronize()

    def step(self, model: Any, inputs: tuple, loss: Callable[[Any], Any], optimizer: Any) -> Callable[[], Any]:
        """One training step: `loss(model(*inputs))`, backward and the optimizer."""

        def call() -> None:
            optimizer.zero_grad()
            loss(model(*inputs)).backward()
            optimizer.step()

        return call
