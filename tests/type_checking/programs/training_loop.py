"""A training loop: a small network, an optimizer, a validation step."""

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import nn


class Network(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.second = nn.Linear(width, 2)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


torch.manual_seed(0)
inputs = torch.randn(64, 4)
labels = (inputs.sum(dim=1) > 0).long()
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Network().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()

history = []
for epoch in range(30):
    model.train()
    running = 0.0
    for start in range(0, len(inputs), 16):
        x, y = inputs[start : start + 16].to(device), labels[start : start + 16].to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        running += loss.item() * x.size(0)
    history.append(running / len(inputs))

model.eval()
with torch.no_grad():
    predicted = model(inputs.to(device)).argmax(dim=1).cpu()
    accuracy = (predicted == labels).float().mean().item()
print(f"loss {history[-1]:.3f}, accuracy {100 * accuracy:.1f}%")
assert history[-1] < history[0] and accuracy > 0.9
