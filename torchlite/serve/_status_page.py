"""The small page at `/`: models, their state and figures."""

from __future__ import annotations

from html import escape
from typing import Any

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>torchlite serve</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ccc; }}
td.number {{ text-align: right; }}
</style>
<h1>torchlite {version}</h1>
<p>The server is {state}. <a href="/metrics">Metrics</a>, <a href="/openapi.json">OpenAPI</a>,
<a href="/v2/models/stats">statistics</a>.</p>
<table>
<tr><th>Model</th><th>Version</th><th>State</th><th>Inputs</th><th>Answers</th><th>Mean ms</th><th>Waiting</th></tr>
{rows}
</table>
</html>
"""


def page(version: str, is_ready: bool, index: list[dict[str, str]], entries: list[Any]) -> str:
    """Return the page of the models of an index and of the loaded versions."""
    known = {(entry.name, entry.version): entry for entry in entries}
    rows = [_row(about, known.get((about["name"], about["version"]))) for about in index]
    return _PAGE.format(version=escape(version), state="ready" if is_ready else "not ready", rows="\n".join(rows))


def _row(about: dict[str, str], entry: Any) -> str:
    inputs = answers = mean = waiting = ""
    if entry is not None:
        specs = getattr(entry.model, "inputs", ())
        inputs = ", ".join(f"{spec.name} {spec.datatype or 'any'} {list(spec.shape or ())}" for spec in specs)
        success = entry.statistics.success
        answers, waiting = str(success.count), str(entry.scheduler.queue_length)
        mean = f"{success.ns / success.count / 1e6:.2f}" if success.count else ""
    state = about["state"] + (f": {about['reason']}" if about["reason"] else "")
    texts = [about["name"], about["version"], state, inputs]
    cells = [f"<td>{escape(text)}</td>" for text in texts]
    cells += [f'<td class="number">{escape(text)}</td>' for text in (answers, mean, waiting)]
    return f"<tr>{''.join(cells)}</tr>"
