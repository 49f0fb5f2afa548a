"""Proxy program that `mpiexec` starts for a process that already runs (`local_world`)."""

import os
import socket
import sys
import time


def main(start: str, limit: float) -> int:
    """Pass the launcher's socket and variables to the process of this rank, and wait for its end."""
    found = {name: value for name, value in os.environ.items() if name.startswith(("PMI", "HYD", "MPI", "OMPI"))}
    path = f"{start}-{found.get('PMI_RANK') or found['PMIX_RANK']}"
    deadline = time.monotonic() + limit
    connection = socket.socket(socket.AF_UNIX)
    while True:
        try:
            connection.connect(path)
            break
        except OSError:
            if time.monotonic() > deadline:
                return 1
            time.sleep(0.01)
    words = "\0".join(f"{name}={value}" for name, value in found.items()).encode()
    descriptors = [int(found["PMI_FD"])] if "PMI_FD" in found else []
    socket.send_fds(connection, [words], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.recv(1)  # returns when the process has ended
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
