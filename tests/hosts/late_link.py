"""A network of machines whose packets are late or lost: `late_link.py MILLISECONDS PERCENT SEED MACHINE...`.

Each MACHINE is ADDRESS=NAMESPACE. This program holds the other end of the device eth0 (TUN) of each namespace. It
brings a packet to the machine of its address after MILLISECONDS, or loses it, as `tc netem` would.
"""

from __future__ import annotations

import collections
import ctypes
import fcntl
import os
import random
import select
import socket
import struct
import sys
import time

_SET_NAME, _TUN, _NO_HEADER = 0x400454CA, 0x0001, 0x1000  # of linux/if_tun.h
_NETWORK = 0x40000000  # CLONE_NEWNET of linux/sched.h
_LARGEST = 1 << 16


def enter(namespace: int) -> None:
    """Continue in the network namespace of an open file. (`os.setns` came with Python 3.12.)"""
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, _NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


def open_device(namespace: str) -> int:
    """Open the device eth0 of a network namespace."""
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{namespace}") as other:
        enter(other.fileno())
        try:
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(device, _SET_NAME, struct.pack("16sH22x", b"eth0", _TUN | _NO_HEADER))
        finally:
            enter(own.fileno())
    return device


def carry(devices: dict[bytes, int], delay: float, share: float, chance: random.Random) -> None:
    """Bring packets to the devices of their addresses, `delay` seconds late. The `share` of them is lost."""
    waiting: collections.deque[tuple[float, int, bytes]] = collections.deque()
    while True:
        patience = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        ready, _, _ = select.select(list(devices.values()), [], [], patience)
        now = time.monotonic()
        for device in ready:
            for _ in range(64):
                try:
                    packet = os.read(device, _LARGEST)
                except BlockingIOError:
                    break
                target = devices.get(packet[16:20])  # the destination of an IPv4 packet
                if target is not None and chance.random() >= share:
                    waiting.append((now + delay, target, packet))
        while waiting and waiting[0][0] <= now:
            _, target, packet = waiting.popleft()
            os.write(target, packet)


def main() -> None:
    milliseconds, percent, seed, *machines = sys.argv[1:]
    devices = {}
    for machine in machines:
        address, _, namespace = machine.partition("=")
        devices[socket.inet_aton(address)] = open_device(namespace)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    carry(devices, float(milliseconds) / 1e3, float(percent) / 100, random.Random(int(seed)))


if __name__ == "__main__":
    main()
