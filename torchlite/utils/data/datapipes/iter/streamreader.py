"""The content of open files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Pairs of a path and a part of its file's content (functional name: ``read_from_stream``).

    Args:
        datapipe: The pipe of pairs of a path and an open file.
        chunk: The size of a part. Default: the whole file.

    Example:
        >>> import io
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([("a.txt", io.StringIO("text"))], deepcopy=False)
        >>> list(pipe.read_from_stream(chunk=3))
        [('a.txt', 'tex'), ('a.txt', 't')]
    """

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while part := stream.read(self.chunk):
                yield path, part
            stream.close()
