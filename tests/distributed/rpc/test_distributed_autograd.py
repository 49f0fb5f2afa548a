"""Backward passes over three workers; `gradients.py` and `networks.py` have the cases."""

import pytest

from tests.distributed.rank_launcher import ROOT
from tests.distributed.test_by_hand import end, free_port, start


def run(program, case):
    port, path = free_port(), str(ROOT / "tests" / "distributed" / "rpc" / program)
    return end([start(path, case, port, rank, 3) for rank in range(3)])


@pytest.mark.parametrize(
    "case", ["one_call,structures,several_passes", "through_all,deep,on_another_worker", "failures", "lost"]
)
def test_gradients(case):
    codes, outputs = run("gradients.py", case)
    if case == "lost":
        assert codes.pop(1) == 3, outputs
        del outputs[1]
    assert not any(codes) and all(output.endswith("done\n") for output in outputs), "\n".join(outputs)


@pytest.mark.parametrize("case", ["recurrent,parameter_server", "remote_modules,batched_updates"])
def test_networks(case):
    codes, outputs = run("networks.py", case)
    assert not any(codes) and all(output.endswith("done\n") for output in outputs), "\n".join(outputs)
