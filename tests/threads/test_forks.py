"""Forks beside threads that import for the first time, draw, and compute: children work, and end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# One fork of a fresh process while another thread imports what nothing has imported yet.
_IMPORTS = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-5)
import torchlite as torch
names = sys.argv[2].split(",")
begun = threading.Event()

def load():
    begun.set()
    for name in names:
        getattr(torch, name)

thread = threading.Thread(target=load, daemon=True)
thread.start()
begun.wait()
time.sleep(float(sys.argv[1]))
child = os.fork()
if child == 0:
    for name in names:
        getattr(torch, name)
    torch.manual_seed(0)
    ok = bool((torch.ones(3) + torch.rand(3)).sum() > 3)
    os._exit(0 if ok else 1)
until = time.monotonic() + 20
while time.monotonic() < until:
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.01)
else:
    os.kill(child, 9)
    os.waitpid(child, 0)
    sys.exit("the child hangs")
thread.join(20)
sys.exit(os.waitstatus_to_exitcode(status) or int(thread.is_alive()))
"""

NAMES = (
    "rand,distributions,optim,fft",
    "nn,func",
    "save,load,randn",
    "fx,utils,special",
    "sparse_coo_tensor,Generator",
)


def run(program: str, *arguments: str, timeout: float = 60.0) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:] or done.returncode
    return done.stdout


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("after", [0.0, 0.003, 0.02, 0.06])
def test_a_child_can_finish_an_import_of_another_thread(names, after):
    run(_IMPORTS, str(after), names)


_WAIT = """\
    until = time.monotonic() + 20
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(child, 9)
            sys.exit(f"child {i} hangs")
        time.sleep(0.001)
    if done[1]:
        sys.exit(f"child {i}: {done[1]}")
"""

_DRAWS = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-6)
import torchlite as torch
torch.set_num_threads(2)
torch.rand(3), torch.randn(100_000).exp()
stop = False

def draw(k):
    while not stop:
        torch.rand(5), torch.randn(17), torch.randn(3), torch.poisson(torch.full((9,), 3.0))
        if k == 0:
            torch.randn(100_000).exp()
            torch.Generator()

threads = [threading.Thread(target=draw, args=(k,), daemon=True) for k in range(3)]
[t.start() for t in threads]
children = []
for i in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        state = torch.get_rng_state()
        x = torch.randn(70_000)
        torch.set_rng_state(state)
        same = torch.equal(torch.randn(70_000), x)
        torch.manual_seed(0)
        os._exit(0 if same and torch.rand(2)[0].item() == 0.49625658988952637 else 1)
    children.append(child)
@wait@
stop = True
[t.join(20) for t in threads]
"""


def test_children_draw_while_other_threads_of_the_parent_draw():
    run(_DRAWS.replace("@wait@\n", _WAIT), "50", timeout=120)


_SAME_STREAM = """
import os
import torchlite as torch
torch.manual_seed(7)
torch.randn(3)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, torch.randn(3).numpy().tobytes() + torch.rand(40).numpy().tobytes())
    os._exit(0)
os.wait()
child = os.read(read, 1000)
print(child == torch.randn(3).numpy().tobytes() + torch.rand(40).numpy().tobytes())
"""


def test_a_child_continues_its_parents_random_stream():
    assert run(_SAME_STREAM).strip() == "True"


def test_a_fork_while_the_forking_thread_itself_imports(tmp_path):
    """A module that forks as it is imported: the fork does not wait for the thread's own import."""
    (tmp_path / "torchlite_forking.py").write_text(
        "import os, time\nimport torchlite as torch\nbegun = time.monotonic()\nchild = os.fork()\n"
        "if child == 0:\n    torch.rand(2)\n    os._exit(0)\n"
        "status = os.waitpid(child, 0)[1]\ntook = time.monotonic() - begun\n"
    )
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import torchlite_forking
assert torchlite_forking.status == 0 and torchlite_forking.took < 3, torchlite_forking.took
"""
    run(program)


def test_a_fork_waits_for_a_thread_that_never_ends_its_import_but_not_for_ever(tmp_path):
    (tmp_path / "torchlite_stuck.py").write_text("import time\ntime.sleep(60)\n")
    program = f"""
import os, sys, threading, time
sys.path.insert(0, {str(tmp_path)!r})
import torchlite as torch
from torchlite._settings import fork_locks
fork_locks.TIMEOUT = 0.3
threading.Thread(target=__import__, args=("torchlite_stuck",), daemon=True).start()
time.sleep(0.1)
begun = time.monotonic()
if os.fork() == 0:
    torch.rand(2)
    os._exit(0)
assert 0.25 < time.monotonic() - begun < 3
assert os.wait()[1] == 0
import torchlite.fft
os._exit(0)
"""
    run(program)


_MODES = """
import os, threading
import torchlite as torch
from torchlite._dispatch.dispatch_state import GLOBALS
inside, done = threading.Event(), threading.Event()

def work():
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        inside.set()
        done.wait(30)

thread = threading.Thread(target=work)
thread.start()
inside.wait(30)
with torch.autocast("cpu", torch.bfloat16):
    own = GLOBALS["INTERCEPTORS"] - 1
    child = os.fork()
    if child == 0:
        os._exit(0 if GLOBALS["INTERCEPTORS"] == own == 1 else 1)
done.set()
thread.join()
print(os.waitpid(child, 0)[1], GLOBALS["INTERCEPTORS"])
"""


def test_a_child_counts_only_the_modes_of_its_thread():
    assert run(_MODES).split() == ["0", "0"]


_CONVOLUTIONS = """
import os, sys, threading, time
import torchlite as torch
import torchlite.nn.functional as F

sys.setswitchinterval(1e-6)
weight = torch.ones(2, 2, 3, 3)

def convolve(k):
    i = 0
    while True:
        i += 1
        F.conv2d(torch.ones(1, 2, 5 + (7 * i + k) % 61, 5 + (3 * i + 11 * k) % 67), weight, padding=1)

for k in range(4):
    threading.Thread(target=convolve, args=(k,), daemon=True).start()
for i in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        for j in range(4):
            F.conv2d(torch.ones(1, 2, 70 + (i + j) % 40, 71 + i % 30 + j), weight, padding=1)
        os._exit(0)
@wait@
os._exit(0)
"""


def test_children_convolve_while_other_threads_of_the_parent_do():
    """First uses of a shape make properties of its plan, and set how many threads BLAS has."""
    run(_CONVOLUTIONS.replace("@wait@\n", _WAIT), "100", timeout=120)
