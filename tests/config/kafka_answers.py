"""Reads the answers of Kafka that the tests compare with."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent / "data"


def read(name: str) -> Any:
    path = _DATA / name
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
