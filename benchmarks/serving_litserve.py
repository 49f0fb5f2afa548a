"""A network of `serving_networks.py` in PyTorch under LitServe: `serving_litserve.py NAME WEIGHTS PORT ROWS`."""

import base64
import sys
from typing import Any

import litserve
import numpy as np
import serving_networks
import torch


class Network(litserve.LitAPI):
    """Answers JSON: lists of numbers, or for images the bytes of a tensor in base64."""

    def setup(self, device: str) -> None:
        """Load the network in the process that computes."""
        torch.set_num_threads(1)
        self.name = sys.argv[1]
        self.network = serving_networks.make(self.name, torch)
        self.network.load_state_dict(torch.load(sys.argv[2], weights_only=True))

    def decode_request(self, request: dict) -> tuple[Any, ...]:
        """Return the tensors of one row."""
        if self.name == "cnn":
            raw = bytearray(base64.b64decode(request["x"]))
            return (torch.from_numpy(np.frombuffer(raw, np.float32).reshape(3, 96, 96)),)
        dtypes = {"ids": torch.int64, "mask": torch.float32, "x": torch.float32}
        names = serving_networks.input_names(self.name)
        return tuple(torch.tensor(request[name], dtype=dtypes[name]) for name in names)

    def batch(self, inputs: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Join rows."""
        return tuple(map(torch.stack, zip(*inputs, strict=True)))

    def predict(self, inputs: tuple[Any, ...]) -> Any:
        """Call the network."""
        with torch.inference_mode():
            if int(sys.argv[4]) > 1:
                return self.network(*inputs)
            return self.network(*(tensor[None] for tensor in inputs))[0]

    def unbatch(self, output: Any) -> list[Any]:
        """Split rows."""
        return list(output)

    def encode_response(self, output: Any) -> dict[str, Any]:
        """Return the answer's JSON."""
        return {"output": output.tolist()}


if __name__ == "__main__":
    rows = int(sys.argv[4])
    api = Network(max_batch_size=rows, batch_timeout=0.002) if rows > 1 else Network()
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=60)
    server.run(host="127.0.0.1", port=int(sys.argv[3]), generate_client_file=False, log_level="warning")
