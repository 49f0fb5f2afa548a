"""A module with an `assert` that pytest does not rewrite."""

import torchlite as torch


class Asserting(torch.nn.Module):
    def forward(self, x):
        assert x.sum() > 0
        return x + 1
