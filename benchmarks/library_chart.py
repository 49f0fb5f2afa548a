"""The bars of README: torchlite beside PyTorch, drawn as SVG from a report of `library_comparison.py`.

usage: python benchmarks/library_comparison.py --json benchmarks/library_comparison.json --from-json \\
           --picture docs/comparison.svg
"""

from __future__ import annotations

import html
from typing import Any

from library_comparison import LARGE, format_cell

BARS = {
    "installed": "Installed, with dependencies",
    "import": "Import",
    "op": "x + y of 4 x 4",
    "training": "Training step, small MLP",
    "gelu": f"gelu, {LARGE[0]} x {LARGE[1]}",
}
WIDTH, LEFT, LONGEST, ROW, BAR, TOP = 720, 220, 400, 46, 16, 40
# Text, and the bars of torchlite and of PyTorch, on a light and on a dark background.
LIGHT, DARK = ("#1f2328", "#1f6feb", "#9aa4af"), ("#e6edf3", "#58a6ff", "#6e7681")


def _style() -> str:
    def colours(text: str, ours: str, theirs: str) -> str:
        return f"text{{fill:{text}}}.a{{fill:{ours}}}.b{{fill:{theirs}}}"

    fonts = "text{font:14px system-ui,-apple-system,sans-serif}.t{font-weight:600}.v{font-size:13px}.n{font-size:12px}"
    return f"{fonts}{colours(*LIGHT)}@media (prefers-color-scheme:dark){{{colours(*DARK)}}}"


def _bar(y: float, share: float, kind: str, label: str) -> str:
    width = max(share * LONGEST, 2)
    return (
        f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>'
        f'<text class="v" x="{LEFT + width + 6:.1f}" y="{y + BAR - 3}">{html.escape(label)}</text>'
    )


def draw(report: dict[str, Any]) -> str:
    """Return the SVG. Each pair of bars has its own scale, on which the longer bar has the full length."""
    rows = {name: report["rows"][name] for name in ("torchlite", "torch")}
    title = "torchlite (NumPy alone) and PyTorch: shorter is better"
    body, y = [], TOP
    for row, label in BARS.items():
        ours, theirs = rows["torchlite"][row], rows["torch"][row]
        body.append(f'<text x="{LEFT - 12}" y="{y + BAR + 5}" text-anchor="end">{html.escape(label)}</text>')
        body.append(_bar(y, ours / max(ours, theirs), "a", format_cell(row, ours)))
        body.append(_bar(y + BAR + 2, theirs / max(ours, theirs), "b", format_cell(row, theirs)))
        y += ROW
    note = f"{report['processor']}, {report['threads']} cores; PyTorch {report['versions']['torch']}; {report['date']}"
    height = y + 12
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"',
        f' role="img"><title>{html.escape(title)}</title><style>{_style()}</style>',
        '<rect class="a" x="0" y="6" width="14" height="14" rx="2"/><text class="t" x="20" y="18">torchlite</text>',
        '<rect class="b" x="100" y="6" width="14" height="14" rx="2"/><text class="t" x="120" y="18">PyTorch</text>',
        f'<text x="{LEFT}" y="18">torchlite with NumPy alone. Shorter is better.</text>',
        *body,
        f'<text class="n" x="{LEFT}" y="{height - 6}">{html.escape(note)}</text>',
        "</svg>\n",
    ])  # fmt: skip
