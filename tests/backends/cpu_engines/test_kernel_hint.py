"""The warning that compiled kernels would be faster."""

import os
import subprocess
import sys

import pytest


def _run(tmp_path, program, *options, **variables):
    environment = {k: v for k, v in os.environ.items() if k not in ("TORCHLITE_CPU_KERNELS", "TORCHLITE_KERNEL_HINT")}
    environment |= {"TORCHLITE_CACHE_DIR": str(tmp_path), **variables}
    code = f"import sys; sys.modules['torchlite_kernels'] = None\nimport torchlite as torch\n{program}"
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_first_slow_op_says_once_what_would_be_faster(tmp_path):
    said = _run(
        tmp_path, "x = torch.ones(1 << 20)\nx + x\ntorch.nn.functional.gelu(x)\ntorch.erf(x)\ntorch.softmax(x, 0)"
    )
    (line,) = [line for line in said.splitlines() if "Warning" in line]
    assert line.startswith("<string>:5: SlowKernelWarning: gelu of a large tensor runs on NumPy's kernels")
    assert "torchlite-nd-kernels" in line and "python -m torchlite build-kernels" in line


def test_a_large_convolution_is_slow_without_onednn(tmp_path):
    program = "y = torch.nn.functional.conv2d(torch.ones(2, 64, {0}, {0}), torch.ones(64, 64, {1}, {1}))"
    said = _run(tmp_path, program.format(56, 3), TORCHLITE_ONEDNN="0")
    assert "SlowKernelWarning: convolution of a large tensor" in said
    assert _run(tmp_path, program.format(24, 3), TORCHLITE_ONEDNN="0") == ""  # small
    assert _run(tmp_path, program.format(56, 1), TORCHLITE_ONEDNN="0") == ""  # a product


@pytest.mark.parametrize(
    ("program", "variables"),
    [
        ("torch.nn.functional.gelu(torch.ones(1 << 19)); torch.ones(1 << 20).add(1).relu()", {}),
        ("torch.nn.functional.gelu(torch.ones(1 << 20))", {"TORCHLITE_KERNEL_HINT": "0"}),
        ("torch.nn.functional.gelu(torch.ones(1 << 20))", {"TORCHLITE_CPU_KERNELS": "numpy"}),
        (
            "import warnings; warnings.filterwarnings('ignore', category=torch.backends.cpu.SlowKernelWarning)\n"
            "torch.nn.functional.gelu(torch.ones(1 << 20))",
            {},
        ),
    ],
    ids=["no slow op", "variable", "NumPy was named", "filter"],
)
def test_nothing_is_said(tmp_path, program, variables):
    assert _run(tmp_path, program, **variables) == ""


def test_a_filter_that_makes_errors_of_warnings_does_not_break_the_op(tmp_path):
    assert _run(tmp_path, "assert torch.erf(torch.ones(1 << 20))[0] > 0.8", "-W", "error") == ""
