"""The master of a Spark session, checked before Spark starts: Spark itself tries for a minute, and prints stack traces.

Its one rule: only what is certainly wrong is refused. What a cluster manager decides, Spark finds out.
"""

from __future__ import annotations

import re
import socket

CONNECT_TIMEOUT_S = 5.0
_LOCAL = re.compile(r"local(\[([1-9]\d*|\*)(\s*,\s*\d+)?\])?|local-cluster\[.*\]")
_STANDALONE = re.compile(r"spark://(?P<places>[^/]+)")
_OTHER = re.compile(r"yarn|k8s://.+")


class MasterError(RuntimeError):
    """A master that is not one, or that does not answer."""


def check_master(master: str) -> None:
    """Raise MasterError if this is not a master of Spark, or if no master of a standalone cluster accepts connections."""
    if _LOCAL.fullmatch(master) or _OTHER.fullmatch(master):
        return
    found = _STANDALONE.fullmatch(master)
    places = [_place(text) for text in found["places"].split(",")] if found else []
    if not places or None in places:
        raise MasterError(f"spark.master {master}: must be local, local[N], spark://HOST:PORT, yarn or k8s://URL")
    faults = [fault for place in places if place is not None and (fault := _fault(*place))]
    if len(faults) == len(places):
        raise MasterError(f"spark.master {master}: {faults[0]}")


def _place(text: str) -> tuple[str, int] | None:
    host, _, port = text.strip().rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() and int(port) < 1 << 16 else None


def _fault(host: str, port: int) -> str:
    """Return why there is no connection; empty if there is one."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
            return ""
    except OSError as error:
        return f"{host}:{port} cannot be reached ({error.strerror or error})"
