"""The files of a lake for DuckDB: those on a disk by their paths, those at an address through the lake's folder.

Its one rule: DuckDB asks for the pieces that it needs, so of a large file only some columns are fetched. Its own extension for
object stores is downloaded when it is first used, and has settings of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any
from zlib import crc32

from barnabas.lake.keeping.folders import Folder

if TYPE_CHECKING:
    import duckdb

_NEVER = datetime(2000, 1, 1, tzinfo=UTC)
"""When a file was changed: they never are."""


def for_duckdb(connection: duckdb.DuckDBPyConnection, data: Folder, names: Iterable[str]) -> list[str]:
    """Return the names by which this connection reads files of a folder."""
    if data.is_local:
        return [str(data.source(name)) for name in names]
    scheme = f"lake{crc32(str(data).encode()):08x}"
    if scheme not in connection.list_filesystems():
        connection.register_filesystem(_file_system(data, scheme))
    return [f"{scheme}://{name}" for name in names]


def _file_system(data: Folder, scheme: str) -> Any:
    from fsspec import AbstractFileSystem

    class RemoteFiles(AbstractFileSystem):
        """Implements what DuckDB uses of fsspec."""

        protocol = scheme
        cachable = False

        def _open(self, path: str, mode: str = "rb", **options: Any) -> IO[bytes]:
            source = data.source(path.removeprefix(f"{scheme}://"))
            assert not isinstance(source, str)
            return source

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            with self._open(path) as file:
                return {"name": path, "size": file.seek(0, os.SEEK_END), "type": "file"}

        def modified(self, path: str) -> datetime:
            return _NEVER

        def glob(self, path: str, **options: Any) -> list[str]:
            return [path.removeprefix(f"{scheme}://")]

    return RemoteFiles()
