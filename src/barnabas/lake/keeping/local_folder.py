"""A folder in a directory of this machine, or in one that is mounted."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from barnabas.lake.keeping.folders import File, nothing


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """Implements `Folder`."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def url(self) -> str:
        return f"file:{self.path}"  # the default file system of Spark may be another one

    @property
    def is_local(self) -> bool:
        return True

    def __truediv__(self, below: str) -> LocalFolder:
        return LocalFolder(self.path / below)

    def files(self, below: str = "") -> list[File]:
        found = []
        for walked, _, names in os.walk(self.path / below, onerror=_unless_gone):
            for name in names:
                path = Path(walked) / name
                with suppress(FileNotFoundError):  # removed since it was listed
                    status = path.stat()
                    at = path.relative_to(self.path).as_posix()
                    found.append(File(at, status.st_size, int(status.st_mtime * 1000)))
        return sorted(found)

    def files_here(self) -> list[File]:
        found = [(path, path.stat()) for path in self.path.iterdir() if path.is_file()] if self.path.is_dir() else []
        return sorted(File(path.name, status.st_size, int(status.st_mtime * 1000)) for path, status in found)

    def folders(self, below: str = "") -> list[str]:
        try:
            with os.scandir(self.path / below) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def source(self, name: str) -> str:
        return str(self.path / name)

    def write(self, name: str, content: bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def replace(self, name: str, content: bytes) -> None:
        temporary = self._written(name, content)
        temporary.replace(self.path / name)
        _sync(temporary.parent)

    def create(
        self, name: str, content: bytes, on_step: Callable[[str], None] = nothing, *, lasts: bool = True
    ) -> None:
        path, temporary = self.path / name, self._written(name, content, on_step, lasts=lasts)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise FileExistsError(f"{path} already exists") from None
        except OSError:  # a file system without hard links
            if path.exists():
                raise FileExistsError(f"{path} already exists") from None
            temporary.rename(path)
        finally:
            temporary.unlink(missing_ok=True)
        on_step("named")
        if lasts:
            _sync(path.parent)
            on_step("name synced")

    def _written(
        self, name: str, content: bytes, on_step: Callable[[str], None] = nothing, *, lasts: bool = True
    ) -> Path:
        """Write a file beside the one that it will be."""
        path = self.path / name
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            if lasts:
                file.flush()
                on_step("written")
                os.fsync(file.fileno())
                on_step("synced")
        return temporary

    def flush(self, names: Iterable[str]) -> None:
        """Flush files, and the entries of all directories from them up to this one, each once."""
        folders: dict[Path, None] = {}
        for path in (self.path / name for name in names):
            if path.is_file():
                _sync(path)
            for walked, _, inside in os.walk(path):
                for name in inside:
                    _sync(Path(walked) / name)
                folders[Path(walked)] = None
            folders |= dict.fromkeys(parent for parent in path.parents if parent.is_relative_to(self.path))
        for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
            _sync(folder)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def remove_all(self, below: str = "") -> None:
        shutil.rmtree(self.path / below, ignore_errors=True)

    def remove_empty(self) -> None:
        """Remove this directory, if it is empty."""
        with suppress(OSError):
            self.path.rmdir()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unless_gone(error: OSError) -> None:
    """Raise what keeps a directory from being read: without its files, a lake would have fewer rows."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
