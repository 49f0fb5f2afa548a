"""Serves models over HTTP and gRPC: the Open Inference Protocol v2 and TorchServe's API.

`torchlite serve model.onnx` is the usual way in; `docs/howto/serve.md` shows it. The extra `serve` has the packages
that this needs: `pip install 'torchlite-nd[serve]'`.

    from torchlite.serve import Settings, create_app

    app = create_app(Settings(models=("net.onnx",)))     # an ASGI application, for any server of ASGI
"""

from __future__ import annotations

from typing import Any

from ._settings import Settings

__all__ = ["Settings", "create_app"]


def create_app(settings: Settings) -> Any:
    """Makes the ASGI application of a server. It loads its models when the server starts.

    Args:
        settings: The options; `models` names the files and folders.

    Returns:
        The application. Its gRPC side is started by the command `torchlite serve` alone.

    Raises:
        ImportError: A package of the extra `serve` is missing.

    Example:
        >>> from torchlite.serve import Settings, create_app
        >>> app = create_app(Settings(models=("net.onnx",)))  # doctest: +SKIP
    """
    from ._app import make_app

    return make_app(settings)
