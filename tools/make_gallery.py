"""Run the scripts of the gallery and write its pages:

    python tools/make_gallery.py             # all scripts
    python tools/make_gallery.py digits vae  # some
    python tools/make_gallery.py --check     # run all; write nothing

A script begins with a docstring: its title, a blank line, and text in Markdown. `# %%` begins a cell, and the comment
lines below it are the cell's text. The page shows each cell's text and code, what the code printed, and the figures of
Matplotlib that it made. It also holds the script's digest, by which tests/test_gallery.py knows that the page
is of this script. The scripts need the extra `gallery`; `tox -e gallery` installs it in an environment without PyTorch.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "docs" / "gallery"
LARGEST_PICTURE = 40_000  # bytes
LONGEST_RUN = 60  # seconds of a processor, child processes included
COLOURS = 128

INDEX = """# Gallery

Each page is a script that was run, with what it printed and drew. The data comes with scikit-learn and with the
packages that a script names. `tools/make_gallery.py` runs the scripts and writes the pages; each takes less than a
minute on two cores.

## torchlite alone

These scripts need scikit-learn and Matplotlib (the extra `demo`).

{alone}

## With other packages

Some of these packages import `torch`; they run on torchlite under [that name](../ecosystem.md). Others carry models, or
games to learn. `tox -e gallery` makes an environment for them.

{packages}

```{{toctree}}
:hidden:

{names}
```
"""


@dataclass(frozen=True)
class Cell:
    """A text in Markdown, the code below it, and the code's first line in the script."""

    text: str
    code: str
    line: int


def cells_of(source: str) -> tuple[str, list[Cell]]:
    """The title of a script, and its cells; the first one's text is the docstring's."""
    docstring = ast.get_docstring(ast.parse(source))
    if docstring is None:
        raise ValueError("the script has no docstring")
    title, _, text = docstring.partition("\n\n")
    lines = source.splitlines()
    first = ast.parse(source).body[0].end_lineno
    starts = [first, *(i for i, line in enumerate(lines) if line == "# %%" and i >= first), len(lines)]
    cells = []
    for begin, end in itertools.pairwise(starts):
        part = begin
        if lines[begin : begin + 1] == ["# %%"]:
            part = begin + 1
            while part < end and lines[part].startswith("#"):
                part += 1
            text = "\n".join(line[1:].removeprefix(" ") for line in lines[begin + 1 : part])
        code = lines[part:end]
        blank = next((i for i, line in enumerate(code) if line.strip()), len(code))
        cells.append(Cell(text.strip(), "\n".join(code[blank:]).rstrip(), part + blank + 1))
    return title.strip(), cells


def needs_packages(source: str) -> bool:
    """Whether a script uses a package that torchlite's tests do not have."""
    return re.search(r"^Needs ", ast.get_docstring(ast.parse(source)) or "", re.M) is not None


