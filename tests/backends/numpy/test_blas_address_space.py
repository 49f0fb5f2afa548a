"""Products under a limit of the address space: an error where OpenBLAS would end the process."""

import subprocess
import sys

import pytest

pytest.importorskip("resource")

PROGRAM = """
import resource, sys, warnings
warnings.simplefilter("ignore")
import torchlite as torch
x = torch.rand(int(sys.argv[2]), int(sys.argv[2]))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print(float((x @ x).sum()) > 0)
except RuntimeError as error:
    print(error)
print(float((torch.ones(3, 3) @ torch.ones(3, 3)).sum()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("size", [100, 300, 2000])
@pytest.mark.parametrize("room", [16, 24, 48, 64, 1000])
def test_a_product_without_room_is_an_error(room, size):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(room), str(size)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-500:]
    first, second = done.stdout.splitlines()
    assert second == "27.0"
    if room == 1000:
        assert first == "True"
    else:
        assert first == "True" or "can't allocate memory" in first or first == "can't start new thread"
