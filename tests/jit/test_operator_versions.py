"""Programs of older versions: operators that meant something else then."""

import io

import pytest

import torchlite as torch

from ..hostile.torchscript_archives import program

_HEAD = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"


def run(body, version):
    text = f"{_HEAD}  def forward(self: __torch__.M, i: Tensor) -> Tensor:\n    return {body}\n"
    return torch.jit.load(io.BytesIO(program(text, version=version)))(torch.tensor([3, -7]))


@pytest.mark.parametrize(
    ("body", "before", "old", "now"),
    [
        ("torch.div(i, 2)", 3, [1, -3], [1.5, -3.5]),
        ("torch.div(i, torch.mul(i, 2))", 3, [0, 0], [0.5, 0.5]),
        ("torch.full([2], 3)", 4, torch.float32, torch.int64),
        ("torch.linspace(0, 1, None)", 7, 100, RuntimeError),
        ("torch.logspace(0, 1, None, 2.)", 8, 100, RuntimeError),
        ("torch.full([2], 3, out=torch.zeros([2], dtype=4))", 3, [3, 3], [3, 3]),
    ],
)
def test_old_operator_versions_retain_their_meaning(body, before, old, now):
    for version, wanted in ((before, old), (10, now)):
        if wanted is RuntimeError:
            with pytest.raises(RuntimeError):
                run(body, version)
            continue
        out = run(body, version)
        found = out.dtype if isinstance(wanted, torch.dtype) else len(out) if isinstance(wanted, int) else out.tolist()
        assert found == wanted
