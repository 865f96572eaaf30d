"""Log dirs that were copied to an address: they are mirrored on this machine, and read there like any other.

Its one rule: a file is fetched if it is new, or has another size or time than the mirror's, which has the time of the original.
So each segment is fetched once, and the active one when it was copied again. What is gone at the address goes from the mirror.
"""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from barnabas.lake.keeping.folders import Folder, is_address

_UNFINISHED = ".fetching"


def mirror_of(address: str) -> Path:
    """Return the directory of this machine for the files of an address."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "barnabas" / "mirrors" / quote(address.rstrip("/"), safe="")


def place_of(source: str) -> Path:
    """Return the directory to read for a source, which is a directory or an address."""
    return mirror_of(source) if is_address(source) else Path(source)


def mirror(folder: Folder, directory: Path) -> int:
    """Make a directory equal to a folder. Return the number of files that were fetched. Raises LakeError."""
    there = {file.name: file for file in folder.files()}
    here = {}
    for path in directory.rglob("*"):
        if path.is_file():
            status = path.stat()
            here[path.relative_to(directory).as_posix()] = (status.st_size, status.st_mtime_ns // 1_000_000)
    fetched = 0
    for name, file in there.items():
        if here.get(name) != (file.size, file.modified_ms):
            with suppress(FileNotFoundError):  # removed since it was listed
                _fetch(folder, name, directory / name, file.modified_ms)
                fetched += 1
    for name in here.keys() - there.keys():
        (directory / name).unlink(missing_ok=True)
    return fetched


def _fetch(folder: Folder, name: str, path: Path, modified_ms: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_UNFINISHED}")
    source = folder.source(name)
    assert not isinstance(source, str)
    with source, temporary.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    os.utime(temporary, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
    temporary.replace(path)
