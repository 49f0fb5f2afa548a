"""Serves models on Ray Serve: replicas of the application of `torchlite serve` behind Ray's proxy.

    from ray import serve
    from torchlite.serve import Settings
    from torchlite.serve.ray import deployment

    serve.run(deployment(Settings(models=("/models/net.onnx",), max_batch=16), num_replicas=2))

Ray is an extra of its own: `pip install 'torchlite-nd[serve,ray]'`. `docs/howto/serve-at-scale.md` says how it works.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from . import Settings, create_app

__all__ = ["deployment"]

# What Ray does itself: its proxy listens, and its options set the limits.
_OF_RAY = ("port", "grpc_port", "max_connections", "drain_delay", "tls_cert", "tls_key")


def deployment(
    settings: Settings, *, num_replicas: int | str | None = 2, name: str = "torchlite", **options: Any
) -> Any:
    """Makes an application of Ray Serve whose replicas answer all HTTP addresses of `torchlite serve`.

    Each replica loads the models and joins requests to batches. A replica is healthy while its models are loaded. One
    that is stopped answers what it has first, for at most `settings.drain` seconds.

    Args:
        settings: The options. Paths must exist on each node. Models are fixed: requests that load or unload them get
            status 403, because they would reach one replica alone.
        num_replicas: The number of replicas, or `"auto"`; None with `autoscaling_config`.
        name: The deployment's name.
        options: Further options of `ray.serve.deployment`, such as `ray_actor_options` and `autoscaling_config`.

    Returns:
        The application, for `ray.serve.run` and for configuration files of Ray Serve.

    Raises:
        ImportError: Ray Serve, or a package of the extra `serve`, is missing.
        ValueError: The settings name no model, or have an option that is Ray's.

    Example:
        >>> from torchlite.serve import Settings
        >>> from torchlite.serve.ray import deployment
        >>> deployment(Settings(models=("/models/net.onnx",)))  # doctest: +SKIP
        Application(...)
    """
    try:
        from ray import serve
    except ImportError as error:
        raise ImportError("torchlite.serve.ray needs Ray Serve: pip install 'torchlite-nd[serve,ray]'") from error
    if not settings.models:
        raise ValueError("settings: name a model, models=(...)")
    defaults = Settings()
    for key in _OF_RAY:
        if getattr(settings, key) != getattr(defaults, key):
            raise ValueError(f"settings: '{key}' is an option of Ray Serve's proxy or of its deployments")
    fixed = dataclasses.replace(settings, management=False)
    # A replica takes what its queue holds and what it computes, so that the queue answers 429 and Ray holds nothing.
    given: dict[str, Any] = {
        "max_ongoing_requests": settings.max_queue + max(settings.threads, settings.workers) * settings.max_batch,
        "graceful_shutdown_timeout_s": settings.drain,
        "health_check_period_s": 5,
        "health_check_timeout_s": 10,
        **options,
    }
    made = serve.deployment(serve.ingress(_Application(fixed))(_Replica))
    return made.options(name=name, num_replicas=num_replicas, **given).bind()


class _Application:
    """The application, which a replica makes when it starts: until then it can be pickled."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: Any = None

    @property
    def is_ready(self) -> bool:
        """True while all models are loaded."""
        return self._app is not None and self._app.state.service.is_ready

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            self._app = create_app(self._settings)
        prefix = scope.get("root_path")
        if prefix:  # of Ray's route; the application's addresses begin with `/`
            scope = {**scope, "path": scope["path"].removeprefix(prefix) or "/", "root_path": ""}
        await self._app(scope, receive, send)


class _Replica:
    """What Ray asks a replica, beside the application's addresses."""

    app: _Application  # by `ray.serve.ingress`

    async def check_health(self) -> None:
        """Raise RuntimeError unless all models are loaded."""
        if not self.app.is_ready:
            raise RuntimeError("the models are not loaded")
