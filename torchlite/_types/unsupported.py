"""PyTorch functions that torchlite does not implement: the names exist, and calls raise NotImplementedError."""

from __future__ import annotations

from typing import Any

# The reasons, by the beginning of the name after "torch."; the first match counts.
_REASONS = {
    "to_mkldnn": "no tensor has the layout of MKL-DNN",
    "to_padded_tensor": "nested tensors are not supported",
    "index": "first-class dimensions (functorch.dim) are not supported",
    "compiler": "compiled programs are not stored",
    "masked": "masked tensors are not supported (torch.masked has the reductions)",
    "nn.functional.scaled": "products of scaled eight-bit numbers are not supported",
    "distributed.pipelining": "a forward beside a backward in one rank needs two streams of a GPU",
    "distributed.launcher": "torchlite-run starts processes",
    "distributed.tensor": "context parallelism is not implemented",
    "distributed": "remote procedure calls are not implemented",
}


class UnsupportedFunction:
    """A function that raises NotImplementedError when it is called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name.rpartition(".")[2]
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        short = self._name.removeprefix("torch.").removeprefix("Tensor.")
        why = next((text for start, text in _REASONS.items() if short.startswith(start)), "it is not implemented")
        raise NotImplementedError(f"torchlite has no {self._name}: {why}")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self

    def __repr__(self) -> str:
        return f"<{self._name}, which torchlite has not>"


def unsupported_function(name: str) -> UnsupportedFunction:
    """A function that raises NotImplementedError with the reason.

    >>> from torchlite._types.unsupported import unsupported_function
    >>> unsupported_function("torch.Tensor.to_mkldnn")()
    Traceback (most recent call last):
        ...
    NotImplementedError: torchlite has no torch.Tensor.to_mkldnn: no tensor has the layout of MKL-DNN
    """
    return UnsupportedFunction(name)
