"""A folder in HDFS.

Its one rule: a file is written beside its name and renamed to it, which the name node refuses if there is one. The settings are
those of Hadoop's files in HADOOP_CONF_DIR, and the user is HADOOP_USER_NAME or that of Kerberos, as for Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from hdfs_native import Client, FileStatus, WriteOptions

from barnabas.lake.keeping.folders import File, LakeError, in_pieces, nothing


@dataclass(frozen=True, slots=True)
class HdfsFolder:
    """Implements `Folder`."""

    url: str
    _client: Client
    _path: str

    def __str__(self) -> str:
        return self.url

    @property
    def is_local(self) -> bool:
        return False

    def __truediv__(self, below: str) -> HdfsFolder:
        return HdfsFolder(f"{self.url}/{below}", self._client, f"{self._path}/{below}")

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}" if name else self._path

    def files(self, below: str = "") -> list[File]:
        return sorted(self._file(each) for each in self._listed(below, is_deep=True) if not each.isdir)

    def files_here(self) -> list[File]:
        return sorted(self._file(each) for each in self._listed("") if not each.isdir)

    def folders(self, below: str = "") -> list[str]:
        return sorted(each.path.rpartition("/")[2] for each in self._listed(below) if each.isdir)

    def _listed(self, below: str, *, is_deep: bool = False) -> list[FileStatus]:
        with _failures(self.url):
            try:
                return list(self._client.list_status(self._at(below), recursive=is_deep))
            except FileNotFoundError:
                return []  # nothing was written yet, or it was removed meanwhile

    def _file(self, found: FileStatus) -> File:
        return File(found.path.removeprefix(f"{self._path}/"), found.length, int(found.modification_time))

    def read(self, name: str) -> bytes:
        with _failures(self.url):
            return self._client.read(self._at(name)).read()

    def source(self, name: str) -> IO[bytes]:
        with _failures(self.url):
            file = self._client.read(self._at(name))

        def fetch(offset: int, count: int) -> bytes:
            with _failures(self.url):
                return file.read_range(offset, count)

        return in_pieces(len(file), fetch)

    def write(self, name: str, content: bytes) -> None:
        with _failures(self.url), self._client.create(self._at(name), WriteOptions(overwrite=True)) as file:
            file.write(content)

    def replace(self, name: str, content: bytes) -> None:
        with _failures(self.url):
            self._client.rename(self._written(name, content), self._at(name), overwrite=True)

    def create(
        self, name: str, content: bytes, on_step: Callable[[str], None] = nothing, *, lasts: bool = True
    ) -> None:
        with _failures(self.url):
            temporary = self._written(name, content)
            try:
                self._client.rename(temporary, self._at(name), overwrite=False)
            except BaseException as error:
                self._client.delete(temporary)
                if "already exists" in str(error) or isinstance(error, FileExistsError):
                    raise FileExistsError(f"{self.url}/{name} already exists") from None
                raise
        on_step("named")

    def _written(self, name: str, content: bytes) -> str:
        folder, _, last = self._at(name).rpartition("/")
        temporary = f"{folder}/.{last}.{uuid.uuid4().hex}.tmp"
        with self._client.create(temporary, WriteOptions(overwrite=False)) as file:
            file.write(content)
        return temporary

    def flush(self, names: Iterable[str]) -> None:
        """A file that was closed lasts, as far as HDFS promises it."""

    def remove(self, names: Iterable[str]) -> None:
        with _failures(self.url):
            for name in names:
                self._client.delete(self._at(name))

    def remove_all(self, below: str = "") -> None:
        with _failures(self.url):
            self._client.delete(self._at(below), recursive=True)


def hdfs_folder(address: str) -> HdfsFolder:
    """Return the folder at an address. Raises LakeError."""
    scheme, _, place = address.rstrip("/").partition("://")
    host, _, path = place.partition("/")
    if not path:
        raise LakeError(f"{address} names no directory; an address is like hdfs://namenode:8020/lake")
    with _failures(address):
        return HdfsFolder(f"{scheme}://{place}", Client(f"{scheme}://{host}" if host else None), f"/{path}")


@contextmanager
def _failures(address: str) -> Iterator[None]:
    """Turn errors of HDFS into one line."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise LakeError(
            f"{address} cannot be used: {' '.join(str(error).split())}; the settings are those in HADOOP_CONF_DIR"
        ) from None
