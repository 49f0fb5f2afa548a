"""`torchlite serve MODEL...`: serves models over HTTP and gRPC."""

from __future__ import annotations

import argparse
import gc
import logging
import os
from typing import Any

from torchlite._cli.command_line import CommandError, UsageError, describe_os_error

from ._settings import PREFIX, Settings, kind_of, make_settings, option_fields

_HELP = "serve models over HTTP and gRPC"
_DESCRIPTION = """\
Answers requests to models on the Open Inference Protocol v2 (HTTP and gRPC), on TorchServe's API, and on OpenAI's API
for models of text.

MODEL is a file (.onnx, .pt2, TorchScript, .mar, or weights with --factory), a folder of one model with versions, or a
folder of models. NAME=MODEL gives a name. Each option can also be a variable of the environment, such as
TORCHLITE_SERVE_PORT, or a key of a TOML file (--config).
"""
_EPILOG = """\
examples:
  torchlite serve model.onnx
  torchlite serve models/ --max-batch 16 --delay-ms 2
  torchlite serve weights.safetensors --factory net:make --allow-code
"""


def add_parser(commands: Any) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser("serve", help=_HELP, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a file or a folder; NAME=MODEL gives a name")
    parser.add_argument("--config", metavar="FILE.toml", help="file with options, models and their configuration")
    for one in option_fields():
        flag, about = f"--{one.name.replace('_', '-')}", one.metadata["help"]
        if kind_of(one) is bool:
            parser.add_argument(
                flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=f"{about} ({_word(one)})"
            )
            continue
        shown = f"{about} ({one.default})" if one.default != "" else about
        parser.add_argument(
            flag, type=kind_of(one), default=argparse.SUPPRESS, metavar=kind_of(one).__name__.upper(), help=shown
        )
    parser.set_defaults(run=run)


def _word(one: Any) -> str:
    return "on" if one.default else "off"


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of the command line. UsageError for a wrong value, CommandError for a missing file."""
    flags = {one.name: getattr(options, one.name) for one in option_fields() if hasattr(options, one.name)}
    try:
        config = options.config or os.environ.get(f"{PREFIX}CONFIG")
        settings = make_settings(options.models, flags, config)
        settings.check_workers()
    except ValueError as error:
        raise UsageError(str(error))
    except OSError as error:
        raise CommandError(describe_os_error(error))
    if not settings.models:
        raise UsageError("name a model: a file or a folder")
    return settings


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    from torchlite._cli.device_argument import check_device

    settings = settings_of(options)
    check_device(settings.device, with_data=True)
    # Almost nothing that a start imports and loads dies, and collections take a seventh of its time. The server turns
    # them on when it is ready.
    gc.disable()
    try:
        return _serve(settings)
    finally:
        gc.enable()


def _serve(settings: Settings) -> int:
    """Serve to the end; return the exit status."""
    try:
        from ._server import ServerProcess, StartError
    except ImportError as error:
        raise CommandError(f"serve needs the package {error.name}: pip install 'torchlite-nd[serve]'")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)

    def tell(port: int, grpc_port: int | None) -> None:
        scheme = "https" if settings.tls_cert else "http"
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        also = "" if grpc_port is None else f", gRPC on {host}:{grpc_port}"
        logging.getLogger("torchlite.serve").info("ready: %s://%s:%s%s", scheme, host, port, also)

    try:
        return ServerProcess(settings, tell).run()
    except StartError as error:
        raise CommandError(str(error))
