"""A model of text: its code yields pieces of a text, which become an answer with a limit, stops and counts.

It is a model of tensors with one input, so that all protocols and streams serve it.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch

from ._errors import InvalidRequest, ModelFailed, ServeError
from ._protocol import InferRequest, TensorSpec
from ._statistics import StageTimes
from ._tensor_model import Answer, TensorModel

PLATFORM = "torchlite_text"
INPUTS = [TensorSpec("text_input", "BYTES", (1,))]
OUTPUTS = [
    TensorSpec("text_output", "BYTES", (1,)),
    TensorSpec("finish_reason", "BYTES", (1,)),  # "stop" or "length" in the last part, "" in others
    TensorSpec("prompt_tokens", "INT64", (1,)),
    TensorSpec("completion_tokens", "INT64", (1,)),
]
CHAT = "chat"  # the parameter that says that the input is the JSON text of a list of messages
_OWN = ("max_tokens", "stop", "timeout", "binary_data_output", CHAT)  # parameters that the server reads itself
_MOST_STOPS, _LONGEST_STOP = 4, 1000
# Values by which a request asks for what a model without the parameter does.
_NEUTRAL: dict[str, Any] = {
    "temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "logprobs": False, "best_of": 1,
}  # fmt: skip
_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "frequency_penalty": (-2, 2), "presence_penalty": (-2, 2)}


def is_text_model(module: Any) -> bool:
    """True if a module generates text: its method `generate(prompt, ...)` is a generator."""
    return inspect.isgeneratorfunction(getattr(module, "generate", None))


class Asked(NamedTuple):
    """The prompt, arguments, limit and stops that a request has for a model of text."""

    prompt: str
    keywords: dict[str, Any]
    limit: int | None
    stops: tuple[str, ...]


class StopFinder:
    """Finds the first of some texts in a text that comes in pieces. What may begin one of them is held back."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.found = False

    def add(self, piece: str) -> str:
        """Return what can be sent after another piece: all that is before a stop, once it is found."""
        text = self._held + piece
        places = [place for place in map(text.find, self._stops) if place >= 0]
        if places:
            self.found, self._held = True, ""
            return text[: min(places)]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def rest(self) -> str:
        """Return what was held back."""
        return self._held


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that begins `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)


class TextModel(TensorModel):
    """A module with `generate(prompt, ...)`, a generator of pieces of one token each, and `count_tokens(text)`.

    `chat_prompt(messages)` is optional: it makes the prompt of a conversation.

    Args:
        module: The module.
        device: The name of its device.
    """

    def __init__(self, module: Any, device: str) -> None:
        super().__init__(module, PLATFORM, list(INPUTS), list(OUTPUTS), device, is_code=True, streams=True)
        if not callable(getattr(module, "count_tokens", None)):
            raise ValueError("a model of text needs the method count_tokens(text), for the counts of an answer")
        parameters = list(inspect.signature(module.generate).parameters.values())[1:]
        self._takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
        self._known = {one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)}

    def _stream(self, request: InferRequest) -> Iterator[Answer]:
        with torch.inference_mode():
            try:
                yield from self._parts(self._asked(request))
            except ServeError:
                raise
            except Exception as error:  # whatever the model's code raises is its request's answer
                raise self._refusal(error) from error

    def _run_joined(self, requests: Sequence[InferRequest], start: float) -> tuple[list[Any], StageTimes]:
        """Return the complete text."""
        texts = []
        part: Answer = {}
        for part in self._stream(requests[0]):
            texts.append(part["text_output"][0])
        whole = {**part, "text_output": _bytes_array(b"".join(texts))}
        return [whole], StageTimes(compute_infer=time.perf_counter() - start)

    def _parts(self, asked: Asked) -> Iterator[Answer]:
        prompt_tokens = int(self.module.count_tokens(asked.prompt))
        finder, count, reason = StopFinder(asked.stops), 0, "stop"
        pieces = self.module.generate(asked.prompt, **asked.keywords)
        try:
            while not finder.found:
                if count == asked.limit:
                    reason = "length"
                    break
                piece = next(pieces, None)
                if piece is None:
                    break
                if not isinstance(piece, str):
                    raise ModelFailed(f"generate yielded a {type(piece).__name__}; wanted are texts")
                count += 1
                yield _part(finder.add(piece), "", prompt_tokens, count)
        finally:
            pieces.close()
        yield _part(finder.rest(), reason, prompt_tokens, count)

    def _asked(self, request: InferRequest) -> Asked:
        """Return what a request asks for. InvalidRequest for a parameter that nothing reads."""
        parameters: dict[str, Any] = dict(request.parameters)
        limit = parameters.get("max_tokens")
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidRequest("'max_tokens' must be a whole number of at least 0")
        stops = parameters.get("stop") or []
        stops = [stops] if isinstance(stops, str) else stops
        if not isinstance(stops, list) or not all(isinstance(s, str) and 0 < len(s) <= _LONGEST_STOP for s in stops):
            raise InvalidRequest(f"'stop' must be a text, or a list of texts, of 1 to {_LONGEST_STOP} characters each")
        if len(stops) > _MOST_STOPS:
            raise InvalidRequest(f"'stop' has {len(stops)} texts; at most {_MOST_STOPS} are allowed")
        keywords = {key: value for key, value in parameters.items() if key not in _OWN and self._reads(key, value)}
        if limit is not None and "max_tokens" in self._known:
            keywords["max_tokens"] = limit
        return Asked(self._prompt(request), keywords, limit, tuple(stops))

    def _reads(self, key: str, value: Any) -> bool:
        """True if `generate` takes a parameter; False if it makes no difference."""
        if key in _RANGES:
            low, high = _RANGES[key]
            if type(value) not in (int, float) or not low <= value <= high:
                raise InvalidRequest(f"'{key}' must be a number from {low} to {high}")
        if key == "seed" and (type(value) is not int or not -(2**63) <= value < 2**63):
            raise InvalidRequest("'seed' must be a whole number of 64 bits")
        if self._takes_all or key in self._known:
            return True
        if key in _NEUTRAL and value == _NEUTRAL[key]:
            return False
        known = sorted(self._known | {"max_tokens", "stop"})
        raise InvalidRequest(f"the model has no parameter '{key}' of this value; it reads {', '.join(known)}")

    def _prompt(self, request: InferRequest) -> str:
        raw = request.inputs["text_input"][0]
        try:
            text = raw.decode() if isinstance(raw, bytes) else str(raw)
        except UnicodeDecodeError:
            raise InvalidRequest("the text is not UTF-8") from None
        if not request.parameters.get(CHAT):
            return text
        if not callable(getattr(self.module, "chat_prompt", None)):
            raise InvalidRequest("the model takes no messages: it has no method chat_prompt(messages)")
        prompt = self.module.chat_prompt(_messages_of(text))
        if not isinstance(prompt, str):
            raise ModelFailed(f"chat_prompt returned a {type(prompt).__name__}; wanted is a text")
        return prompt


def _messages_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest("the text is no JSON list of messages") from None


def _bytes_array(value: bytes) -> np.ndarray:
    made = np.empty(1, np.object_)
    made[0] = value
    return made


def _part(text: str, reason: str, prompt_tokens: int, count: int) -> Answer:
    return {
        "text_output": _bytes_array(text.encode()),
        "finish_reason": _bytes_array(reason.encode()),
        "prompt_tokens": np.array([prompt_tokens]),
        "completion_tokens": np.array([count]),
    }
