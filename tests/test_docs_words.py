"""Pages have short sentences and paragraphs: under 18 words on average, at most 36 a sentence, 120 a paragraph."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
MEAN, SENTENCE, PARAGRAPH = 18, 36, 120
# What is no prose: fenced blocks and directives, comments, formulas, indented code, tables, headings, pictures.
_BLOCKS = re.compile(r"^(`{3,}|:{3,}).*?^\1$|<!--.*?-->|^\$\$.*?^\$\$", re.DOTALL | re.MULTILINE)
_NO_PROSE = re.compile(r"^(?:    |\t|\||#|!\[)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_GENERATED = re.compile(r"^<!-- (?:bench|comparison) .*?^<!-- end -->", re.DOTALL | re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[)\"']*\s+(?=[\"'(]*[A-Z0-9])")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|approx|Fig|No)\.")


def paragraphs_of(text: str) -> list[str]:
    """The paragraphs and items of lists, one line each; a code span, a formula and a link count as their text."""
    text = _BLOCKS.sub("\n", _GENERATED.sub("\n", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`|\$[^$\n]+\$", "X", text)
    found: list[str] = []
    within = False
    for line in text.splitlines():
        item = _ITEM.match(line)
        indented = line.startswith(("    ", "\t"))
        if not line.strip() or (_NO_PROSE.match(line) and not (indented and (item or within))):
            within = False
        elif item or not within:
            found.append(_ITEM.sub("", line).strip())
            within = True
        else:
            found[-1] += " " + line.strip()
    return found


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of a paragraph, ended by a full stop and a capital; colons and semicolons do not end one."""
    paragraph = _ABBREVIATIONS.sub(r"\1", paragraph)
    return [s for s in _END.split(paragraph) if s and re.search(r"\w", s)]


def count_words(text: str) -> int:
    return len(re.findall(r"[^\s]*\w[^\s]*", text))


EXAMPLE = """# Title

One `x = y + z` two. Three
four $a + b$ five:

    code code

- [six seven](page.md).
  Eight e.g. nine.

| a | b |
"""


def test_what_is_counted():
    assert paragraphs_of(EXAMPLE) == ["One X two. Three four X five:", "six seven. Eight e.g. nine."]
    assert sentences_of("One X two. Three four X five:") == ["One X two.", "Three four X five:"]
    assert [count_words(s) for s in sentences_of("six seven. Eight e.g. nine.")] == [2, 3]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_words(page):
    paragraphs = paragraphs_of(page.read_text())
    sentences = [sentence for paragraph in paragraphs for sentence in sentences_of(paragraph)]
    lengths = [count_words(sentence) for sentence in sentences]
    assert [s for s, words in zip(sentences, lengths, strict=True) if words > SENTENCE] == []
    assert [p[:80] for p in paragraphs if count_words(p) > PARAGRAPH] == []
    assert sum(lengths) < MEAN * max(len(lengths), 1)
