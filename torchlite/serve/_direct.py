"""The way of an inference request to its endpoint, past the layers of the application that other requests take."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from . import _rest
from ._errors import ServeError
from ._http import gone_response, serve_error_response

_PATH = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/infer")


class DirectInference:
    """ASGI middleware that answers `infer` of the Open Inference Protocol. Searching routes, and handlers of
    exceptions in two layers, take a sixth of the time of a joined request. Its errors are answered in the same way.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        found = None
        if scope["type"] == "http" and scope["method"] == "POST" and not scope.get("root_path"):
            found = _PATH.fullmatch(scope["path"])
        if found is None:
            await self._app(scope, receive, send)
            return
        name, version = found.groups()
        scope["path_params"] = {"name": name} if version is None else {"name": name, "version": version}
        try:
            response: Response = await _rest.infer(Request(scope, receive, send))
        except ServeError as error:
            response = serve_error_response(scope["path"], error)
        except ClientDisconnect:
            response = gone_response()
        await response(scope, receive, send)
