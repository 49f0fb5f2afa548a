"""`python -m torchlite.distributed.launch`: older form of `torchlite.distributed.run`.

It passes `--local-rank=N` to the program as its first argument, unless called with `--use-env`.
"""

from __future__ import annotations

import sys

from .run import get_args_parser, run_or_say

__all__ = ["main"]


def main(args: list[str] | None = None) -> int:
    """Runs the command line of `torchlite.distributed.launch`, and returns the exit code.

    It is `torchlite-run`, except that the program gets ``--local-rank`` unless ``--use-env`` is given.

    Args:
        args: The arguments. Default: those of the process.
    """
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="the program reads LOCAL_RANK itself")
    parsed = parser.parse_args(args)
    if not parsed.use_env:
        if parsed.no_python:
            parser.error("When using the '--no-python' flag, you must also set the '--use-env' flag.")
        parsed.training_script_args.insert(0, "--local-rank=${local_rank}")
    return run_or_say(parsed)


if __name__ == "__main__":
    sys.exit(main())
