"""What a target of fuzzing is, and its kept inputs.

An input is a line of hexadecimal digits in `corpus/<target>.txt`. They were made by our own encoder, or found by a campaign and
minimised. An input that once broke something stays there for ever.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

CORPUS = Path(__file__).parent / "corpus"
MAX_SHOWN_BYTES = 500
NAMES = ("codec", "frames", "batches", "records", "recovery")


class Target(Protocol):
    """A module of this package."""

    def check(self, data: bytes) -> None:
        """Raise if the input breaks a promise."""

    def seeds(self) -> Iterable[bytes]:
        """Inputs made by our own encoder."""


class Failure(NamedTuple):
    """An input that broke a promise."""

    target: str
    data: bytes
    error: BaseException

    def __str__(self) -> str:
        kind, text = type(self.error).__name__, str(self.error).partition("\n")[0][:300]
        return f"{self.target}: {kind}: {text}\n  again with: python -m tests.fuzz {self.target} --input {self._argument()}"

    def _argument(self) -> str:
        """The input itself, or the name of a file that has it."""
        if len(self.data) <= MAX_SHOWN_BYTES:
            return self.data.hex()
        path = Path(tempfile.gettempdir()) / f"{self.target}-{zlib.crc32(self.data):08x}.input"
        path.write_bytes(self.data)
        return f"@{path}"


def load(name: str) -> Target:
    return cast(Target, import_module(f"tests.fuzz.{name}"))


def kept(name: str) -> list[bytes]:
    """The inputs in the repository."""
    path = CORPUS / f"{name}.txt"
    return [bytes.fromhex(line) for line in path.read_text().split()] if path.exists() else []


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Write the inputs in a stable order, small ones first."""
    lines = (data.hex() for data in sorted(set(inputs), key=lambda data: (len(data), data)) if data)
    (CORPUS / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


def minimised(data: bytes, is_bad: Callable[[bytes], bool]) -> bytes:
    """A smaller input that is still bad: pieces are left out, then bytes become zero."""
    size = len(data) // 2
    while size:
        position = 0
        while position < len(data):
            shorter = data[:position] + data[position + size :]
            if is_bad(shorter):
                data = shorter
            else:
                position += size
        size //= 2
    for position in range(len(data)):
        simpler = data[:position] + b"\0" + data[position + 1 :]
        if data[position] and is_bad(simpler):
            data = simpler
    return data
