"""Recurrent networks: an LSTM over packed sequences of several lengths, and a GRU cell by hand."""

import torchlite as torch
from torchlite import nn
from torchlite.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Tagger(nn.Module):
    def __init__(self, vocab, hidden, tags):
        super().__init__()
        self.embedding = nn.Embedding(vocab, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        output, (h_n, c_n) = self.lstm(packed)
        padded, _ = pad_packed_sequence(output, batch_first=True)
        return self.out(padded), h_n, c_n


torch.manual_seed(0)
sequences = [torch.randint(1, 10, (n,)) for n in (5, 3, 7)]
lengths = torch.tensor([len(s) for s in sequences])
tokens = pad_sequence(sequences, batch_first=True)
tags = tokens % 3
model = Tagger(10, 6, 3)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
losses = []
hidden = cell = torch.empty(0)
for _ in range(10):
    scores, hidden, cell = model(tokens, lengths)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten(), ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert hidden.shape == cell.shape == (4, 3, 6) and losses[-1] < losses[0]

gru = nn.GRUCell(2, 4)
state = torch.zeros(3, 4)
outputs = []
for x in torch.randn(5, 3, 2):
    state = gru(x, state)
    outputs.append(state)
stacked = torch.stack(outputs)
print(losses[-1], stacked.mean().item())
assert stacked.shape == (5, 3, 4)
