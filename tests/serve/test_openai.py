"""OpenAI's endpoints: completions and chats of models of text, at once and in parts."""

import asyncio
import contextlib
import itertools
import json
import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from . import letters
from .asgi_client import running, write_onnx

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with the models of `letters.py`, and one that is none of text."""
    folder = tmp_path_factory.mktemp("text")
    for name in ("letters", "script"):
        (folder / name).mkdir()
        shutil.copy(FOLDER / "letters.py", folder / name / "code.py")
        (folder / name / "config.toml").write_text(f"factory = 'code:{name.capitalize()}'\n")
    write_onnx(folder / "net.onnx")
    return folder


def with_client(models, work, **options):
    async def main():
        async with running(models, **{"allow_code": True, **options}) as client:
            return await work(client)

    return asyncio.run(main())


def written(prompt, count, **options):
    """The text that the model of letters writes."""
    return "".join(itertools.islice(letters.Letters().generate(prompt, **options), count))


def events(answer):
    """The events of a stream, without `[DONE]`."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.body.decode().split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines) and lines[-1] == "data: [DONE]"
    return [json.loads(line[6:]) for line in lines[:-1]]


def ask(models, path, table, **options):
    return with_client(models, lambda client: client.post(path, table), **options)


@pytest.mark.parametrize("base", ["/v1", "/openai/v1"])
def test_models_of_text_are_listed(models, base):
    async def work(client):
        found = (await client.get(f"{base}/models")).json
        assert found["object"] == "list" and [one["id"] for one in found["data"]] == ["letters", "script"]
        about = (await client.get(f"{base}/models/letters")).json
        assert about in found["data"] and about["object"] == "model" and about["owned_by"] == "torchlite"
        for name in ("net", "nothing"):
            answer = await client.get(f"{base}/models/{name}")
            assert answer.status == 404 and answer.json["error"]["type"] == "not_found_error"

    with_client(models, work)


@pytest.mark.parametrize("base", ["/v1", "/openai/v1"])
def test_a_completion(models, base):
    asked = {"model": "letters", "prompt": "the ", "max_tokens": 30, "temperature": 0.5, "seed": 3}
    found = ask(models, f"{base}/completions", asked).json
    assert found["object"] == "text_completion" and found["model"] == "letters" and found["id"].startswith("cmpl-")
    assert found["choices"] == [
        {"index": 0, "text": written("the ", 30, temperature=0.5, seed=3), "finish_reason": "length", "logprobs": None}
    ]
    assert found["usage"] == {"prompt_tokens": 4, "completion_tokens": 30, "total_tokens": 34}


def test_the_same_seed_gives_the_same_text(models):
    async def work(client):
        asked = {"model": "letters", "prompt": "a", "max_tokens": 40}
        texts = [
            (await client.post("/v1/completions", {**asked, **more})).json["choices"][0]["text"]
            for more in ({"seed": 1}, {"seed": 1}, {"seed": 2}, {}, {})
        ]
        assert texts[0] == texts[1] and len(set(texts)) == 4

    with_client(models, work)


def test_a_completion_has_16_tokens_by_default_and_a_chat_no_limit(models):
    async def work(client):
        answer = await client.post("/v1/completions", {"model": "letters", "prompt": "a"})
        assert answer.json["usage"]["completion_tokens"] == 16
        chat = {"model": "letters", "messages": [{"role": "user", "content": "a"}], "stop": "\n"}
        assert (await client.post("/v1/chat/completions", chat)).json["choices"][0]["finish_reason"] == "stop"

    with_client(models, work)


def test_several_prompts_and_choices(models):
    asked = {"model": "letters", "prompt": ["the ", "a"], "n": 2, "max_tokens": 5, "seed": 7, "echo": True}
    found = ask(models, "/v1/completions", asked).json
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2, 3]
    wanted = [prompt + written(prompt, 5, seed=seed) for prompt in ("the ", "a") for seed in (7, 8)]
    assert [choice["text"] for choice in found["choices"]] == wanted
    assert found["usage"] == {"prompt_tokens": 5, "completion_tokens": 20, "total_tokens": 25}


def test_a_chat(models):
    messages = [
        {"role": "system", "content": "write"},
        {"role": "user", "content": [{"type": "text", "text": "the "}, {"type": "text", "text": "cat"}]},
    ]
    asked = {"model": "letters", "messages": messages, "max_completion_tokens": 12, "temperature": 0}
    found = ask(models, "/openai/v1/chat/completions", asked).json
    prompt = "system: write\nuser: the cat\nassistant: "
    assert found["object"] == "chat.completion" and found["id"].startswith("chatcmpl-")
    choice = found["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": written(prompt, 12, temperature=0), "refusal": None}
    assert choice["finish_reason"] == "length"
    assert found["usage"]["prompt_tokens"] == len(prompt)


