"""The OpenAPI document of the HTTP endpoints."""

from __future__ import annotations

from typing import Any

from ._wire import DTYPES

_TEXT, _WHOLE, _FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
_COUNT = {**_NUMBER, "minimum": 1}
_SIZES = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_PARAMETERS = {"type": "object", "additionalProperties": {"anyOf": [_TEXT, {"type": "number"}, _FLAG]}}
_ERRORS = {400: "wrong request", 401: "no token", 403: "not allowed", 404: "no such model", 408: "slow client"} | {
    413: "too large", 415: "unknown encoding", 429: "too many requests", 503: "not ready", 504: "deadline passed",
}  # fmt: skip


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "required": required.split()} if required else made


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_DATATYPE = {"type": "string", "enum": list(DTYPES)}
_DURATION = _object("count ns", count=_WHOLE, ns=_WHOLE)
_SCHEMAS = {
    "Error": _object("error", error=_TEXT),
    "OpenAIError": _object(
        "error", error=_object("message type", message=_TEXT, type=_TEXT, param={}, code={})
    ),
    "Completion": _object(
        "id object created model choices", id=_TEXT, object=_TEXT, created=_WHOLE, model=_TEXT,
        choices=_list({"type": "object"}), usage={"type": "object"},
    ),
    "TorchServeError": _object("code type message", code=_WHOLE, type=_TEXT, message=_TEXT),
    "Status": _object("status", status=_TEXT),
    "TensorMetadata": _object(
        "name datatype shape", name=_TEXT, datatype=_TEXT, shape={"type": "array", "items": _WHOLE}
    ),
    "InferInput": _object(
        "name shape datatype", name=_TEXT, shape=_SIZES, datatype=_DATATYPE, parameters=_PARAMETERS,
        data={"type": "array", "items": {}},
    ),
    "InferRequest": _object(
        "inputs", id=_TEXT, parameters=_PARAMETERS, inputs=_list(_ref("InferInput")),
        outputs=_list(_object("name", name=_TEXT, parameters=_PARAMETERS)),
    ),
    "InferResponse": _object(
        "model_name outputs", id=_TEXT, model_name=_TEXT, model_version=_TEXT,
        outputs=_list(
            _object(
                "name shape datatype", name=_TEXT, shape=_SIZES, datatype=_DATATYPE, parameters=_PARAMETERS,
                data={"type": "array", "items": {}},
            )
        ),
    ),
    "ModelMetadata": _object(
        "name versions platform inputs outputs", name=_TEXT, versions=_list(_TEXT), platform=_TEXT,
        inputs=_list(_ref("TensorMetadata")), outputs=_list(_ref("TensorMetadata")),
    ),
    "ModelStatistics": _object(
        "name version inference_stats", name=_TEXT, version=_TEXT, last_inference=_WHOLE, inference_count=_WHOLE,
        execution_count=_WHOLE, inference_stats={"type": "object", "additionalProperties": _DURATION},
        batch_stats=_list({"type": "object"}),
    ),
    "LoadRequest": _object(parameters={"type": "object", "additionalProperties": False}),
    "UnloadRequest": _object(
        parameters={"type": "object", "properties": {"unload_dependents": _FLAG}, "additionalProperties": False}
    ),
}  # fmt: skip


def _answer(about: str, schema: Any = None, kind: str = "application/json") -> dict[str, Any]:
    return {"description": about, "content": {kind: {"schema": schema or {}}}}


def _errors(path: str, codes: str) -> dict[str, Any]:
    schema = _ref("Error" if path.startswith(("/v2", "/metrics")) else "TorchServeError")
    if path.startswith(("/v1", "/openai")):
        schema = _ref("OpenAIError")
    return {code: _answer(_ERRORS[int(code)], schema) for code in codes.split()}


_COMMON = "400 401 403"
_INFERENCE = f"{_COMMON} 404 408 413 415 429 503 504"


def _operation(
    path: str, about: str, success: Any, codes: str = _COMMON, body: Any = None, query: Any = (), also: Any = None
) -> dict[str, Any]:
    places = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    made: dict[str, Any] = {
        "summary": about,
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": _TEXT} for name in places),
            *({"name": key, "in": "query", "schema": kind, "required": key == "url"} for key, kind in query),
        ],
        "responses": {"200": success, **_errors(path, codes), **(also or {})},
    }
    if body is not None:
        made["requestBody"] = body
    return made