def digest_of(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def save_figures(stem: Path, count: int) -> list[tuple[str, str]]:
    """Write the open figures as PNG files of few colours, or as JPEG; their names, and the titles of their axes."""
    import matplotlib.pyplot as plt
    from PIL import Image

    saved = []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        path = stem.with_name(f"{stem.name}-{count + len(saved) + 1}.png")
        figure.savefig(path, dpi=100, bbox_inches="tight")
        with Image.open(path) as image:
            few = image.convert("RGB").quantize(COLOURS)
        few.save(path, optimize=True)
        if path.stat().st_size > LARGEST_PICTURE:  # a photograph
            path.unlink()
            path = path.with_suffix(".jpg")
            figure.savefig(path, dpi=100, bbox_inches="tight", pil_kwargs={"quality": 80, "optimize": True})
        texts = [axes.get_title().replace("\n", " ") for axes in figure.axes]
        saved.append((path.name, "; ".join(text for text in texts if text)))
        plt.close(figure)
    return saved


def run_cells(script: Path, folder: Path) -> None:
    """Run a script's cells in this process as `__main__`; outputs, pictures and the time go to a file in `folder`."""
    _, cells = cells_of(script.read_text())
    module = types.ModuleType("__main__")
    module.__file__ = str(script)
    sys.modules["__main__"] = module
    sys.argv = [str(script)]
    records, pictures = [], 0
    for cell in cells:
        with tempfile.TemporaryFile() as printed:
            # The descriptor and not only `sys.stdout`, because processes that a script starts print too.
            kept = os.dup(1)
            os.dup2(printed.fileno(), 1)
            try:
                exec(compile("\n" * (cell.line - 1) + cell.code, str(script), "exec"), vars(module))
                sys.stdout.flush()
            finally:
                os.dup2(kept, 1)
                os.close(kept)
            printed.seek(0)
            output = printed.read().decode()
        saved = save_figures(folder / script.stem, pictures)
        pictures += len(saved)
        records.append({"output": output.rstrip(), "pictures": saved})
    (folder / "run.json").write_text(json.dumps({"seconds": sum(os.times()[:4]), "cells": records}))


def page_of(script: Path, run: dict) -> str:
    source = script.read_text()
    title, cells = cells_of(source)
    parts = [f"# {title}", f"<!-- tools/make_gallery.py wrote this from {script.name}, sha256 {digest_of(source)} -->"]
    for cell, record in zip(cells, run["cells"], strict=True):
        parts += [cell.text] if cell.text else []
        parts += [f"```{{code-block}} python\n{cell.code}\n```"] if cell.code else []
        parts += [f"```{{code-block}} text\n{record['output']}\n```"] if record["output"] else []
        parts += [f"![{alt}]({name})" for name, alt in record["pictures"]]
    seconds = max(1, round(run["seconds"]))
    parts.append(f"The script takes {seconds} s of a processor. Download: {{download}}`{script.name} <{script.name}>`")
    return "\n\n".join(parts) + "\n"


def pictures_of(script: Path, folder: Path = GALLERY) -> list[Path]:
    return sorted(path for end in ("png", "jpg") for path in folder.glob(f"{script.stem}-[0-9].{end}"))


def card_of(script: Path) -> str:
    title, cells = cells_of(script.read_text())
    sentence = " ".join(cells[0].text.split("\n\n")[0].split())
    options = f":link: {script.stem}\n:link-type: doc\n:img-top: {pictures_of(script)[0].name}\n:img-alt: {title}"
    return f":::{{grid-item-card}} {title}\n{options}\n\n{sentence}\n:::"


def grid_of(scripts: list[Path]) -> str:
    return "\n\n".join(["::::{grid} 1 2 3 3\n:gutter: 3", *map(card_of, scripts), "::::"])


def index_of(scripts: list[Path]) -> str:
    alone = [script for script in scripts if not needs_packages(script.read_text())]
    packages = [script for script in scripts if script not in alone]
    return INDEX.format(
        alone=grid_of(alone), packages=grid_of(packages), names="\n".join(script.stem for script in alone + packages)
    )


def record(script: Path, write: bool) -> None:
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": python_path()}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, str(Path(__file__).resolve()), "--cells", str(script), str(folder)]
        subprocess.run(command, check=True, env=environment, cwd=folder)
        run = json.loads((folder / "run.json").read_text())
        pictures = pictures_of(script, folder)
        sizes = {path.name: path.stat().st_size for path in pictures}
        print(f"{script.stem}: {run['seconds']:.1f} s, {sizes}", flush=True)
        if run["seconds"] > LONGEST_RUN:
            raise SystemExit(f"{script.name} takes more than {LONGEST_RUN} s of a processor")
        if not pictures or max(sizes.values()) > LARGEST_PICTURE:
            raise SystemExit(f"{script.name}: no picture, or one above {LARGEST_PICTURE} bytes")
        if write:
            for old in pictures_of(script):
                old.unlink()
            for path in pictures:
                (GALLERY / path.name).write_bytes(path.read_bytes())
            (GALLERY / f"{script.stem}.md").write_text(page_of(script, run))


def python_path() -> str:
    """This process's own, absolute: a script runs in another folder."""
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return os.pathsep.join(paths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="scripts without .py; all by default")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--cells", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cells:
        run_cells(*options.cells)
        return
    scripts = sorted(GALLERY.glob("*.py"))
    wanted = [GALLERY / f"{name}.py" for name in options.names] or scripts
    for script in wanted:
        record(script, not options.check)
    if not options.check:
        (GALLERY / "index.md").write_text(index_of(scripts))


if __name__ == "__main__":
    main()
