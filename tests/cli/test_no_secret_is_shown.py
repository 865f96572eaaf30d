"""Secrets are planted in a node's settings, users and tokens, and no command, page or metric shows them: of the running node,
and of what it leaves on the disk, whose metadata log has some of them in clear, as Kafka's has."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import AlterConfigOp, AlterConfigOpType, ConfigResource, checked, sync
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.client.cluster import Cluster
from barnabas.client.routing import controller
from barnabas.client.settings import load
from barnabas.config import properties
from barnabas.config.server import FAULTS as FAULTS_NAME
from barnabas.metadata.scram import ScramUser
from barnabas.operations.security.node_settings import jaas_line
from barnabas.testing import Broker, Security
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from tests.command_line import invoke
from tests.console.running_console import NAME, RunningConsole, entry

ALICES, NEW, DYNAMIC, CONTROLLERS, STORE, TOKEN_KEY = (
    f"planted-{name}-secret" for name in ("alice", "new", "dynamic", "controller", "store", "token")
)
USERS = {"alice": ALICES}
DYNAMIC_NAMES = {
    "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas_line("PLAIN", ("node", DYNAMIC), USERS),
    "listener.name.sasl_ssl.ssl.truststore.password": STORE,
}
FAULTS = "barnabas.faults.listener"


class Planted:
    """A running node, its directory, and all forms in which a secret could be shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.audit_log = folder / "audit.log"
        self.settings = folder / "server.properties"
        self.client = folder / "client.properties"
        self.secrets = {ALICES, NEW, DYNAMIC, CONTROLLERS, STORE, TOKEN_KEY, "PRIVATE KEY"}
        security = Security("SASL_SSL", ("PLAIN", "SCRAM-SHA-256"), USERS)
        config = {
            "barnabas.audit.log.path": str(self.audit_log),
            "delegation.token.secret.key": TOKEN_KEY,
            "ssl.key.password": STORE,
            FAULTS: "127.0.0.1:0",
            # The controller takes the login of the same clients, so that they can read its log.
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
            "listener.name.controller.ssl.client.auth": "none",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": jaas_line("PLAIN", ("node", CONTROLLERS), USERS),
        }
        self.broker = Broker({"orders": 1}, security=security, config=config, data_dir=folder / "data", metrics=True)

    def plant(self) -> None:
        config = self.broker.client_config("alice")
        self.client.write_text(properties.dumps(config))
        with sync.Admin(config) as admin:
            admin.alter_user_scram_credentials([ScramUpsertion("bob", ScramMechanism.SCRAM_SHA_512, NEW)])
            for name, text in DYNAMIC_NAMES.items():
                op = AlterConfigOp(name, AlterConfigOpType.SET, text)
                checked(admin.incremental_alter_configs({ConfigResource.broker(1): [op]}))
        token = asyncio.run(self._new_token(config))
        self._plant_bytes(token)
        node = self.broker._broker._node
        assert node is not None
        for user, credential in node.image.scram.items():
            assert isinstance(user, ScramUser)
            for secret in (credential.salt, credential.stored_key, credential.server_key):
                self._plant_bytes(secret)
        self.settings.write_text(properties.dumps({**node.config.given, "log.dirs": str(self.folder / "data")}))

    async def _new_token(self, config: dict[str, str]) -> bytes:
        async with Cluster(load(config)) as cluster:
            request = CreateDelegationTokenRequest(
                owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1
            )
            return bytes((await cluster.call(request, controller(), repeat=False)).hmac)

    def _plant_bytes(self, secret: bytes) -> None:
        texts = (base64.b64encode(secret).decode(), secret.hex(), repr(secret)[2:-1], json.dumps(list(secret))[1:-1])
        self.secrets.update(texts)

    def assert_clean(self, shown: str, where: object) -> None:
        for secret in self.secrets:
            assert secret not in shown, (where, secret)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    node = Planted(tmp_path_factory.mktemp("node"))
    with node.broker:
        node.plant()
        yield node


LIVE = [
    "configs describe broker:1 --all -o json",
    "configs describe brokers -o json",
    "configs diff broker:1 brokers",
    "configs list",
    "kafka-configs --describe --all --entity-type brokers --entity-name 1",
    "kafka-configs --describe --entity-type users",
    "users list -o json",
    "users describe bob",
    "kafka-delegation-tokens --describe",
    "export",
    "doctor -o json",
    "cluster describe -o json",
    "metadata find configs -o json",
    "metadata find scram -o json",
    "quorum status",
    'raw DescribeConfigs {"resources":[{"resourceType":4,"resourceName":"1","configurationKeys":null}],"includeSynonyms":true}',
    "raw DescribeUserScramCredentials {}",
]


