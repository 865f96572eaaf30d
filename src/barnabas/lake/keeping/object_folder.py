"""A folder in an object store: Amazon S3 and what speaks its protocol, Google Cloud Storage, or Azure.

Its one rule: a file is created with the condition that there is none (If-None-Match), which the store decides. The settings are
those of the environment, as every client of such a store reads them: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import ObjectStore, from_url

from barnabas.lake.keeping.folders import File, LakeError, in_pieces, nothing
from barnabas.lake.spark.stores import DEFAULT_REGION, s3_endpoint

if TYPE_CHECKING:
    from obstore import ObjectMeta

_MAX_TRIES: Final = 3
_TRYING_S: Final = 30


@dataclass(frozen=True, slots=True)
class ObjectFolder:
    """Implements `Folder`. There are no folders in a store, but names that begin alike."""

    url: str
    _store: ObjectStore
    _below: str = ""
    """The path of this folder in the store."""

    def __str__(self) -> str:
        return self.url

    @property
    def is_local(self) -> bool:
        return False

    def __truediv__(self, below: str) -> ObjectFolder:
        return ObjectFolder(f"{self.url}/{below}", self._store, self._at(below))

    def _at(self, name: str) -> str:
        return "/".join(filter(None, (self._below, name)))

    def files(self, below: str = "") -> list[File]:
        with _failures(self.url):
            listed = obstore.list(self._store, self._at(below) or None).collect()
        return sorted(map(self._file, listed))

    def _file(self, found: ObjectMeta) -> File:
        name = found["path"].removeprefix(f"{self._below}/" if self._below else "")
        return File(name, found["size"], int(found["last_modified"].timestamp() * 1000))

    def files_here(self) -> list[File]:
        with _failures(self.url):
            found = obstore.list_with_delimiter(self._store, self._below or None)
        return sorted(map(self._file, found["objects"]))

    def folders(self, below: str = "") -> list[str]:
        with _failures(self.url):
            found = obstore.list_with_delimiter(self._store, self._at(below) or None)
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])

    def read(self, name: str) -> bytes:
        with _failures(self.url):
            return bytes(obstore.get(self._store, self._at(name)).bytes())

    def source(self, name: str) -> IO[bytes]:
        path = self._at(name)

        def fetch(offset: int, count: int) -> bytes:
            with _failures(self.url):
                return bytes(obstore.get_range(self._store, path, start=offset, length=count))

        with _failures(self.url):
            return in_pieces(obstore.head(self._store, path)["size"], fetch)

    def write(self, name: str, content: bytes) -> None:
        with _failures(self.url):
            obstore.put(self._store, self._at(name), content)

    replace = write

    def create(
        self, name: str, content: bytes, on_step: Callable[[str], None] = nothing, *, lasts: bool = True
    ) -> None:
        with _failures(self.url):
            try:
                obstore.put(self._store, self._at(name), content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                raise FileExistsError(f"{self.url}/{name} already exists") from None
        on_step("named")

    def flush(self, names: Iterable[str]) -> None:
        """What is in a store lasts."""

    def remove(self, names: Iterable[str]) -> None:
        with _failures(self.url):
            obstore.delete(self._store, [self._at(name) for name in names])

    def remove_all(self, below: str = "") -> None:
        self.remove(file.name for file in self.files(below))


def object_folder(address: str) -> ObjectFolder:
    """Return the folder at an address. Raises LakeError."""
    scheme, _, place = address.rstrip("/").partition("://")
    if not place:
        raise LakeError(f"{address} names no bucket; an address is like s3a://bucket/lake")
    scheme = {"s3": "s3a"}.get(scheme, scheme)
    options: dict[str, Any] = {
        "client_options": {"allow_http": s3_endpoint().startswith("http:"), "connect_timeout": timedelta(seconds=5)},
        "retry_config": {"max_retries": _MAX_TRIES, "retry_timeout": timedelta(seconds=_TRYING_S)},
    }
    if scheme == "s3a" and "AWS_REGION" not in os.environ and "AWS_DEFAULT_REGION" not in os.environ:
        options["region"] = DEFAULT_REGION
    with _failures(address):
        return ObjectFolder(f"{scheme}://{place}", from_url(f"{scheme}://{place}", **options))


@contextmanager
def _failures(address: str) -> Iterator[None]:
    """Turn errors of the store into one line that says what helps."""
    try:
        yield
    except PermissionError as error:
        raise LakeError(f"{address}: access was denied: {_reason(str(error))}; {_ADVICE}") from None
    except BaseError as error:
        text = str(error)
        if "NoSuchBucket" in text:
            raise LakeError(f"{address}: there is no such bucket; create it first") from None
        raise LakeError(f"{address} cannot be used: {_reason(text)}; {_ADVICE}") from None


_ADVICE: Final = "credentials and the server are those of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"


_OF_THE_MACHINE: Final = "169.254.169.254"
"""Where machines of AWS are told their role."""


def _reason(text: str) -> str:
    """Return what a store said, without its XML and the library's structure."""
    if _OF_THE_MACHINE in text:
        return "there are no credentials, and the machine has no role"
    if found := re.search(r"<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", text, re.DOTALL):
        return f"{found[1]}: {found[2]}"
    return text.partition("\n")[0]
