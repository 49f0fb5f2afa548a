"""Queries to distributions, transforms and constraints: one-line programs and calls on their values, the same
to PyTorch (tools/record_distributions.py) and here.

In a line `D` is torch.distributions, `t` makes a tensor and `p` a parameter (a tensor that wants a gradient).
"""

from __future__ import annotations

import json
import math
import pathlib
import re
import warnings

ANSWERS = pathlib.Path(__file__).with_name("answers.json")
LINES = pathlib.Path(__file__).with_name("lines.txt")
DIGITS = 6


def lines(kind: str) -> list[str]:
    """The lines below the heading `kind`."""
    found: list[str] = []
    heading = None
    for line in LINES.read_text().splitlines():
        if line.startswith("# "):
            heading = line[2:]
        elif line and heading == kind:
            found.append(line)
    return found


class Asked:
    """The value of a line, and its parameters."""

    def __init__(self, torch, line: str, device="cpu") -> None:
        self.torch, self.parameters = torch, []

        def t(data, dtype=None):
            return torch.tensor(data, dtype=dtype and getattr(torch, dtype), device=device)

        def p(data, dtype=None):
            made = t(data, dtype).requires_grad_()
            self.parameters.append(made)
            return made

        names = {"D": torch.distributions, "C": torch.distributions.constraints, "t": t, "p": p, "torch": torch}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.value = eval(line, names)

    def gradients(self, result):
        """Those of the sum of the result times 1, 2, 3 ... by the parameters."""
        flat = result.reshape(-1)
        weights = self.torch.arange(1, flat.numel() + 1, device=flat.device).to(flat.dtype)
        wanted = [q for q in self.parameters if q.requires_grad]
        if not wanted:
            return []
        found = self.torch.autograd.grad((flat * weights).sum(), wanted, allow_unused=True)
        return [None if g is None else plain(g) for g in found]


def plain(value):
    """A tensor as its shape and numbers, the rest as text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "detach"):
        return [list(value.shape), [_number(float(x)) for x in value.detach().reshape(-1).tolist()]]
    return _alike(str(value))


def _alike(text: str) -> str:
    """A text without what differs between libraries and devices."""
    return re.sub(r",\s+device='\w+:0'", "", text.replace("torchlite", "torch"))


def _number(x: float):
    return float(f"{x:.{DIGITS}g}") if math.isfinite(x) else str(x)


def tried(ask):
    """An answer, or the error's type and first line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(ask())
    except Exception as error:
        text = _alike(str(error))
        return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


# --- distributions --------------------------------------------------------------------------------


def drawn(torch, asked: Asked, device="cpu") -> dict:
    """Return samples drawn after seeds, and the position of the random stream afterwards."""
    d, out = asked.value, {}

    def seeded(ask):
        torch.manual_seed(0)
        return ask()

    out["sample"] = tried(lambda: seeded(d.sample))
    out["sample 3"] = tried(lambda: seeded(lambda: d.sample((3,))))
    out["then"] = tried(lambda: torch.rand(1))
    out["sample many"] = tried(lambda: seeded(lambda: d.sample((40, 3))).to(torch.float64).sum(0))
    out["rsample"] = tried(lambda: seeded(lambda: d.rsample((2,))))
    out["expanded"] = tried(lambda: seeded(d.expand((2, *d.batch_shape)).sample))
    return out


def moved(torch, asked: Asked):
    """The gradient of what is drawn."""
    torch.manual_seed(0)
    return tried(lambda: asked.gradients(asked.value.rsample((3,))))


def told(torch, asked: Asked, values, device="cpu") -> dict:
    """Return the properties of a distribution, and its functions of `values` (shape and numbers)."""
    d, out = asked.value, {}
    shape, numbers = values
    value = torch.tensor([float(v) for v in numbers], device=device).reshape(shape)
    if asked.parameters and asked.parameters[0].dtype == torch.float64:
        value = value.double()
    out["shapes"] = [list(d.batch_shape), list(d.event_shape)]
    out["repr"] = tried(lambda: repr(d))
    out["has"] = [bool(d.has_rsample), bool(d.has_enumerate_support)]
    out["support"] = tried(lambda: repr(d.support))
    for name in ("mean", "mode", "variance", "stddev"):
        out[name] = tried(lambda name=name: getattr(d, name))
    out["log_prob"] = tried(lambda: d.log_prob(value))
    out["log_prob of more"] = tried(lambda: d.expand((2, 3, *d.batch_shape)).log_prob(value))
    out["log_prob moved"] = tried(lambda: asked.gradients(d.log_prob(value)))
    out["cdf"] = tried(lambda: d.cdf(value))
    levels = torch.tensor([0.1, 0.5, 0.85], device=device).to(value.dtype)
    out["icdf"] = tried(lambda: d.icdf(levels.reshape((3,) + (1,) * len(d.batch_shape))))
    out["entropy"] = tried(d.entropy)
    out["entropy moved"] = tried(lambda: asked.gradients(d.entropy()))
    out["perplexity"] = tried(d.perplexity)
    out["enumerate"] = tried(d.enumerate_support)
    out["enumerate short"] = tried(lambda: d.enumerate_support(expand=False))
    out["wrong value"] = tried(lambda: d.log_prob(value - 100.5))
    out["wrong shape"] = tried(lambda: d.log_prob(value.reshape(shape + [1]).expand(shape + [7])))
    return out


# --- transforms and constraints -------------------------------------------------------------------


def of_transform(torch, asked: Asked) -> dict:
    t, x = asked.value
    out = {"repr": _alike(repr(t))}
    for name in ("bijective", "sign", "event_dim", "domain", "codomain"):
        out[name] = tried(lambda name=name: getattr(t, name) if name != "bijective" else bool(t.bijective))
    out["y"] = tried(lambda: t(x))
    out["moved"] = tried(lambda: asked.gradients(t(x)))
    out["back"] = tried(lambda: t.inv(t(x)))
    out["log_det"] = tried(lambda: t.log_abs_det_jacobian(x, t(x)))
    out["log_det back"] = tried(lambda: t.inv.log_abs_det_jacobian(t(x), x))
    out["shapes"] = tried(lambda: [list(t.forward_shape(x.shape)), list(t.inverse_shape(t(x).shape))])
    out["cached"] = tried(lambda: (lambda c, z: c.inv(c(z)) is z)(t.with_cache(1), x))
    out["equal"] = tried(lambda: [t == t.with_cache(1), t != t.inv, t.inv.inv is t])
    return out


def of_constraint(torch, asked: Asked) -> dict:
    c, value = asked.value
    out = {"repr": _alike(repr(c)), "check": tried(lambda: c.check(value).to(torch.int64))}
    for name in ("is_discrete", "event_dim"):
        out[name] = tried(lambda name=name: getattr(c, name))
    for name in ("biject_to", "transform_to"):
        out[name] = tried(lambda name=name: repr(getattr(torch.distributions, name)(c)))
    return out


def divergence(torch, one: str, other: str, device="cpu"):
    p, q = Asked(torch, one, device), Asked(torch, other, device)
    p.parameters += q.parameters
    value = tried(lambda: torch.distributions.kl_divergence(p.value, q.value))
    moved = tried(lambda: p.gradients(torch.distributions.kl_divergence(p.value, q.value)))
    return [value, moved if isinstance(value, list) else None]


def load() -> dict:
    return json.loads(ANSWERS.read_text())
