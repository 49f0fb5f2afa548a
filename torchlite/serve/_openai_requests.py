"""Requests in OpenAI's form: the fields of a JSON body, each read or refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._errors import InvalidRequest
from ._protocol import InferRequest
from ._text_model import CHAT

MOST_CHOICES = 128  # texts of one request
_DEFAULT_TOKENS = 16  # of a completion; a chat's answer has no limit of its own
_ROLES = ("system", "developer", "user", "assistant")
# Fields that say nothing about the text: who asks, and what OpenAI may keep.
_NO_EFFECT = ("user", "metadata", "store", "safety_identifier", "prompt_cache_key", "service_tier")
# Values of fields by which a client asks for nothing particular.
_PLAIN: dict[str, Any] = {
    "logit_bias": {}, "tools": [], "tool_choice": "none", "response_format": {"type": "text"}, "modalities": ["text"],
    "suffix": "",
}  # fmt: skip
_READ = ("model", "prompt", "messages", "n", "stream", "stream_options", "stop", "echo")
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass
class TextRequest:
    """A request for texts. `prompts` are the texts to continue, or the JSON text of the one conversation."""

    model: str
    prompts: list[str]
    chat: bool
    choices: int
    stream: bool
    include_usage: bool
    echo: bool
    parameters: dict[str, Any]

    def infer_request(self, choice: int) -> InferRequest:
        """Return the model's request for one of the texts. Those of one prompt have different seeds."""
        prompt = np.empty(1, np.object_)
        prompt[0] = self.prompts[choice // self.choices].encode()
        parameters = dict(self.parameters)
        if "seed" in parameters:
            parameters["seed"] += choice % self.choices
        if self.chat:
            parameters[CHAT] = True
        return InferRequest({"text_input": prompt}, parameters=parameters)

    @property
    def texts(self) -> int:
        """The number of texts that are asked for."""
        return len(self.prompts) * self.choices


def text_request_of(table: Any, chat: bool) -> TextRequest:
    """Return the request of a JSON body. InvalidRequest for a field that is wrong, or that nothing reads."""
    if type(table) is not dict:
        raise InvalidRequest("the body must be a JSON object")
    table = {key: value for key, value in table.items() if value is not None}
    if "model" not in table:
        raise InvalidRequest("'model' is missing")
    wrong = ("prompt", "echo") if chat else ("messages",)
    for key in wrong:
        if key in table:
            raise InvalidRequest(f"'{key}' belongs to {'/v1/completions' if chat else '/v1/chat/completions'}")
    made = TextRequest(
        model=_take(table, "model", str, ""),
        prompts=[_conversation_of(table.get("messages"))] if chat else _prompts_of(table.get("prompt")),
        chat=chat,
        choices=_take(table, "n", int, 1),
        stream=_take(table, "stream", bool, False),
        include_usage=_include_usage(table),
        echo=_take(table, "echo", bool, False),
        parameters=_parameters_of(table, chat),
    )
    if made.choices < 1 or made.texts > MOST_CHOICES:
        raise InvalidRequest(f"'n' must be at least 1, and a request has at most {MOST_CHOICES} texts")
    seed = made.parameters.get("seed", 0)
    if type(seed) is not int or not -(2**63) <= seed <= 2**63 - made.choices:
        raise InvalidRequest("'seed' must be a whole number of 64 bits, also for the last of 'n' texts")
    try:
        "".join(made.prompts).encode()
    except UnicodeEncodeError:
        raise InvalidRequest("a text has one half of a surrogate pair, which is no character") from None
    return made


def _take(table: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    found = table.get(key, default)
    if type(found) is not kind:
        words = {str: "a text", int: "a whole number", bool: "true or false", dict: "an object"}
        raise InvalidRequest(f"'{key}' must be {words[kind]}")
    return found


def _include_usage(table: dict[str, Any]) -> bool:
    options = _take(table, "stream_options", dict, {})
    if options and not table.get("stream"):
        raise InvalidRequest("'stream_options' needs 'stream': true")
    for key in options:
        if key != "include_usage":
            raise InvalidRequest(f"unknown option '{key}' of 'stream_options'; known is include_usage")
    return _take(options, "include_usage", bool, False)


def _prompts_of(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise InvalidRequest("'prompt' must be a text or a list of texts; lists of tokens are not read")
    return texts


def _conversation_of(value: Any) -> str:
    """Return the JSON text of messages that have a role and a text each."""
    if not isinstance(value, list) or not value:
        raise InvalidRequest("'messages' must be a list with at least one message")
    return json.dumps([_message_of(message) for message in value], ensure_ascii=False)


def _message_of(value: Any) -> dict[str, str]:
    if type(value) is not dict:
        raise InvalidRequest("each of 'messages' must be an object")
    given = {key: part for key, part in value.items() if part is not None}
    for key in given:
        if key not in ("role", "content", "name"):
            raise InvalidRequest(f"a message's '{key}' is not read; known are role, content and name")
    role = given.get("role")
    if role not in _ROLES:
        raise InvalidRequest(f"a message's 'role' must be one of {', '.join(_ROLES)}")
    made = {"role": role, "content": _content_of(given.get("content"))}
    if "name" in given:
        made["name"] = _take(given, "name", str, "")
    return made


def _content_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise InvalidRequest("a message's 'content' must be a text, or a list of parts")
    for part in value:
        if type(part) is not dict or part.get("type") != "text" or type(part.get("text")) is not str:
            raise InvalidRequest("a part of a message must be {'type': 'text', 'text': …}")
    return "".join(part["text"] for part in value)


def _parameters_of(table: dict[str, Any], chat: bool) -> dict[str, Any]:
    """Return what the model gets: the limit, the stops, and all fields that the server does not read itself."""
    limits = [table[key] for key in _LIMITS if key in table]
    if len(limits) > 1:
        raise InvalidRequest("give 'max_tokens' or 'max_completion_tokens', not both")
    made: dict[str, Any] = {}
    if limits:
        made["max_tokens"] = limits[0]
    elif not chat:
        made["max_tokens"] = _DEFAULT_TOKENS
    if "stop" in table:
        made["stop"] = table["stop"]
    for key, value in table.items():
        if key in (*_READ, *_LIMITS, *_NO_EFFECT) or (key in _PLAIN and value == _PLAIN[key]):
            continue
        if type(value) not in (bool, int, float, str):
            raise InvalidRequest(f"'{key}' must be a text, a number, true or false; this server reads no other")
        made[key] = value
    if CHAT in made or "timeout" in made:
        raise InvalidRequest("unknown field 'chat' or 'timeout'; a limit of time is the header Request-Timeout")
    return made
