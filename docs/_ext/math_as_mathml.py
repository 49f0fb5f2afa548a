"""Writes formulas as MathML, which browsers typeset themselves: pages need no script and no network."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
# LaTeX escapes these in text. docutils' converter copies a text as it stands.
_ESCAPED = re.compile(r"\\([_%&#$])")


def to_mathml(node: nodes.Element, display: bool) -> str:
    """The MathML of a node's LaTeX; a warning for what docutils' converter does not know."""
    text = node.astext()
    try:
        mathml = latex2mathml.tex2mathml(text, as_block=display)
    except Exception as error:
        logger.warning("cannot typeset %r: %s", text, error, location=node)
        return f"<code>{text}</code>"
    return re.sub(r"<mtext[^>]*>[^<]*", lambda found: _ESCAPED.sub(r"\1", found[0]), mathml)


def visit_inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(to_mathml(node, display=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<div class="math-block">{to_mathml(node, display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
