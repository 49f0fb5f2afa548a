import pytest

from . import asgi_client


@pytest.fixture(scope="session")
def onnx_file(tmp_path_factory):
    """The network as an ONNX file `net.onnx`."""
    return asgi_client.write_onnx(tmp_path_factory.mktemp("served") / "net.onnx")
