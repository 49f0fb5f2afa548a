"""OpenAI's API for models of text: completions and chat completions, at once or as server-sent events."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ._errors import ServeError, UnknownModel
from ._http import body_of, json_response, openai_error, read_body, service_of, timeout_of, while_connected
from ._openai_requests import TextRequest, text_request_of
from ._protocol import parse_json
from ._repository import Entry
from ._service import Call, Service
from ._text_model import PLATFORM

_OWNER = "torchlite"


class Part(NamedTuple):
    """A piece of one of the texts. The last piece of a text has a reason."""

    choice: int
    text: str
    reason: str
    prompt_tokens: int
    completion_tokens: int


# -- models --------------------------------------------------------------------------------


def _describe(entry: Entry) -> dict[str, Any]:
    return {"id": entry.name, "object": "model", "created": entry.created, "owned_by": _OWNER}


def _text_entry(service: Service, name: str) -> Entry:
    entry = service.repository.find(name)
    if entry.model.platform != PLATFORM:
        raise UnknownModel(f"model '{name}' is no model of text")
    return entry


async def list_models(request: Request) -> Response:
    """Answer the models of text."""
    service = service_of(request)
    names = dict.fromkeys(e.name for e in service.repository.loaded() if e.model.platform == PLATFORM)
    return json_response({"object": "list", "data": [_describe(service.repository.find(name)) for name in names]})


async def describe_model(request: Request) -> Response:
    """Answer one model of text."""
    return json_response(_describe(_text_entry(service_of(request), request.path_params["name"])))


# -- texts ---------------------------------------------------------------------------------


async def completions(request: Request) -> Response:
    """Answer the continuation of texts."""
    return await _answer(request, chat=False)


async def chat_completions(request: Request) -> Response:
    """Answer the next message of a conversation."""
    return await _answer(request, chat=True)


async def _answer(request: Request, chat: bool) -> Response:
    service = service_of(request)
    with body_of(request) as body:
        asked = text_request_of(parse_json(await read_body(request, body)), chat)
    _text_entry(service, asked.model)
    request.scope["path_params"] = {"name": asked.model}  # for the access log
    parts = _parts(service, asked, service.begin("openai", timeout_of(request)))
    form = _Form(asked)
    if not asked.stream:
        return json_response(form.complete(await while_connected(request, _collected(parts))))
    # The first part is awaited, so that an error before it has a status.
    first = await while_connected(request, anext(parts))  # type: ignore[arg-type]

    async def events() -> AsyncIterator[bytes]:
        usage = _Usage()
        try:
            for event in form.events(first, usage):
                yield _event(event)
            async for part in parts:
                for event in form.events(part, usage):
                    yield _event(event)
            if asked.include_usage:
                yield _event({**form.head(chunk=True), "choices": [], "usage": usage.describe()})
            yield b"data: [DONE]\n\n"
        except ServeError as error:  # the status is sent already
            yield _event(openai_error(error.status, str(error)))
        finally:
            await parts.aclose()  # type: ignore[attr-defined]

    return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


async def _parts(service: Service, asked: TextRequest, call: Call) -> AsyncIterator[Part]:
    """Yield the pieces of all texts, one text after the other."""
    for choice in range(asked.texts):
        begin = asked.prompts[choice // asked.choices] if asked.echo else ""
        answers = service.stream(asked.model, "", asked.infer_request(choice), call)
        try:
            async for _, answer in answers:
                text, reason = answer["text_output"][0].decode(), answer["finish_reason"][0].decode()
                if text or reason:
                    counts = int(answer["prompt_tokens"][0]), int(answer["completion_tokens"][0])
                    yield Part(choice, begin + text, reason, *counts)
                    begin = ""
        finally:
            await answers.aclose()  # type: ignore[attr-defined]


async def _collected(parts: AsyncIterator[Part]) -> list[Part]:
    return [part async for part in parts]


class _Usage:
    """Counts tokens: those of a prompt once for all its texts."""

    def __init__(self) -> None:
        self._prompts: dict[int, int] = {}
        self._completion = 0

    def add(self, part: Part, choices: int) -> None:
        """Count a piece; the last one of a text has the counts of all."""
        if part.reason:
            self._prompts[part.choice // choices] = part.prompt_tokens
            self._completion += part.completion_tokens

    def describe(self) -> dict[str, int]:
        """Return OpenAI's object."""
        prompt = sum(self._prompts.values())
        return {
            "prompt_tokens": prompt,
            "completion_tokens": self._completion,
            "total_tokens": prompt + self._completion,
        }


class _Form:
    """The form of the answers to a request."""

    def __init__(self, asked: TextRequest) -> None:
        self._asked = asked
        self._id = f"{'chatcmpl' if asked.chat else 'cmpl'}-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._begun: set[int] = set()

    def head(self, chunk: bool) -> dict[str, Any]:
        """Return the fields that all answers have."""
        kind = "text_completion"
        if self._asked.chat:
            kind = "chat.completion.chunk" if chunk else "chat.completion"
        return {"id": self._id, "object": kind, "created": self._created, "model": self._asked.model}

    def complete(self, parts: list[Part]) -> dict[str, Any]:
        """Return the answer with all texts."""
        usage, choices = _Usage(), []
        for choice in range(self._asked.texts):
            own = [part for part in parts if part.choice == choice]
            text = "".join(part.text for part in own)
            usage.add(own[-1], self._asked.choices)
            choices.append(self._choice(choice, text, own[-1].reason, "message"))
        return {**self.head(chunk=False), "choices": choices, "usage": usage.describe()}

    def _choice(self, choice: int, text: str, reason: str, key: str) -> dict[str, Any]:
        made: dict[str, Any] = {"index": choice, "logprobs": None, "finish_reason": reason or None}
        if not self._asked.chat:
            return {**made, "text": text}
        if key == "message":
            return {**made, key: {"role": "assistant", "content": text, "refusal": None}}
        return {**made, key: {"content": text} if text else {}}

    def events(self, part: Part, usage: _Usage) -> list[dict[str, Any]]:
        """Return the events of a piece. A message begins with its role, and ends with its reason alone."""
        usage.add(part, self._asked.choices)
        choices = []
        if self._asked.chat and part.choice not in self._begun:
            self._begun.add(part.choice)
            begin = self._choice(part.choice, "", "", "delta")
            choices.append({**begin, "delta": {"role": "assistant", "content": ""}})
        if part.text:
            choices.append(self._choice(part.choice, part.text, "", "delta"))
        if part.reason:
            choices.append(self._choice(part.choice, "", part.reason, "delta"))
        also = {"usage": None} if self._asked.include_usage else {}
        return [{**self.head(chunk=True), "choices": [choice], **also} for choice in choices]


def routes() -> list[Route]:
    """Return the endpoints: KServe's addresses begin with `/openai`."""
    made = []
    for base in ("/v1", "/openai/v1"):
        made += [
            Route(f"{base}/models", list_models),
            Route(f"{base}/models/{{name}}", describe_model),
            Route(f"{base}/completions", completions, methods=["POST"]),
            Route(f"{base}/chat/completions", chat_completions, methods=["POST"]),
        ]
    return made
