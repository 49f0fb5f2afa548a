"""Record PyTorch's checkpoints and loss curves, in tests/serialization and tests/programs.

    python tools/record_programs.py

It needs torch 2.13.0.
"""

import collections
import json
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PROGRAMS, FILES = ROOT / "tests" / "programs", ROOT / "tests" / "serialization"


def kinds() -> dict:
    """One of everything that a checkpoint holds."""
    weight = torch.arange(12.0).reshape(4, 3)
    marked = torch.tensor([1.0, 2.0])
    marked.note = "kept"
    dtypes = [
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.float16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.complex128,
    ]
    out = collections.OrderedDict(
        weight=weight,
        rows=weight[1:3],
        columns=weight.t(),
        parameter=torch.nn.Parameter(torch.tensor([1.0, -1.0])),
        empty=torch.empty(0, 3),
        number=torch.tensor(2.5),
        marked=marked,
        conjugate=torch.tensor([1 + 2j]).conj(),
        meta=torch.empty(2, 3, device="meta"),
        wants=torch.ones(2, requires_grad=True),
        size=torch.Size([2, 3]),
        device=torch.device("cpu"),
        other_device=torch.device("cuda:1"),
        dtype=torch.float16,
        layout=torch.strided,
        set={1, 2},
        bytes=b"\x00\xff",
        complex=1 + 2j,
        big=2**70,
        nested=[{"a": (1, None, True)}, "text"],
        dtypes={str(d): torch.tensor([0, 1, 3]).to(d) for d in dtypes},
        low={str(d): torch.tensor([0.5, -2.0]).to(d) for d in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)},
    )
    out._metadata = {"version": 1}
    return out


def main() -> None:
    from tests.programs.import_variant import twin

    torch.save(kinds(), FILES / "kinds.pt")
    torch.save(kinds()["weight"], FILES / "legacy.pt", _use_new_zipfile_serialization=False)
    model, _ = twin("seed_program", torch).train(PROGRAMS / "unused.pt", epochs=1)
    (PROGRAMS / "unused.pt").unlink()
    tokens = torch.randint(0, 20, (8, 12), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        torch.save(
            {"state_dict": model.state_dict(), "tokens": tokens, "logits": model(tokens)}, PROGRAMS / "seed_program.pt"
        )
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    module(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
    torch.save({"model": module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, FILES / "training.pt")
    runs = twin("seeded_runs", torch)
    losses = {name: getattr(runs, name)() for name in ("lenet", "mlp", "transformer")}
    losses["seed_program"] = twin("seed_program", torch).train(PROGRAMS / "unused.pt")[1]
    (PROGRAMS / "unused.pt").unlink()
    (PROGRAMS / "losses.json").write_text(json.dumps({"torch": torch.__version__, **losses}, indent=1) + "\n")


if __name__ == "__main__":
    main()
