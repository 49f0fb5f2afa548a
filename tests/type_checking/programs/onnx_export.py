"""Export a model to ONNX and as a program, read both, and compare."""

import io
import tempfile
from pathlib import Path

import torchlite as torch
from torchlite import nn
from torchlite.export import Dim, export


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return torch.softmax(self.body(x), dim=-1)


torch.manual_seed(0)
model = Net().eval()
example = torch.randn(2, 4)
expected = model(example)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "net.onnx"
    torch.onnx.export(model, (example,), str(path), input_names=["x"], output_names=["y"])
    size = path.stat().st_size
    loaded = torch.onnx.load(str(path))
    assert torch.allclose(loaded(example), expected, atol=1e-6)

program = export(model, (example,), dynamic_shapes={"x": {0: Dim("batch")}})
buffer = io.BytesIO()
torch.export.save(program, buffer)
buffer.seek(0)
again = torch.export.load(buffer).module()
assert again(torch.randn(5, 4)).shape == (5, 3)

traced = torch.jit.trace(model, example)
stream = io.BytesIO()
torch.jit.save(traced, stream)
stream.seek(0)
assert torch.equal(torch.jit.load(stream)(example), expected)
print(size, len(list(program.graph.nodes)))