@pytest.mark.parametrize("usage", [False, True])
def test_a_stream_of_a_completion(models, usage):
    asked = {"model": "letters", "prompt": "the ", "max_tokens": 6, "seed": 3, "stream": True}
    asked |= {"stream_options": {"include_usage": True}} if usage else {}
    answer = ask(models, "/v1/completions", asked)
    found = events(answer)
    assert len(answer.parts) >= 7
    last = found.pop() if usage else None
    assert len({(event["id"], event["created"], event["object"], event["model"]) for event in found}) == 1
    assert [event["choices"][0]["text"] for event in found] == [*written("the ", 6, seed=3), ""]
    assert [event["choices"][0]["finish_reason"] for event in found] == [None] * 6 + ["length"]
    assert all(("usage" in event) is usage and event.get("usage") is None for event in found)
    if usage:
        assert last["choices"] == []
        assert last["usage"] == {"prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10}


def test_a_stream_of_a_chat(models):
    asked = {"model": "letters", "messages": [{"role": "user", "content": "a"}], "max_tokens": 3, "temperature": 0}
    found = events(ask(models, "/v1/chat/completions", {**asked, "n": 2, "stream": True}))
    assert {event["object"] for event in found} == {"chat.completion.chunk"}
    for index in (0, 1):
        own = [event["choices"][0] for event in found if event["choices"][0]["index"] == index]
        text = written("user: a\nassistant: ", 3, temperature=0)
        deltas = [{"role": "assistant", "content": ""}, *({"content": letter} for letter in text), {}]
        assert [choice["delta"] for choice in own] == deltas
        assert [choice["finish_reason"] for choice in own] == [None] * 4 + ["length"]


@pytest.mark.parametrize(
    ("stop", "text"),
    [("cd", "ab"), (["x", "f"], "abcde"), ("abc", ""), ("efz", "abcdef"), (["cde", "d"], "abc"), (["de", "bcd"], "a")],
)
@pytest.mark.parametrize("stream", [False, True])
def test_stops_that_span_pieces(models, stop, text, stream):
    asked = {"model": "script", "prompt": "ab c d ef", "stop": stop, "stream": stream}
    answer = ask(models, "/v1/completions", asked)
    choices = [event["choices"][0] for event in events(answer)] if stream else answer.json["choices"]
    assert "".join(choice["text"] for choice in choices) == text
    assert choices[-1]["finish_reason"] == "stop"


def test_a_text_of_no_tokens(models):
    found = ask(models, "/v1/completions", {"model": "script", "prompt": "a b", "max_tokens": 0, "echo": True}).json
    assert found["choices"][0]["text"] == "a b" and found["choices"][0]["finish_reason"] == "length"
    assert found["usage"]["completion_tokens"] == 0


def test_fields_of_the_models_own_reach_it(models):
    asked = {
        "model": "script",
        "prompt": "options",
        "top_k": 5,
        "temperature": 0.25,
        "user": "someone",
        "logprobs": None,
    }
    found = ask(models, "/v1/completions", asked).json
    assert found["choices"][0]["text"] == "temperature=0.25,top_k=5"


@pytest.mark.parametrize("more", [{"top_p": 1}, {"frequency_penalty": 0.0}, {"tools": []}, {"logit_bias": {}}])
def test_fields_that_ask_for_nothing_particular_are_taken(models, more):
    asked = {"model": "letters", "prompt": "a", "seed": 1, "max_tokens": 3, **more}
    assert ask(models, "/v1/completions", asked).json["choices"][0]["text"] == written("a", 3, seed=1)


CHAT = {"model": "letters", "messages": [{"role": "user", "content": "a"}]}
WRONG = [
    ("completions", {"prompt": "a"}, "'model' is missing"),
    ("completions", {"model": "letters"}, "'prompt' must be a text"),
    ("completions", {"model": "letters", "prompt": []}, "'prompt' must be a text"),
    ("completions", {"model": "letters", "prompt": [1, 2]}, "lists of tokens are not read"),
    ("completions", {"model": "letters", "prompt": "a", "messages": []}, "'messages' belongs to"),
    ("completions", {"model": "letters", "prompt": "a", "n": 0}, "'n' must be at least 1"),
    ("completions", {"model": "letters", "prompt": ["a"] * 100, "n": 2}, "at most 128 texts"),
    ("completions", {"model": "letters", "prompt": "a", "n": True}, "'n' must be a whole number"),
    ("completions", {"model": "letters", "prompt": "a", "max_tokens": -1}, "'max_tokens' must be"),
    ("completions", {"model": "letters", "prompt": "a", "max_tokens": 1.5}, "'max_tokens' must be"),
    (
        "completions",
        {"model": "letters", "prompt": "a", "temperature": 3},
        "'temperature' must be a number from 0 to 2",
    ),
    ("completions", {"model": "letters", "prompt": "a", "temperature": "x"}, "'temperature' must be a number"),
    ("completions", {"model": "letters", "prompt": "a", "seed": 0.5}, "'seed' must be a whole number"),
    ("completions", {"model": "letters", "prompt": "a", "seed": 2**63}, "'seed' must be a whole number"),
    ("completions", {"model": "letters", "prompt": "a", "seed": "1"}, "'seed' must be a whole number"),
    ("completions", {"model": "letters", "prompt": "a", "seed": True, "n": 2}, "'seed' must be a whole number"),
    ("completions", {"model": "letters", "prompt": "a", "seed": 2**63 - 1, "n": 2}, "'seed' must be a whole number"),
    ("completions", {"model": "letters", "prompt": ["a", "\ud800"]}, "half of a surrogate pair"),
    ("chat/completions", {**CHAT, "messages": [{"role": "user", "content": "\udfff"}]}, "half of a surrogate pair"),
    ("chat/completions", {**CHAT, "messages": [{"role": "user", "content": "a", "name": "\ud800"}]}, "surrogate"),
    ("completions", {"model": "letters", "prompt": "a", "top_p": 0.5}, "no parameter 'top_p'"),
    ("completions", {"model": "letters", "prompt": "a", "best_of": 2}, "no parameter 'best_of'"),
    ("completions", {"model": "letters", "prompt": "a", "nonsense": 2}, "no parameter 'nonsense'"),
    ("completions", {"model": "letters", "prompt": "a", "tools": [{}]}, "'tools' must be"),
    ("completions", {"model": "letters", "prompt": "a", "timeout": 5}, "Request-Timeout"),
    ("completions", {"model": "letters", "prompt": "a", "stop": [""]}, "'stop' must be"),
    ("completions", {"model": "letters", "prompt": "a", "stop": "x" * 1001}, "'stop' must be"),
    ("completions", {"model": "letters", "prompt": "a", "stop": list("abcde")}, "at most 4"),
    ("completions", {"model": "letters", "prompt": "a", "stream": 1}, "'stream' must be true or false"),
    ("completions", {"model": "letters", "prompt": "a", "stream_options": {"include_usage": True}}, "needs 'stream'"),
    ("completions", {"model": "letters", "prompt": "a", "stream": True, "stream_options": {"x": 1}}, "unknown option"),
    ("completions", [], "must be a JSON object"),
    ("completions", b"{", "no JSON"),
    ("chat/completions", {"model": "letters"}, "'messages' must be a list"),
    ("chat/completions", {**CHAT, "prompt": "a"}, "'prompt' belongs to"),
    ("chat/completions", {**CHAT, "messages": [{"role": "robot", "content": "a"}]}, "'role' must be one of"),
    ("chat/completions", {**CHAT, "messages": [{"role": "user", "content": 5}]}, "'content' must be"),
    ("chat/completions", {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "a part of"),
    ("chat/completions", {**CHAT, "messages": [{"role": "user", "content": "a", "tool_calls": []}]}, "'tool_calls'"),
    ("chat/completions", {**CHAT, "max_tokens": 1, "max_completion_tokens": 1}, "not both"),
    ("chat/completions", {**CHAT, "model": "script"}, "no method chat_prompt"),
]


def test_wrong_requests(models):
    async def work(client):
        for path, table, about in WRONG:
            for also in ({}, {"stream": True}) if isinstance(table, dict) and "stream" not in table else ({},):
                asked = {**table, **also} if also and "stream_options" not in table else table
                answer = await client.post(f"/v1/{path}", asked)
                error = answer.json["error"]
                assert answer.status == 400 and about in error["message"], (asked, answer)
                assert error["type"] == "invalid_request_error" and error.keys() >= {"param", "code"}

    with_client(models, work)


@pytest.mark.parametrize("model", ["net", "nothing", ""])
def test_a_model_that_is_not_there(models, model):
    answer = ask(models, "/v1/completions", {"model": model, "prompt": "a"})
    assert answer.status == 404 and answer.json["error"]["type"] == "not_found_error"


def test_errors_of_the_api_have_its_form(models):
    async def work(client):
        for method, path, status in (("GET", "/v1/completions", 405), ("POST", "/openai/v1/nothing", 404)):
            answer = await client.call(method, path, headers={"authorization": "Bearer secret"})
            assert answer.status == status and answer.json["error"]["message"]
        answer = await client.post("/v1/completions", {"model": "script", "prompt": "a"}, authorization="Bearer x")
        assert answer.status == 401 and answer.json["error"]["type"] == "authentication_error"

    with_client(models, work, token="secret")


@pytest.mark.parametrize(
    ("word", "about"), [("fail", "AttributeError: the script says so"), ("number", "yielded a int")]
)
def test_an_error_of_the_models_code(models, word, about):
    async def work(client):
        answer = await client.post("/v1/completions", {"model": "script", "prompt": f"a {word}"})
        assert answer.status == 500 and about in answer.json["error"]["message"]
        assert answer.json["error"]["type"] == "server_error"
        answer = await client.post("/v1/completions", {"model": "script", "prompt": f"a {word}", "stream": True})
        first, last = (json.loads(line[6:]) for line in answer.body.decode().split("\n\n") if line)
        assert first["choices"][0]["text"] == "a" and about in last["error"]["message"]
        assert b"[DONE]" not in answer.body

    with_client(models, work)


def test_parts_come_as_they_are_made(models):
    """The model waits for a file after its first word: the word must be there before."""
    go = models / "script" / "go"

    async def work(client):
        asked = {"model": "script", "prompt": "a wait b", "stream": True}
        task = asyncio.create_task(client.post("/v1/completions", asked))
        await asyncio.sleep(0.2)
        assert not task.done()
        go.touch()
        assert [event["choices"][0]["text"] for event in events(await task)] == ["a", "b", ""]

    try:
        with_client(models, work)
    finally:
        go.unlink(missing_ok=True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_ends_the_text(models, stream):
    said = models / "script" / "said"

    async def work(client):
        asked = {"model": "script", "prompt": "forever", "max_tokens": 10**9, "stream": stream}
        with contextlib.suppress(BaseException):
            await client.call("POST", "/v1/completions", asked, cut=0.3)
        for _ in range(100):
            before = said.stat().st_size
            await asyncio.sleep(0.1)
            if said.stat().st_size == before:
                break
        else:
            raise AssertionError("the model goes on")
        answer = await client.post("/v1/completions", {"model": "script", "prompt": "a"})
        assert answer.json["choices"][0]["text"] == "a"

    try:
        with_client(models, work)
    finally:
        said.unlink(missing_ok=True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_deadline(models, stream):
    async def work(client):
        started = time.monotonic()
        asked = {"model": "script", "prompt": "forever", "max_tokens": 10**9, "stream": stream}
        answer = await client.post("/v1/completions", asked, request_timeout="0.3")
        assert time.monotonic() - started < 20
        if stream:
            assert "deadline" in json.loads(answer.body.decode().split("\n\n")[-2][6:])["error"]["message"]
        else:
            assert answer.status == 504 and answer.json["error"]["type"] == "server_error"

    try:
        with_client(models, work)
    finally:
        (models / "script" / "said").unlink(missing_ok=True)


def test_the_protocol_serves_the_same_model(models):
    async def work(client):
        about = (await client.get("/v2/models/letters")).json
        assert about["platform"] == "torchlite_text" and [one["name"] for one in about["inputs"]] == ["text_input"]
        asked = {"text_input": "the ", "parameters": {"max_tokens": 5, "seed": 3, "temperature": 0.5}}
        found = (await client.post("/v2/models/letters/generate", asked)).json
        assert found["text_output"] == written("the ", 5, temperature=0.5, seed=3)
        assert (found["finish_reason"], found["prompt_tokens"], found["completion_tokens"]) == ("length", 4, 5)
        answer = await client.post("/v2/models/letters/generate_stream", asked)
        parts = [json.loads(line[6:]) for line in answer.body.decode().split("\n\n") if line]
        assert "".join(part["text_output"] for part in parts) == found["text_output"]
        answer = await client.post("/v2/models/letters/generate", {"text_input": "a", "parameters": {"top_k": 1}})
        assert answer.status == 400 and "top_k" in answer.json["error"]

    with_client(models, work)


def test_text_needs_the_flag_for_code(models):
    with pytest.raises(ValueError, match="--allow-code"):
        ask(models, "/v1/completions", {"model": "script", "prompt": "a"}, allow_code=False)
