"""A data set of one's own, a collate function, samplers and splits."""

import random

import torchlite as torch
from torchlite.utils.data import DataLoader, Dataset, Subset, TensorDataset, WeightedRandomSampler, random_split


class Sentences(Dataset):
    def __init__(self, count, transform=None):
        generator = random.Random(0)
        self.rows = [[generator.randint(1, 9) for _ in range(generator.randint(2, 6))] for _ in range(count)]
        self.transform = transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = torch.tensor(self.rows[index])
        if self.transform:
            row = self.transform(row)
        return row, len(self.rows[index])


def collate(batch):
    rows, lengths = zip(*batch)
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True), torch.tensor(lengths)


def seed_worker(worker_id):
    random.seed(worker_id)


dataset = Sentences(20, transform=lambda row: row * 2)
train, valid = random_split(dataset, [0.75, 0.25], generator=torch.Generator().manual_seed(0))
loader = DataLoader(
    train, batch_size=4, shuffle=True, collate_fn=collate, num_workers=0, worker_init_fn=seed_worker, drop_last=False
)
total = 0
for step, (tokens, lengths) in enumerate(loader):
    mask = torch.arange(tokens.size(1))[None, :] < lengths[:, None]
    total += int(mask.sum())
    assert tokens.shape == mask.shape
print(len(loader), len(valid), total)
assert total == sum(len(dataset.rows[i]) for i in train.indices)

pairs = TensorDataset(torch.arange(10.0), torch.arange(10) % 2)
weights = [1.0 if pairs[i][1] else 3.0 for i in range(len(pairs))]
sampler = WeightedRandomSampler(weights, num_samples=6, replacement=True)
for x, y in DataLoader(pairs, batch_size=3, sampler=sampler):
    assert x.shape == y.shape == (3,) and y.dtype == torch.int64
first = next(iter(DataLoader(Subset(pairs, [1, 2]), batch_size=2)))
print(first[0].tolist())
assert first[1].tolist() == [1, 0]
