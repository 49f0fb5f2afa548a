"""The processes of a machine's ranks that run a function or a command from Python."""

from __future__ import annotations

import os
import string
from collections.abc import Sequence
from typing import Any

from ..elastic.multiprocessing import LogsSpecs, PContext, start_processes
from .elastic_agent import RunOptions
from .rank_wrapper import make_environment

_KEPT = ("OMP_NUM_THREADS",)  # variables of the launcher that stay those of its processes


def start_ranks(
    options: RunOptions, places: Sequence[dict[str, int]], folder: str, entrypoint: Any, args: Sequence[Any],
    logs_specs: LogsSpecs, start_method: str, prefix: str | None, filters: tuple[Any, Any],
) -> PContext:  # fmt: skip
    """Start the ranks at the given places, with variables as torchrun's; `folder` gets a folder of each."""
    envs, prefixes = dict[int, dict[str, str]](), dict[int, str]()
    own = {name: os.environ[name] for name in _KEPT if name in os.environ}
    for at in places:
        error_file = os.path.join(folder, str(at["rank"]), "error.json")
        os.makedirs(os.path.dirname(error_file))
        envs[at["local_rank"]] = make_environment(options, at, error_file, own)
        words = {"role_name": options["role"], "rank": at["rank"], "local_rank": at["local_rank"]}
        template = prefix or "[${role_name}${local_rank}]:"
        prefixes[at["local_rank"]] = string.Template(template).safe_substitute(words)
    return start_processes(
        options["role"],
        entrypoint,
        {at["local_rank"]: _arguments_of(args, at["local_rank"]) for at in places},
        envs,
        logs_specs,
        prefixes,
        start_method,
        duplicate_stdout_filters=filters[0],
        duplicate_stderr_filters=filters[1],
    )


def _arguments_of(args: Sequence[Any], local_rank: int) -> tuple[Any, ...]:
    return tuple(arg.replace("${local_rank}", str(local_rank)) if isinstance(arg, str) else arg for arg in args)