@pytest.mark.parametrize("command", LIVE)
def test_no_command_shows_a_secret_of_a_running_node(planted: Planted, command: str) -> None:
    words = command.split()
    servers = ("--bootstrap-server" if words[0].startswith("kafka-") else "-b", planted.broker.bootstrap_servers)
    done = invoke(*words, *servers, "--command-config", planted.client)
    assert done.exit_code in (0, 2) and "Traceback" not in done.output, done.output
    if words[0] == "kafka-delegation-tokens":  # its owner asks for the HMAC, as in Kafka
        assert "planted" not in done.output
    else:
        planted.assert_clean(done.output, command)


def test_the_search_finds_what_it_looks_for(planted: Planted) -> None:
    """The metadata log has what may not be shown: texts of settings, and the keys of users."""
    log = next((planted.folder / "data" / "__cluster_metadata-0").glob("*.log"))
    done = invoke(
        "kafka-dump-log", "--cluster-metadata-decoder", "--files", log, code=0
    )  # as Kafka's, it hides nothing
    found = {secret for secret in planted.secrets if secret in done.stdout}
    assert {DYNAMIC, ALICES, STORE} <= found and len(found) > 6


OFFLINE = [
    "metadata find {data} -o json",
    "metadata cat {data} configs/BROKER:1/listener.name.sasl_ssl.ssl.truststore.password",
    "metadata cat {data} scram/SCRAM-SHA-512/bob",
    "metadata diff {data} --from 0",
    "dump {data}",
    "dump {data}/__cluster_metadata-0 -o json",
    "configs history --log-dir {data} -o json",
    "configs history broker:1 --log-dir {data}",
    "doctor {settings} -o json",
    "doctor --deep {data}",
]


def test_dump_shows_secrets_if_one_asks_for_them(planted: Planted) -> None:
    log = planted.folder / "data" / "__cluster_metadata-0"
    done = invoke("dump", log, "--secrets", "-o", "json", code=0)
    assert DYNAMIC in done.stdout and STORE in done.stdout
    assert invoke("dump", log, "--secrets", "--verify").exit_code == 2


@pytest.mark.parametrize("command", OFFLINE)
def test_no_command_shows_a_secret_of_files(planted: Planted, command: str) -> None:
    names = {"data": planted.folder / "data", "settings": planted.settings}
    done = invoke(*command.format(**names).split())
    assert done.exit_code in (0, 2) and "Traceback" not in done.output, done.output
    assert done.stdout.strip(), done.output
    planted.assert_clean(done.output, command)


PAGES = [
    "",
    *("/brokers", "/brokers/1", "/brokers/1?tab=settings&all=1", "/brokers/1?tab=settings&history=1", "/quorum"),
    *("/access", "/access?tab=users", "/access?tab=tokens", "/access?tab=audit", "/access?tab=quotas"),
    *("/metadata", "/metadata?path=image/configs", "/metadata?path=image/scram", "/metadata?find=planted"),
    *("/metadata?tab=log", "/metadata?tab=difference&from=1", "/history"),
]


def test_no_page_of_the_console_shows_a_secret(planted: Planted) -> None:
    with RunningConsole(entry(planted.broker), allow_changes=True) as console:
        console.enter()
        form = {"user": "alice", "password": ALICES, "next": f"/c/{NAME}"}
        assert console.request("POST", f"/login/{NAME}", form).status == 303
        shown = {path: console.get(f"/c/{NAME}{path}") for path in PAGES}
    for path, page in shown.items():
        assert page.status in (200, 404) and "<html" in page.text, (path, page.status)
        planted.assert_clean(page.text, path)
    assert "UserScramCredentialRecord" in shown["/metadata?tab=log"].text


def test_metrics_faults_and_the_audit_log_show_no_secret(planted: Planted) -> None:
    node = planted.broker._broker._node
    assert node is not None
    host, port = node.addresses[FAULTS_NAME]
    for url in (planted.broker.metrics_url, f"http://{host}:{port}/faults"):
        with urllib.request.urlopen(url, timeout=30) as page:
            text = page.read().decode()
        assert text
        planted.assert_clean(text, url)
    planted.assert_clean(planted.audit_log.read_text(), planted.audit_log)
