"""Decoded files, by their extensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import validate_pathname_binary_tuple
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """Pairs of a path and its decoded file (functional name: ``routed_decode``).

    Args:
        datapipe: The pipe of pairs of a path and an open file.
        handlers: Functions of an extension and bytes, which return ``None`` for other extensions. Default: text,
            numbers, JSON, pickles, tensors and images.
        key_fn: Function of a path that returns the extension. Default: `extension_extract_fn`.

    Example:
        >>> import io
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([("a.json", io.BytesIO(b"[1, 2]"))], deepcopy=False)
        >>> list(pipe.routed_decode())
        [('a.json', [1, 2])]
    """

    def __init__(
        self, datapipe: Iterable[Any], *handlers: Any, key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)

    def add_handler(self, *handler: Any) -> None:
        """Adds handlers behind the others.

        Args:
            handler: The handlers.
        """
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            validate_pathname_binary_tuple(item)
            yield item[0], self.decoder(item)[item[0]]

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
