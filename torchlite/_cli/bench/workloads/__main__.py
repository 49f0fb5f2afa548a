"""Entry point of `python PATH/workloads MODULE`: runs the package by its path, under any interpreter."""

import importlib
import importlib.util
import os
import sys

if __name__ == "__main__":
    folder = os.path.dirname(os.path.abspath(__file__))
    # The folder itself is first in the path, but its modules must be imported through the package.
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != folder]
    name = "torchlite_bench_workloads"
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None and spec.loader is not None
    sys.modules[name] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    sys.exit(importlib.import_module(name + ".worker").main())
