"""franz-go, the Go client: records, transactions, exactly-once copies, and groups of all types but streams: franz/main.go."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tools.apache_kafka import ROOT, Barnabas

from barnabas.config.unsupported import SERVED_MECHANISMS
from barnabas.security.oauth.unsecured import make_token
from barnabas.testing import Broker, Security
from tests.client.share_scenes import set_up_group
from tests.interop.side_by_side import IN_A_HURRY

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "franz"
SEEN = """\
records: missing 0
transactions: fenced true state CompleteCommit
copied 300 different 300 lag 0
classic group: seen 200 of the new protocol false
consumer group: seen 200 of the new protocol true
offsets: records 1000 left 0
share group: accepted 200 twice 0 released some true refused 0
"""


def built(package: str = ".") -> Path:
    """A program; Go keeps what it compiled in its own cache, so only the first time is long."""
    if shutil.which("go") is None:
        pytest.skip("go is missing: install the package golang-go")
    program = ROOT / ".cache" / ("franz" if package == "." else f"franz-{package}")
    program.parent.mkdir(exist_ok=True)
    done = subprocess.run(
        ["go", "build", "-o", str(program), f"./{package}"],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    if done.returncode != 0:
        about_us = "main.go" in done.stderr
        (pytest.fail if about_us else pytest.skip)(f"franz-go cannot be built: {done.stderr.strip()[-500:]}")
    return program


def test_franz_go_finds_what_it_expects() -> None:
    program = built()
    with Barnabas(IN_A_HURRY) as node:
        asyncio.run(set_up_group(node.bootstrap, "franz-share"))
        done = subprocess.run([str(program), node.bootstrap], capture_output=True, text=True, timeout=280, check=False)
        assert (done.returncode, done.stdout) == (0, SEEN), done.stderr[-2000:]
        assert node.stop() == 0
        assert "Traceback" not in node.log.read_text()


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", "certificate"),
        *(
            (protocol, mechanism)
            for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
        ),
    ],
)
def test_franz_go_logs_in_and_renews_its_session(tmp_path: Path, protocol: str, mechanism: str) -> None:
    program = built("secured")
    users = {"alice": "of alice", "bob": "of bob"}
    security = Security(protocol, (mechanism,) if mechanism in SERVED_MECHANISMS else ("PLAIN",), users)
    if mechanism == "certificate":
        security = Security(protocol, users=users, client_auth="required")
    own = security.certificate("alice")
    files = {"ca": security.authority.pem, "chain": own.chain, "key": own.key}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    bearer = make_token({"unsecuredLoginStringClaim_sub": "alice"}, int(time.time() * 1000))
    rights = {"certificate": str(tmp_path / "key"), "OAUTHBEARER": bearer}
    wrongs = {"OAUTHBEARER": bearer.replace(".", "-")}
    with Broker(["t"], security=security, config={"connections.max.reauth.ms": 2500}) as broker:
        user = str(tmp_path / "chain") if mechanism == "certificate" else "alice"
        arguments = [
            str(program),
            broker.bootstrap_servers,
            str(tmp_path / "ca") if security.has_tls else "",
            mechanism,
            user,
        ]
        done = subprocess.run(
            [*arguments, rights.get(mechanism, "of alice")], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, sorted(done.stdout.splitlines())) == (0, [f"franz {i}" for i in range(4)]), done.stderr
        if security.has_sasl:
            done = subprocess.run(
                [*arguments, wrongs.get(mechanism, "of bob")], capture_output=True, text=True, timeout=120, check=False
            )
            # What a node says about a refused token, as Kafka does, is not what this client waits for.
            why = "unexpected data in oauth response" if mechanism == "OAUTHBEARER" else "SASL_AUTHENTICATION_FAILED"
            assert done.returncode == 1 and why in done.stderr, done.stderr
