"""Kernels in a forked process: the threads of the parent do not exist there."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, warnings
warnings.simplefilter("ignore")
import torchlite as torch
torch.set_num_threads(2)
x = torch.randn(512, 1024)
image, kernel = torch.randn(4, 8, 64, 64), torch.randn(16, 8, 3, 3)

def work():
    return [x.softmax(1), torch.nn.functional.gelu(x), torch.nn.functional.layer_norm(x, (1024,)),
        torch.nn.functional.conv2d(image, kernel), x.exp()]

expected = work()
child = os.fork()
if child == 0:
    os._exit(0 if all(torch.equal(a, b) for a, b in zip(work(), expected)) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), all(torch.equal(a, b) for a, b in zip(work(), expected)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_threaded_kernels_run_in_a_forked_child_and_again_in_the_parent():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0", "True"]
