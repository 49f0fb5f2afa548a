"""Who gets in: a token, or on loopback no page of a browser that belongs to another host."""

from __future__ import annotations

import functools
import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ._errors import Forbidden, ServeError, Unauthorized

OPEN_PATHS = ("/v2/health/live", "/v2/health/ready", "/ping")  # for probes, which have no token
_READ = (b"authorization", b"host", b"origin")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def check_token(given: str | None, token: str) -> None:
    """Raise Unauthorized unless a header `authorization` has the server's token."""
    scheme, _, word = (given or "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(word.strip().encode(), token.encode()):
        raise Unauthorized("the request needs the header 'Authorization: Bearer TOKEN' with the server's token")


def check_host(headers: Mapping[str, str], own: str) -> None:
    """Raise Forbidden if the headers `host` or `origin` name another host than this machine: a page of a browser could
    reach the server by them.
    """
    for key in ("host", "origin"):
        word = headers.get(key)
        if word is not None and not _is_local(key, word, own):
            raise Forbidden(
                f"the header {key} names {word!r}, and the server answers this machine alone; give it a token"
            )


@functools.lru_cache(256)
def _is_local(key: str, word: str, own: str) -> bool:
    try:
        name = urlsplit(word if key == "origin" else f"//{word}").hostname
    except ValueError:
        return False
    return name in (*_LOCAL_NAMES, own)


class Guard:
    """ASGI middleware that lets in whom the settings allow."""

    def __init__(self, app: Any, token: str, local_host: str | None, respond: Any) -> None:
        self._app, self._token, self._local_host, self._respond = app, token, local_host, respond

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            try:
                self._check(scope)
            except ServeError as error:
                await self._respond(scope["path"], error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Any) -> None:
        headers = {k.decode(): v.decode("latin-1") for k, v in scope["headers"] if k in _READ}
        if self._token:
            if scope["path"] not in OPEN_PATHS:
                check_token(headers.get("authorization"), self._token)
        elif self._local_host is not None:
            check_host(headers, self._local_host)
