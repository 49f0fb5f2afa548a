"""Runs the Array API standard's own suite (github.com/data-apis/array-api-tests) on torchlite itself.

    python -m tests.array_api CHECKOUT [--namespace] [pytest's arguments]

CHECKOUT is a clone of the suite with its submodule. What PyTorch's meaning of a name rules out is in
`array_api_xfails.txt`, by reasons. `--namespace` tests what `x.__array_namespace__()` gives, with its own list.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
_NAMESPACE = "exec('import torchlite; xp = torchlite.ones(1).__array_namespace__()')"


def main(arguments: list[str]) -> int:
    """The suite's exit status; 2 without a checkout."""
    if not arguments or not (Path(arguments[0]) / "array_api_tests").is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    checkout, *rest = arguments
    namespace = "--namespace" in rest
    rest = [a for a in rest if a != "--namespace"]
    xfails = HERE / ("array_api_namespace_xfails.txt" if namespace else "array_api_xfails.txt")
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": _NAMESPACE if namespace else "torchlite",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "array_api_tests", f"--xfails-file={xfails.resolve()}"]
    if not any(a.startswith("--max-examples") for a in rest):
        rest += ["--max-examples", "50"]
    return subprocess.run(
        [*command, "--disable-deadline", "--derandomize", *rest], cwd=checkout, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
