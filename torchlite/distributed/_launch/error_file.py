"""What a process that fails tells its launcher: a file with the error and its traceback."""

from __future__ import annotations

import json
import os
import time
import traceback

ERROR_FILE_VARIABLE = "TORCHELASTIC_ERROR_FILE"


def report(error: BaseException) -> bool:
    """Write the error down; False where no launcher asked for it."""
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
