"""Random programs of views and writes in place match the model of their memory (tests/programs/random_views.py);
`tox -e night` runs 20,000.
"""

import pytest

from tests.programs import random_views


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_programs_of_views(first):
    for seed in range(first, first + 100):
        random_views.run(seed)


def test_programs_of_views_on_a_device(device):
    for seed in range(1000, 1000 + (100 if device == "cpu" else 60)):
        random_views.run(seed, device)
