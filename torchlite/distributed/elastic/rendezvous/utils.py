"""The address of a meeting."""

from __future__ import annotations

import re

__all__ = ["parse_rendezvous_endpoint"]


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """Returns the host and the port of an endpoint.

    Args:
        endpoint: ``HOST``, ``HOST:PORT`` or nothing, which is ``localhost``.
        default_port: The port if the endpoint has none.

    Raises:
        ValueError: The text is no endpoint.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
        >>> parse_rendezvous_endpoint("node7:123", 29400), parse_rendezvous_endpoint("node7", 29400)
        (('node7', 123), ('node7', 29400))
    """
    text = "" if endpoint is None else endpoint.strip()
    if not text:
        return "localhost", default_port
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default_port)
    elif not port.isdigit() or int(port) > 65535:
        raise ValueError(f"The port number of the rendezvous endpoint '{text}' must be an integer between 0 and 65536.")
    if not re.match(r"^[\w\.:\-\[\]]+$", host):
        raise ValueError(
            f"The hostname of the rendezvous endpoint '{text}' must be a dot-separated list of labels, an IPv4 "
            "address, or an IPv6 address."
        )
    return host.strip("[]"), int(port)
