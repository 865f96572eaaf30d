"""Folders: where a lake keeps its files, on this machine or at an address such as s3a://bucket/lake or hdfs://namenode/lake.

Its one rule: a lake needs no more of a file system than this: read, list, write, delete, and create a file unless it exists,
which decides who comes first. Nothing is renamed, appended to or locked. Names of files are relative to the folder, with
slashes. The libraries that reach an address are imported when one is opened.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self
from urllib.parse import quote

if TYPE_CHECKING:
    import pyarrow as pa

OBJECT_STORES: Final = ("s3", "s3a", "gs", "abfs", "abfss")
HDFS: Final = ("hdfs", "viewfs")
INSTALL: Final = "pip install 'barnabas[lake,stores]'"

_PIECE_BYTES: Final = 256 << 10
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]+):/")


class LakeError(Exception):
    """A lake that cannot be used as it is. The text says why, and what helps."""


def nothing(step: str) -> None:
    """Ignore steps."""


class File(NamedTuple):
    name: str
    size: int
    modified_ms: int


class Folder(Protocol):
    """A folder of a lake. Methods raise LakeError if it cannot be reached."""

    @property
    def url(self) -> str:
        """Its name for Spark."""

    @property
    def is_local(self) -> bool: ...

    def __truediv__(self, below: str) -> Self: ...

    def files(self, below: str = "") -> list[File]:
        """Return all files, also those in folders below, in the order of their names; nothing if there is no such folder."""

    def files_here(self) -> list[File]:
        """Return the files that are directly in it."""

    def folders(self, below: str = "") -> list[str]:
        """Return the names of the folders that are directly in it."""

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""

    def source(self, name: str) -> str | IO[bytes]:
        """Return what pyarrow reads this file from."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file that nobody reads before it is flushed and named elsewhere."""

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, which others see as it was or as it is now. It lasts."""

    def create(
        self, name: str, content: bytes, on_step: Callable[[str], None] = nothing, *, lasts: bool = True
    ) -> None:
        """Write a file, in one atomic step. Raises FileExistsError if there is one. It lasts, unless that is not needed."""

    def flush(self, names: Iterable[str]) -> None:
        """Make these files, and all that is in these folders, last."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files. Those that are gone are fine."""

    def remove_all(self, below: str = "") -> None:
        """Remove a folder with all that is in it."""


def is_address(place: str) -> bool:
    return _ADDRESS.match(place) is not None


def folder_at(place: Path | str | Folder) -> Folder:
    """Return the folder at a path or an address. Raises LakeError for an address that is not known."""
    if not isinstance(place, Path | str):
        return place
    found = _ADDRESS.match(str(place))
    if found is None:
        from barnabas.lake.keeping.local_folder import LocalFolder

        return LocalFolder(Path(place).absolute())
    if isinstance(place, Path):
        raise LakeError(f"{place} is no path: give an address as a text")
    try:
        if found[1] in OBJECT_STORES:
            from barnabas.lake.keeping.object_folder import object_folder

            return object_folder(place)
        if found[1] in HDFS:
            from barnabas.lake.keeping.hdfs_folder import hdfs_folder

            return hdfs_folder(place)
    except ModuleNotFoundError as error:
        raise LakeError(f"{error.name} is not installed, and a lake at {place} needs it: {INSTALL}") from None
    known = ", ".join(f"{scheme}://" for scheme in (*OBJECT_STORES, *HDFS))
    raise LakeError(f"{place} cannot be a lake: it is kept in a directory, or at an address with {known}")


def log_directory(folder: Folder) -> Path:
    """Return where Spark logs: in the lake or, if that is at an address or may only be read, in a directory of the user."""
    from barnabas.lake.keeping.local_folder import LocalFolder

    if isinstance(folder, LocalFolder) and may_be_written(inside := folder.path / "log"):
        return inside
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "barnabas" / quote(str(folder), safe="")


def may_be_written(directory: Path) -> bool:
    """Return whether this user may write in a directory, and to the files in it, or may make it."""
    by_effect = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    if not directory.is_dir():
        there = next(parent for parent in directory.parents if parent.exists())
        return os.access(there, os.W_OK | os.X_OK, **by_effect)
    is_ours = os.access(directory, os.W_OK | os.X_OK, **by_effect)
    return is_ours and all(os.access(each, os.W_OK, **by_effect) for each in directory.iterdir())


class _Pieces(io.RawIOBase):
    """A file of which pieces are fetched."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size, self._fetch, self._at = size, fetch, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = max(0, min(len(buffer), self._size - self._at))
        if count:
            buffer[:count] = self._fetch(self._at, count)
            self._at += count
        return count


def in_pieces(size: int, fetch: Callable[[int, int], bytes]) -> IO[bytes]:
    """Return a file of this size, of which `fetch(offset, count)` returns a piece."""
    return io.BufferedReader(_Pieces(size, fetch), _PIECE_BYTES)


def write_table(folder: Folder, name: str, table: pa.Table) -> None:
    """Write a table as a Parquet file."""
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(table, content)
    folder.write(name, content.getvalue())


def read_table(folder: Folder, name: str, columns: list[str] | None = None) -> Any:
    """Return the table of a Parquet file."""
    from pyarrow import parquet

    return parquet.ParquetFile(folder.source(name)).read(columns)


def rows_in(folder: Folder, name: str) -> int:
    """Return the number of rows of a Parquet file."""
    from pyarrow.parquet import read_metadata

    return int(read_metadata(folder.source(name)).num_rows)
