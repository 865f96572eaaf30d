"""Certificates for tests, made with the openssl command: an authority, a server, a client, and an authority nobody trusts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

PASSWORD = "s3cret"
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]


class Certificates(NamedTuple):
    """Files in PEM; a store is a key and its certificate in one file, that of the client with a password."""

    authority: Path
    other_authority: Path
    server_store: Path  # for 127.0.0.1 and localhost
    misnamed_store: Path  # for elsewhere.example
    client_store: Path


def make_certificates(folder: Path) -> Certificates:
    for name in ("authority", "other"):
        command = ["req", "-x509", *_KEY, "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2"]
        _openssl(folder, *command, "-subj", f"/CN={name}")
    return Certificates(
        folder / "authority.pem",
        folder / "other.pem",
        _signed(folder, "server", "IP:127.0.0.1,DNS:localhost"),
        _signed(folder, "misnamed", "DNS:elsewhere.example"),
        _signed(folder, "client", "DNS:client", PASSWORD),
    )


def _signed(folder: Path, name: str, alternative_names: str, password: str | None = None) -> Path:
    protection = ["-nodes"] if password is None else ["-passout", f"pass:{password}"]
    _openssl(folder, "req", *_KEY, *protection, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    (folder / f"{name}.ext").write_text(f"subjectAltName={alternative_names}\n")
    authority = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"]
    signing = ["x509", "-req", "-in", f"{name}.csr", *authority, "-out", f"{name}.crt", "-days", "2"]
    _openssl(folder, *signing, "-extfile", f"{name}.ext")
    store = folder / f"{name}.store.pem"
    store.write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    return store


def _openssl(folder: Path, *args: str) -> None:
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True, timeout=60)
