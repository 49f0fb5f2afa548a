"""Archives of compiled programs."""

import os

import pytest

from torchlite_backends.cc.kernel_archive import DamagedArchiveError, KernelArchive, program_key, write_archive

LIBRARIES = {program_key(f"source {n}"): bytes([n]) * 5000 + bytes(range(256)) * n for n in range(1, 8)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "level.kernels"
    write_archive(path, LIBRARIES.items(), {"level": "level", "flags": ("-O3",)})
    return path


def test_programs_are_read_back(path):
    archive = KernelArchive(path)
    assert archive.facts["level"] == "level" and archive.facts["flags"] == ["-O3"]
    assert len(archive) == 7 and set(archive) == set(LIBRARIES)
    assert {key: archive.read(key) for key in archive} == LIBRARIES
    assert archive.read(program_key("another source")) is None


def test_the_same_programs_give_the_same_bytes(path, tmp_path):
    write_archive(tmp_path / "again", reversed(LIBRARIES.items()), {"level": "level", "flags": ("-O3",)})
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_file_that_is_cut_or_longer_is_refused(path):
    data = path.read_bytes()
    for length in [*range(200), *range(200, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(DamagedArchiveError, match="is damaged"):
            KernelArchive(path)
    path.write_bytes(data + b"1")
    with pytest.raises(DamagedArchiveError):
        KernelArchive(path)


def test_each_changed_byte_is_noticed(path):
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        try:
            archive = KernelArchive(path)
            read = {}
            for key in archive:
                read[key] = archive.read(key)
        except DamagedArchiveError:
            continue
        assert read == LIBRARIES  # bytes that no program needs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_processes_read_at_once(path):
    archive = KernelArchive(path)
    keys = list(archive) * 300
    child = os.fork()
    if not child:
        try:
            os._exit(any(archive.read(key) != LIBRARIES[key] for key in keys))
        except BaseException:
            os._exit(2)
    mine = [archive.read(key) == LIBRARIES[key] for key in keys]
    assert os.waitpid(child, 0)[1] == 0 and all(mine)


def test_an_open_archive_outlives_its_file(path):
    archive = KernelArchive(path)
    path.unlink()
    path.write_bytes(b"a later version")
    assert {key: archive.read(key) for key in archive} == LIBRARIES
