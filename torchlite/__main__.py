"""`python -m torchlite demo`, `info`, `show`, `bench`, `build-kernels`, `run`, `convert` and `as-torch`."""

from __future__ import annotations

import argparse
import os
import sys

from ._cli import bench, build_kernels, models, show, torch_alias


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m torchlite", description="PyTorch's API over array runtimes that already exist."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo", help="train a small convolutional network on handwritten digits, on every device found"
    )
    demo.add_argument("--device", action="append", help="only this device (may be given several times)")
    demo.add_argument("--epochs", type=int, default=7, help="passes over the training data (default: %(default)s)")
    demo.add_argument(
        "--seed", type=int, default=0, help="seed of initialisation, order and dropout (default: %(default)s)"
    )
    demo.add_argument("--output", default="torchlite-demo.png", help="where to save the picture (default: %(default)s)")
    commands.add_parser("info", help="versions, devices, drivers, BLAS, cache folders, and what is missing")
    models.add_parser(commands)
    show.add_parser(commands)
    bench.add_parser(commands)
    build_kernels.add_parser(commands)
    torch_alias.add_parsers(commands)
    arguments = sys.argv[1:] if arguments is None else arguments
    if models.is_model_command(arguments):
        return models.run_command(*arguments)
    if arguments[:1] == ["run"]:  # what follows is for Python and the program
        return torch_alias.run(arguments[1:])
    options = parser.parse_args(arguments)
    if options.command == "show":
        return show.run(options)
    if options.command == "as-torch":
        return torch_alias.as_torch(options)
    if options.command == "bench":
        return bench.run(options)
    if options.command == "build-kernels":
        return build_kernels.run(options)
    if options.command == "info":
        from ._cli.info import format_report

        print(format_report())
        return 0
    from ._cli.demo import run

    return run(options.device, options.epochs, options.seed, options.output)


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
