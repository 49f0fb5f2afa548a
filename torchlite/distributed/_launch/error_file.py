"""Error file by which a failing process reports its exception and traceback to the launcher."""

from __future__ import annotations

import json
import os
import time
import traceback

ERROR_FILE_VARIABLE = "TORCHELASTIC_ERROR_FILE"


def report(error: BaseException) -> bool:
    """Write the error file; return False if no launcher requested one."""
    path = os.environ.get(ERROR_FILE_VARIABLE)
    if not path:
        return False
    if not os.path.exists(path):
        message = {
            "message": {
                "message": f"{type(error).__name__}: {error}",
                "extraInfo": {
                    "py_callstack": "".join(traceback.format_exception(error)),
                    "timestamp": str(int(time.time())),
                },
            }
        }
        with open(path, "w") as file:
            json.dump(message, file)
    return True
