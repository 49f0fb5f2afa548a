"""OpenAI's own client against the server: completions, chats, streams, errors, and a client that leaves."""

import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("uvicorn", reason="the extra 'serve' is missing")
openai = pytest.importorskip("openai", reason="the package openai is missing (tox -e deployment)")

from .server_process import serving
from .test_openai import written

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with the models of `letters.py` and a token."""
    folder = tmp_path_factory.mktemp("text")
    for name in ("letters", "script"):
        (folder / name).mkdir()
        shutil.copy(FOLDER / "letters.py", folder / name / "code.py")
        (folder / name / "config.toml").write_text(f"factory = 'code:{name.capitalize()}'\n")
    with serving(folder, "--allow-code", "--max-queue", "2", "--token", "secret") as found:
        found.folder = folder
        yield found


@pytest.fixture(params=["v1", "openai/v1"])
def client(server, request):
    with openai.OpenAI(
        base_url=f"http://127.0.0.1:{server.port}/{request.param}", api_key="secret", max_retries=0
    ) as found:
        yield found


MESSAGES = [{"role": "system", "content": "write"}, {"role": "user", "content": "the cat"}]
PROMPT = "system: write\nuser: the cat\nassistant: "


def test_models(client):
    assert [model.id for model in client.models.list()] == ["letters", "script"]
    assert client.models.retrieve("letters").owned_by == "torchlite"


def test_a_completion(client):
    found = client.completions.create(model="letters", prompt="the ", max_tokens=20, temperature=0.7, seed=1)
    assert found.choices[0].text == written("the ", 20, temperature=0.7, seed=1)
    assert found.choices[0].finish_reason == "length" and found.usage.total_tokens == 24


def test_a_stream(client):
    stream = client.completions.create(
        model="letters", prompt="the ", max_tokens=20, seed=1, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == written("the ", 20, seed=1)
    assert len(chunks) == 22 and chunks[-1].usage.completion_tokens == 20


def test_a_chat(client):
    found = client.chat.completions.create(model="letters", messages=MESSAGES, max_tokens=9, temperature=0)
    assert found.choices[0].message.content == written(PROMPT, 9, temperature=0)
    assert found.choices[0].message.role == "assistant" and found.usage.prompt_tokens == len(PROMPT)


def test_a_chat_in_parts(client):
    stream = client.chat.completions.create(
        model="letters", messages=MESSAGES, max_completion_tokens=9, seed=4, stop=["\n"], stream=True
    )
    chunks = [chunk.choices[0] for chunk in stream]
    whole = written(PROMPT, 9, seed=4)
    assert "".join(chunk.delta.content or "" for chunk in chunks) == whole.partition("\n")[0]
    assert chunks[0].delta.role == "assistant"
    assert chunks[-1].finish_reason == ("stop" if "\n" in whole else "length")


def test_a_chat_by_the_clients_own_accumulator(client):
    with client.chat.completions.stream(model="letters", messages=MESSAGES, stop=" ", temperature=0) as stream:
        found = stream.get_final_completion()
    assert found.choices[0].message.content == written(PROMPT, 9, temperature=0).partition(" ")[0]


def test_options_of_the_models_own(client):
    found = client.completions.create(model="script", prompt="options", extra_body={"top_k": 3})
    assert found.choices[0].text == "top_k=3"


def test_errors(client, server):
    with pytest.raises(openai.NotFoundError, match="there is no model 'x'"):
        client.completions.create(model="x", prompt="a")
    with pytest.raises(openai.BadRequestError, match="no parameter 'best_of'"):
        client.completions.create(model="letters", prompt="a", best_of=3)
    with pytest.raises(openai.InternalServerError, match="the script says so"):
        client.completions.create(model="script", prompt="fail")
    with pytest.raises(openai.APIError, match="the script says so"):
        list(client.completions.create(model="script", prompt="a fail", stream=True))
    with openai.OpenAI(base_url=client.base_url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError, match="token"):
            stranger.models.list()


def test_a_client_that_leaves_ends_the_text(client, server):
    said = server.folder / "script" / "said"
    stream = client.completions.create(model="script", prompt="forever", max_tokens=10**9, stream=True)
    assert next(iter(stream)).choices[0].text == "."
    stream.close()
    deadline = time.monotonic() + 30
    while True:
        before = said.stat().st_size
        time.sleep(0.2)
        if said.stat().st_size == before:
            break
        assert time.monotonic() < deadline, "the model goes on"
    assert client.completions.create(model="script", prompt="a b").choices[0].text == "ab"
