"""The fake CUDA backend, for the front end's tests."""

import pytest

from .fake_backend import installed


@pytest.fixture
def fake():
    """Two fake CUDA devices; the fixture is their backend."""
    with installed() as backend:
        yield backend
