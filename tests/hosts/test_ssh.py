"""The commands of docs/hosts.md by SSH between machines."""

import re
import shutil
import sys

import pytest

from tests.distributed.rank_launcher import ROOT, mpiexec
from tests.hosts.machines import Machines, why_not

WHY_NOT = why_not() or ("" if shutil.which("sshd", path="/usr/sbin:/usr/bin") else "there is no server of SSH (sshd)")
pytestmark = [pytest.mark.night, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")]


@pytest.fixture(scope="module")
def two():
    with Machines(2) as machines:
        machines.variables = machines.serve_ssh()
        yield machines


@pytest.fixture
def hello(tmp_path):
    text = (ROOT / "docs" / "hosts.md").read_text()
    (tmp_path / "hello.py").write_text(re.search(r"```text\n(import socket\n.*?)```", text, re.DOTALL).group(1))
    return tmp_path / "hello.py"


def said(machines, *command):
    process = machines.start(0, *map(str, command), **machines.variables)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output
    return output


def ranks(output):
    return sorted(re.findall(r"rank (\d) of (\d) on (\S+): (\d) came", output))


EXPECTED = [("0", "4", "node1", "4"), ("1", "4", "node1", "4"), ("2", "4", "node2", "4"), ("3", "4", "node2", "4")]


def test_a_machine_reaches_the_other(two):
    assert said(two, "ssh", "node2", "hostname") == "node2\n"


def test_the_launcher_with_a_list_of_machines(two, hello):
    hosts = hello.with_name("hosts")
    hosts.write_text("node1 slots=2\nnode2 slots=2\n")
    command = [sys.executable, "-m", "torchlite.distributed.run", "--hostfile", hosts, "--nproc-per-node", 2, hello]
    assert ranks(said(two, *command)) == EXPECTED


def test_mpiexec_with_a_list_of_machines(two, hello):
    hosts = hello.with_name("hosts")
    hosts.write_text("node1:2\nnode2:2\n")
    assert ranks(said(two, mpiexec(), "-f", hosts, "-n", 4, sys.executable, hello)) == EXPECTED


def test_a_failure_names_rank_and_machine(two, tmp_path):
    hosts, program = tmp_path / "hosts", tmp_path / "fails.py"
    hosts.write_text("node1\nnode2\n")
    program.write_text(
        "import torchlite.distributed as dist\ndist.init_process_group('mpi')\n"
        "if dist.get_rank() == 1:\n    raise ValueError('tired')\ndist.barrier()\n"
    )
    command = [sys.executable, "-m", "torchlite.distributed.run", "--hostfile", hosts, program]
    process = two.start(0, *map(str, command), **two.variables)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 1, output
    assert re.search(r"torchlite-run: rank 1 \(local rank 0 on node2, pid \d+\) ended with exit code 1", output), output
    assert "ValueError: tired" in output
