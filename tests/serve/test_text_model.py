"""Models of text: what makes one, and stops in texts that come in pieces."""

import asyncio
import random

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from torchlite.serve._text_model import StopFinder, is_text_model

from . import letters
from .asgi_client import running


def test_what_a_model_of_text_is():
    class Ids:
        def generate(self, ids):
            return ids

    assert is_text_model(letters.Letters()) and is_text_model(letters.Script())
    assert not is_text_model(Ids()) and not is_text_model(len)


@pytest.mark.parametrize(
    ("code", "config", "about"),
    [
        ("class Text:\n    def generate(self, prompt):\n        yield prompt\n", "", "count_tokens"),
        (None, "batching = true\n", "takes no 'batching'"),
        (None, "[[inputs]]\nname = 'x'\n", "takes no 'inputs'"),
    ],
)
def test_what_is_refused_when_it_is_loaded(tmp_path, code, config, about):
    whole = (
        "class Text:\n    def generate(self, p):\n        yield p\n    def count_tokens(self, t):\n        return 1\n"
    )
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "code.py").write_text(code or whole)
    (folder / "config.toml").write_text("factory = 'code:Text'\n" + config)

    async def load():
        async with running(folder, allow_code=True):
            pass

    with pytest.raises(ValueError, match=about):
        asyncio.run(load())


def test_stops_are_found_wherever_the_pieces_end():
    """A random text in random pieces: what is sent is the text before the first stop."""
    numbers = random.Random(5)
    for _ in range(500):
        text = "".join(numbers.choices("ab", k=12))
        stops = ["".join(numbers.choices("ab", k=numbers.randint(2, 5))) for _ in range(numbers.randint(0, 3))]
        cuts = sorted(numbers.sample(range(13), 4))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, 12], strict=True)]
        finder, sent = StopFinder(stops), ""
        for piece in pieces:
            sent += finder.add(piece)
            if finder.found:
                break
        sent += finder.rest()
        # The first stop is the one that is complete first.
        ends = [text.find(stop) + len(stop) for stop in stops if stop in text]
        if not ends:
            assert sent == text and not finder.found
            continue
        assert finder.found
        assert not any(stop in sent for stop in stops)
        assert text.startswith(sent)
        assert any(text[len(sent) :].startswith(stop) for stop in stops)
