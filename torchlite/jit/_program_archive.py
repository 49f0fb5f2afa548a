"""ProgramReader: reads TorchScript archives, checkpoint records plus compressed program text."""

from __future__ import annotations

import re
import zipfile
import zlib
from typing import Any

from .._serialization.zip_archive import ArchiveReader, corrupt_archive_error

# Limit of text and compressed records: a constant plus a multiple of the file length. Programs from PyTorch and
# torchlite need at most twice their length. A byte of text costs about 4 us.
_FREE, _TIMES = 1 << 18, 4
# Limit of one definition, whose syntax tree takes up to four hundred times its bytes.
_FREE_DEFINITION, _SHARE = 1 << 17, 4


class ProgramReader(ArchiveReader):
    """Reader of a program's records. RuntimeError names a damaged record."""

    def __init__(self, stream: Any, mapped: str = "", from_position: bool = False):
        super().__init__(stream, mapped=mapped, from_position=from_position)
        self._room = _FREE + _TIMES * self.length
        self.longest = _FREE_DEFINITION + self.length // _SHARE

    def _spend_budget(self, name: str, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise corrupt_archive_error(f"file {name}", "the record is longer than a file of this length can have")

    def text(self, name: str) -> str:
        """Return a text record, decompressed if needed."""
        data = self.inflated(name, is_text=True)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise corrupt_archive_error(f"file {name}", "it is no text") from None

    def inflated(self, name: str, is_text: bool = False) -> bytes:
        """Return the bytes of a possibly compressed record."""
        info = self._records.get(name)
        if info is None or info.compress_type == zipfile.ZIP_STORED:
            if info is not None and is_text:
                self._spend_budget(name, info.file_size)
            return self.bytes(name)
        if info.compress_type != zipfile.ZIP_DEFLATED or info.flag_bits & 1:
            raise corrupt_archive_error(f"file {name}", "the record is compressed in an unknown way, or encrypted")
        self._spend_budget(name, info.file_size)
        machine = zlib.decompressobj(-15)
        try:
            out = machine.decompress(self._read_compressed(name, info), info.file_size + 1)
        except zlib.error as error:
            raise corrupt_archive_error(f"file {name}", str(error)) from None
        if len(out) != info.file_size or info.CRC and zlib.crc32(out) != info.CRC:
            raise corrupt_archive_error(f"file {name}", "its length or checksum is wrong")
        return out

    def _read_compressed(self, name: str, info: zipfile.ZipInfo) -> bytes:
        self._stream.seek(self._data_offset(info, name))
        return self._stream.read(info.compress_size)

    def version(self) -> int:
        """Return the operator version of the program."""
        text = self.bytes("version" if self.has("version") else ".data/version")
        found = re.match(rb"\s*(\d{1,9})", text)
        return int(found[1]) if found is not None else 1
