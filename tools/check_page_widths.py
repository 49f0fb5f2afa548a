"""Check that no page of the built site is wider than the window, at a laptop's width and at a phone's:

    python tools/check_page_widths.py site

Chromium opens each page in frames of both widths. It reports pages whose content reaches beyond the frame, unless it
scrolls in a box of its own. `$BROWSER` names another Chromium. Without one the check says so and fails. Of the
generated reference one page in twenty is opened.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

WIDTHS = (1280, 390)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
EVERY = 20
# The server answers this page; it loads the others one after the other, and writes what it found.
DRIVER = """<!doctype html><title>widths</title><script>
async function check(page, width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width: ${width}px; height: 900px; border: 0`;
  frame.src = page;
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; frame.onerror = done; });
  const view = frame.contentWindow, root = frame.contentDocument;
  const scrolls = element => ["auto", "scroll"].includes(view.getComputedStyle(element).overflowX);
  let found = root.querySelector("h1") === null ? -1 : root.documentElement.scrollWidth;
  for (const element of root.querySelectorAll(".bd-article *")) {
    const { right, width: size } = element.getBoundingClientRect();
    if (right <= Math.max(found, width) || size === 0) continue;
    // What is cut off counts too; what scrolls in a box of its own does not.
    let box = element.parentElement;
    while (!box.matches(".bd-article") && !scrolls(box)) box = box.parentElement;
    if (box.matches(".bd-article")) found = Math.ceil(right);
  }
  frame.remove();
  return [page, width, found];
}
onload = async () => {
  const found = [];
  for (const page of PAGES) for (const width of WIDTHS) found.push(await check(page, width));
  document.body.textContent = "FOUND" + JSON.stringify(found) + "END";
};
</script><body></body>"""
DRIVER_NAME = "_widths.html"


class Handler(http.server.SimpleHTTPRequestHandler):
    driver = b""

    def do_GET(self) -> None:
        if self.path != f"/{DRIVER_NAME}":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.driver)

    def log_message(self, *args: object) -> None:
        """Nothing: a thousand requests are of no interest."""


def pages_of(site: Path) -> list[str]:
    """The pages to open, relative to the site. `genindex` and the search page have no content of ours."""
    every = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)
    generated = [page for page in every if page.startswith("reference/generated/")]
    longest = sorted(generated, key=len)[-5:]
    others = [page for page in every if page not in set(generated) and page not in ("genindex.html", "search.html")]
    return [*others, *generated[::EVERY], *longest]


def find_browser() -> str:
    named = os.environ.get("BROWSER")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        sys.exit(
            "the widths of pages were not checked: there is no Chromium (apt install chromium), "
            "or $BROWSER names another program"
        )
    return found


def measure(site: Path, pages: list[str]) -> list[tuple[str, int, int]]:
    """(page, width of the window, width of the content) for each page and width."""
    text = DRIVER.replace("PAGES)", f"{json.dumps(pages)})").replace("WIDTHS)", f"{json.dumps(WIDTHS)})")
    handler = type("Driver", (Handler,), {"driver": text.encode()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        command = [
            find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={profile}", "--window-size=1400,1000", "--timeout=600000",
            "--virtual-time-budget=6000000", "--dump-dom", f"http://127.0.0.1:{server.server_address[1]}/{DRIVER_NAME}",
        ]  # fmt: skip
        result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    server.shutdown()
    found = re.search(r"FOUND(\[.*\])END", result.stdout)
    if found is None:
        sys.exit(f"the browser did not finish:\n{result.stdout[-500:]}\n{result.stderr[-2000:]}")
    return [tuple(row) for row in json.loads(found[1])]


def main() -> None:
    site = Path(sys.argv[1])
    pages = pages_of(site)
    if not pages:
        sys.exit(f"there are no pages in {site}")
    rows = measure(site, pages)
    wide = [row for row in rows if not 0 < row[2] <= row[1]]
    for page, width, found in wide:
        print(f"{page}: {found} px in a window of {width}" if found > 0 else f"{page}: did not load")
    if len(rows) != len(pages) * len(WIDTHS) or wide:
        sys.exit(1)
    print(f"{len(pages)} pages are no wider than the window at {' and '.join(map(str, WIDTHS))} px")


if __name__ == "__main__":
    main()
