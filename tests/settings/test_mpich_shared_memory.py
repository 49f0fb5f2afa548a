"""The files that MPICH leaves behind: only old regular files of this user with MPICH's names."""

import os
import time

from torchlite._settings import mpich_shared_memory


def test_files_that_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(mpich_shared_memory, "_FOLDER", f"{tmp_path}{os.sep}")
    name = next(
        text
        for text in ("mpich_shm_abc123", "mpich_shar_tmpABC123", "mpich_shar_tmp_ABC123", "mpich_shm_ABC123def")
        if mpich_shared_memory._NAME.fullmatch(text)
    )
    old = tmp_path / name
    old.write_bytes(b"")
    (tmp_path / "other").write_bytes(b"")
    folder, link, young = (tmp_path / (name[:-1] + digit) for digit in "789")
    folder.mkdir()
    link.symlink_to(old)
    young.write_bytes(b"")
    past = time.time() - 2 * mpich_shared_memory._MIN_AGE - 10
    for path in (old, folder, tmp_path / "other"):
        os.utime(path, (past, past))
    os.utime(link, (past, past), follow_symlinks=False)
    assert mpich_shared_memory._list_own_files() == ({str(old)}, True)
    young.unlink()
    assert mpich_shared_memory._list_own_files() == ({str(old)}, False)
