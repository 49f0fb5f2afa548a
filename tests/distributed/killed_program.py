"""A program that is killed or stopped in the middle, or writes what its launcher may misread: `killed_program.py
HOW`.
"""

from __future__ import annotations

import os
import signal
import sys
import time

FAKES = ["\x1etorchlite-run not json", "\x1etorchlite-run [1]", '\x1etorchlite-run {"code": 1}', "\x1etorchlite-run"]


def parent(process):
    with open(f"/proc/{process}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def main():
    how, rank = sys.argv[1], os.environ["RANK"]
    if how == "pids":
        watcher = os.getppid()
        proxy = parent(watcher)
        sys.stdout.write(f"pids {os.getpid()} {watcher} {proxy} {parent(proxy)}\n")
        sys.stdout.flush()
    elif rank == "1":
        if how == "real-time":
            os.kill(os.getpid(), signal.SIGRTMIN + 6)
        if how == "watcher":
            time.sleep(1)  # until the launcher knows it
            os.kill(os.getppid(), signal.SIGKILL)
        if how == "fakes":
            sys.stderr.write("".join(f"{line}\n" for line in FAKES))
            sys.stderr.write("".join(f"line {i} of many\n" for i in range(20000)))
            sys.stderr.flush()
            sys.exit(5)
    elif rank == "2" and how == "watcher":
        return
    time.sleep(90)


if __name__ == "__main__":
    main()