def _json_body(schema: Any, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _v2_paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        "/v2": {"get": _operation("/v2", "Server metadata", _answer("name, version, extensions"))},
        "/v2/health/live": {
            "get": _operation("/v2", "Liveness", _answer("the server runs", _object("live", live=_FLAG)))
        },
        "/v2/health/ready": {
            "get": _operation(
                "/v2", "Readiness", _answer("ready", _object("ready", ready=_FLAG)),
                also={"503": _answer("not ready", _object("ready", ready=_FLAG))},
            )
        },
        "/v2/repository/index": {
            "post": _operation(
                "/v2", "Models of the repository",
                _answer("models", _list(_object("name state", name=_TEXT, version=_TEXT, state=_TEXT, reason=_TEXT))),
                f"{_COMMON} 408 413 415 429", _json_body(_object(ready=_FLAG), False),
            )
        },
    }  # fmt: skip
    for word in ("load", "unload"):
        path = f"/v2/repository/models/{{name}}/{word}"
        paths[path] = {
            "post": _operation(
                path, f"{word.capitalize()} a model", {"description": "done"}, f"{_COMMON} 404 408 413 415 429",
                _json_body(_ref(f"{word.capitalize()}Request"), False),
            )
        }  # fmt: skip
    statistics = _answer("statistics", _object("model_stats", model_stats=_list(_ref("ModelStatistics"))))
    paths["/v2/models/stats"] = {"get": _operation("/v2", "Statistics of all models", statistics)}
    for model in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
        known = f"{_COMMON} 404 503"
        paths[model] = {"get": _operation(model, "Model metadata", _answer("metadata", _ref("ModelMetadata")), known)}
        paths[f"{model}/ready"] = {
            "get": _operation(
                model, "Model readiness", _answer("ready", _object("name ready", name=_TEXT, ready=_FLAG)), known
            )
        }
        paths[f"{model}/stats"] = {"get": _operation(model, "Model statistics", statistics, known)}
        infer = _operation(
            model, "Inference", _answer("outputs", _ref("InferResponse")), _INFERENCE, _json_body(_ref("InferRequest"))
        )
        infer["responses"]["200"]["content"]["application/octet-stream"] = {"schema": {}}
        paths[f"{model}/infer"] = {"post": infer}
        values = _json_body({"type": "object"})
        paths[f"{model}/generate"] = {
            "post": _operation(model, "Inference of plain values", _answer("values"), _INFERENCE, values)
        }
        events = _answer("events", _TEXT, "text/event-stream")
        paths[f"{model}/generate_stream"] = {"post": _operation(model, "Answers as events", events, _INFERENCE, values)}
    return paths


def _torchserve_paths() -> dict[str, Any]:
    status = _answer("status", _ref("Status"))
    paths: dict[str, Any] = {
        "/ping": {"get": _operation("/ping", "Health", status, also={"500": _answer("unhealthy", _ref("Status"))})},
        "/models": {
            "get": _operation(
                "/models", "Loaded models", _answer("models"), _COMMON,
                query=[("limit", _COUNT), ("next_page_token", _NUMBER)],
            ),
            "post": _operation(
                "/models", "Register a file of the folder of models", status, f"{_COMMON} 404",
                query=[
                    ("url", _TEXT), ("model_name", _TEXT), ("initial_workers", _NUMBER), ("synchronous", _FLAG),
                    ("batch_size", _COUNT), ("max_batch_delay", _NUMBER),
                ],
                also={"409": _answer("registered already", _ref("TorchServeError"))},
            ),
        },
        "/models/{name}/{version}/set-default": {
            "put": _operation("/models/{name}/{version}", "Set the default version", status, f"{_COMMON} 404 503")
        },
    }  # fmt: skip
    anything = {"required": False, "content": {"*/*": {"schema": {}}}}
    for place in ("{name}", "{name}/{version}"):
        model = f"/models/{place}"
        workers = [("min_worker", _COUNT), ("max_worker", _COUNT), ("synchronous", _FLAG)]
        paths[model] = {
            "get": _operation(model, "Describe a model", _answer("description"), f"{_COMMON} 404 503"),
            "put": _operation(model, "Scale workers", status, f"{_COMMON} 404 503", query=workers),
            "delete": _operation(model, "Unregister a model", status, f"{_COMMON} 404"),
        }
        answer = _answer("answer", {}, "*/*")
        for word in ("Prediction", "Explanation"):
            path = f"/{word.lower()}s/{place}"
            paths[path] = {
                "get": _operation(path, f"{word} of the query's values", answer, _INFERENCE),
                **{method: _operation(path, word, answer, _INFERENCE, anything) for method in ("post", "put")},
            }
    return paths


_TEXT_OPTIONS = {
    "model": _TEXT, "n": _COUNT, "stream": _FLAG, "max_tokens": _NUMBER, "stop": {"anyOf": [_TEXT, _list(_TEXT)]},
    "temperature": {"type": "number"}, "top_p": {"type": "number"}, "seed": _WHOLE,
    "stream_options": _object(include_usage=_FLAG),
}  # fmt: skip


def _openai_paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    message = _object("role content", role=_TEXT, content=_TEXT, name=_TEXT)
    texts = {
        "completions": _object("model prompt", prompt={"anyOf": [_TEXT, _list(_TEXT)]}, echo=_FLAG, **_TEXT_OPTIONS),
        "chat/completions": _object("model messages", messages=_list(message), **_TEXT_OPTIONS),
    }
    for base in ("/v1", "/openai/v1"):
        path = f"{base}/models"
        paths[path] = {"get": _operation(path, "Models of text", _answer("models"))}
        path = f"{base}/models/{{name}}"
        paths[path] = {"get": _operation(path, "A model of text", _answer("model"), f"{_COMMON} 404 503")}
        for word, schema in texts.items():
            answer = _answer("texts", _ref("Completion"))
            answer["content"]["text/event-stream"] = {"schema": _TEXT}
            path = f"{base}/{word}"
            paths[path] = {"post": _operation(path, "Texts of a model", answer, _INFERENCE, _json_body(schema))}
    return paths


def document() -> dict[str, Any]:
    """Return the document. Statuses 405 and 500 are of all endpoints and stand in none."""
    from torchlite import __torchlite_version__

    return {
        "openapi": "3.1.0",
        "info": {"title": "torchlite serve", "version": __torchlite_version__},
        "paths": {
            **_v2_paths(),
            **_torchserve_paths(),
            **_openai_paths(),
            "/metrics": {"get": _operation("/metrics", "Figures for Prometheus", _answer("text", _TEXT, "text/plain"))},
        },
        "components": {"schemas": _SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }
