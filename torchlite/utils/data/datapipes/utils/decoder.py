"""Decoders of files by the extensions of their names."""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .common import StreamWrapper

__all__ = [
    "Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers", "extension_extract_fn",
    "handle_extension", "imagehandler", "mathandler", "videohandler",
]  # fmt: skip

_TEXT, _NUMBER = (
    frozenset(("txt", "text", "transcript")),
    frozenset(("cls", "cls2", "class", "count", "index", "inx", "id")),
)
_IMAGES = frozenset("jpg jpeg png ppm pgm pbm pnm bmp gif tif tiff webp".split())


# Packages that decode what PyTorch leaves to them, imported when a file of the kind comes.
_PACKAGES = {"audio": "torchaudio", "mat": "scipy.io", "video": "torchvision.io"}


def _package(kind: str) -> Any:
    return importlib.import_module(_PACKAGES[kind])


def basichandlers(extension: str, data: Any) -> Any:
    """Decodes text, numbers, JSON, pickles and tensors; ``None`` for other extensions.

    A pickle and a tensor's file (``pt``) run code that they name: decode files of a trusted source only.

    Args:
        extension: The extension.
        data: The bytes.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import basichandlers
        >>> basichandlers("json", b"[1, 2]")
        [1, 2]
    """
    if extension in _TEXT:
        return data.decode("utf-8")
    if extension in _NUMBER:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        return torch.load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """Returns a handler that calls a function for files of some extensions.

    Args:
        extensions: The extensions, between blanks. ``"seg.png"`` stands for the last two parts of a name.
        f: The function of the bytes.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import handle_extension
        >>> handle_extension("up", lambda data: data.upper())("a.up", "text")
        'TEXT'
    """
    wanted = [extension.split(".") for extension in extensions.lower().split()]

    def decode(extension: str, data: Any) -> Any:
        parts = extension.lower().split(".")
        return f(data) if any(parts[-len(one) :] == one for one in wanted) else None

    return decode


class ImageHandler:
    """A handler of images, which needs Pillow.

    Args:
        imagespec: The form of the result: ``"l"``, ``"rgb"`` or ``"rgba"`` (arrays of floats), with an ``8`` behind it
            (arrays of bytes); after ``"torch"`` a tensor with the channels first, after ``"pil"`` Pillow's image.

    Raises:
        AssertionError: There is no such form.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import ImageHandler
        >>> ImageHandler("torchrgb")("txt", b"no image") is None
        True
    """

    def __init__(self, imagespec: str) -> None:
        kind = next((k for k in ("torch", "pil") if imagespec.startswith(k)), "")
        mode = imagespec.removeprefix(kind) or "rgb"
        self.as_bytes = mode.endswith("8") or kind == "pil"
        self.mode, self.kind, self.imagespec = mode.removesuffix("8"), kind, imagespec
        if self.mode not in ("l", "rgb", "rgba") or kind == "pil" and mode.endswith("8"):
            raise AssertionError(f"unknown image specification: {imagespec}")

    def __call__(self, extension: str, data: Any) -> Any:
        if extension.lower() not in _IMAGES:
            return None
        import numpy as np
        from PIL import Image

        with io.BytesIO(data) as stream:
            image: Any = Image.open(stream)
            image.load()
        image = image.convert(self.mode.upper())
        if self.kind == "pil":
            return image
        values = np.asarray(image)
        values = values if self.as_bytes else (values.astype("f") / 255.0)
        if self.kind == "torch":
            values = values[:, :, None] if values.ndim == 2 else values
            return torch.tensor(np.ascontiguousarray(values.transpose(2, 0, 1)))
        return values


def imagehandler(imagespec: str) -> ImageHandler:
    """Returns a handler of images: `ImageHandler`.

    Args:
        imagespec: The form of the result.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import imagehandler
        >>> imagehandler("pil").mode
        'rgb'
    """
    return ImageHandler(imagespec)


def videohandler(extension: str, data: Any) -> Any:
    """Decodes a video with torchvision; ``None`` for other files.

    Args:
        extension: The extension.
        data: The bytes.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import videohandler
        >>> videohandler("txt", b"no video") is None
        True
    """
    if extension not in "mp4 ogv mjpeg avi mov h264 mpg webm wmv".split():
        return None
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return _package("video").read_video(path)


def audiohandler(extension: str, data: Any) -> Any:
    """Decodes sound with torchaudio; ``None`` for other files.

    Args:
        extension: The extension.
        data: The bytes.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import audiohandler
        >>> audiohandler("txt", b"no sound") is None
        True
    """
    if extension not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return _package("audio").load(path)


class MatHandler:
    """A handler of MATLAB's files, which needs SciPy.

    Args:
        loadmat_kwargs: Arguments of `scipy.io.loadmat`.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import MatHandler
        >>> MatHandler()("txt", b"no matrix") is None
        True
    """

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: Any) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return _package("mat").loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """Returns a handler of MATLAB's files: `MatHandler`.

    Args:
        loadmat_kwargs: Arguments of `scipy.io.loadmat`.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import mathandler
        >>> mathandler(squeeze_me=True).loadmat_kwargs
        {'squeeze_me': True}
    """
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """Returns the extension of a path, without its dot.

    Args:
        pathname: The path.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import extension_extract_fn
        >>> extension_extract_fn("folder/a.seg.png")
        'png'
    """
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Decodes files by the first handler that knows their extension; other files stay bytes.

    Args:
        handler: Functions of an extension and bytes, which return ``None`` for other extensions.
        key_fn: Function of a path that returns the extension. Default: `extension_extract_fn`.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.decoder import Decoder, basichandlers
        >>> Decoder(basichandlers).decode1("txt", b"text")
        'text'
    """

    def __init__(self, *handler: Any, key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        self.handlers, self.key_fn = list(handler), key_fn

    def add_handler(self, *handler: Any) -> None:
        """Adds handlers behind the others.

        Args:
            handler: The handlers.
        """
        self.handlers += handler

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        return isinstance(getattr(data, "file_obj", data), (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """Decodes one file.

        Args:
            key: The extension.
            data: The bytes, or an open file.

        Returns:
            The first handler's result that is not ``None``, else the bytes.
        """
        if not data:
            return data
        if self._is_stream_handle(data):
            stream, data = data, data.read()
            stream.close()
        for handler in self.handlers:
            found = handler(key, data)
            if found is not None:
                return found
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """Decodes the files of an item.

        Args:
            data: Pairs of paths and files, or a dictionary of them.

        Returns:
            A dictionary of the results by path.

        Raises:
            ValueError: A key is no text.
        """
        if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], tuple):
            data = (data,)
        found = {}
        for path, content in data.items() if isinstance(data, dict) else data:
            if not isinstance(path, str):
                raise ValueError(f"{path} is not of string type")
            found[path] = content if path.startswith("__") else self.decode1(self.key_fn(path), content)
            StreamWrapper.close_streams(content)
        return found

    __call__ = decode
