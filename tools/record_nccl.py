"""Records NVIDIA's numbers and functions of NCCL.

    python tools/record_nccl.py PATH/nccl.h tests/backends/nccl/nccl_header.json

The header is in the wheel nvidia-nccl-cu12, under nvidia/nccl/include.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ENUMS = {"ncclResult_t": "results", "ncclRedOp_t": "ops", "ncclDataType_t": "types"}
FUNCTIONS = (
    "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclCommDestroy", "ncclCommAbort",
    "ncclCommGetAsyncError", "ncclReduce", "ncclBroadcast", "ncclAllReduce", "ncclReduceScatter", "ncclAllGather",
    "ncclSend", "ncclRecv", "ncclGroupStart", "ncclGroupEnd",
)  # fmt: skip


def recorded(text: str) -> dict:
    """The parts of a header that torchlite_backends.nccl stands on."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    version = [re.search(rf"#define NCCL_{part} (\d+)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    found: dict = {"version": ".".join(part.group(1) for part in version if part)}
    for name, key in ENUMS.items():
        body = re.search(rf"typedef enum \{{([^}}]*)\}} {name};", text)
        assert body, name
        found[key] = {n: int(value) for n, value in re.findall(r"(\w+)\s*=\s*(\d+)\s*(?:,|$)", body.group(1).strip())}
    size = re.search(r"#define NCCL_UNIQUE_ID_BYTES (\d+)", text)
    assert size
    found["id_bytes"] = int(size.group(1))
    found["functions"] = {}
    for name in FUNCTIONS:
        given = re.search(rf"ncclResult_t\s+{name}\(([^)]*)\)", text)
        assert given, name
        found["functions"][name] = [" ".join(word.split()) for word in given.group(1).split(",") if word.strip()]
    return found


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(recorded(Path(sys.argv[1]).read_text()), indent=1) + "\n")
