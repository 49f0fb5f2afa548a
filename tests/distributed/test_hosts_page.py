"""The check of docs/hosts.md is a program that runs."""

import re
import sys

from tests.distributed.rank_launcher import ROOT, finish, mpiexec, needs_mpi


@needs_mpi
def test_the_check(tmp_path):
    text = (ROOT / "docs" / "hosts.md").read_text()
    program = re.search(r"```text\n(import socket\n.*?)```", text, re.DOTALL)
    assert program is not None
    (tmp_path / "hello.py").write_text(program.group(1))
    ended = finish([mpiexec(), "-n", "2", sys.executable, str(tmp_path / "hello.py")], seconds=60)
    assert ended.returncode == 0
    assert sorted(re.findall(r"rank (\d) of 2 on \S+: 2 came", ended.stdout)) == ["0", "1"], ended.stdout
