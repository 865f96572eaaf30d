"""A secured broker or cluster for tests: which protection, which users, and how clients of each kind reach it.

    with Broker(security=Security(users={"alice": "secret"})) as broker:
        producer = confluent_kafka.Producer(broker.librdkafka_config("alice"))

Its one rule: nothing is written to the disk. Certificates are new each time, and are passed as text.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from barnabas.config.endpoints import SECURITY_PROTOCOLS
from barnabas.config.unsupported import SERVED_MECHANISMS
from barnabas.metadata.scram import SCRAM_MECHANISMS
from barnabas.operations.security.certificates import Authority, Certificate
from barnabas.operations.security.node_settings import NODE_USER, jaas_line, listener_settings
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER
from barnabas.security.sasl.scram import credential_of_password
from barnabas.wire.records.metadata import UserScramCredentialRecord

_SALT_BYTES: Final = 16
CLIENT_AUTH: Final = ("none", "requested", "required")


@dataclass(frozen=True)
class Security:
    """How a broker, or each node of a cluster, is protected.

    `users` are names with passwords. With SASL they log in with any of `mechanisms`; with OAUTHBEARER, their token has their
    name and no signature. With SSL and `client_auth` they have certificates instead, and no password. In all cases alice is
    the principal User:alice. The node itself is User:node, a super user if an authorizer is configured.
    """

    protocol: str = "SASL_SSL"
    mechanisms: tuple[str, ...] = ("SCRAM-SHA-512",)
    users: Mapping[str, str] = field(default_factory=lambda: {"alice": "alice-secret"}, repr=False)
    client_auth: str = "none"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("protocol", self.protocol, SECURITY_PROTOCOLS[1:]),
            ("client_auth", self.client_auth, CLIENT_AUTH),
            *(("mechanisms", each, SERVED_MECHANISMS) for each in self.mechanisms),
        ):
            if value not in allowed:
                raise ValueError(f"{name}: {value!r} is none of {', '.join(allowed)}")
        if not self.users or not self.mechanisms:
            raise ValueError("at least one user and one mechanism are needed")

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @cached_property
    def authority(self) -> Authority:
        """Signs the certificates of this broker and its users, and more if a test needs them."""
        return Authority("barnabas test authority", datetime.datetime.now(datetime.UTC))

    @cached_property
    def _certificates(self) -> dict[str, Certificate]:
        return {}

    def certificate(self, user: str) -> Certificate:
        """Return the certificate of a user."""
        found = self._certificates.get(user)
        if found is None:
            found = self._certificates[user] = self.authority.issue(user)
        return found

    @cached_property
    def _node_password(self) -> str:
        return secrets.token_urlsafe(16)

    def server_settings(
        self, hosts: tuple[str, ...], *, is_authorizing: bool, has_others: bool = False
    ) -> dict[str, str]:
        """Return the settings of a node, whose certificate is for these hosts.

        If it `has_others` in its cluster, they log in to each other, or show each other their certificates.
        """
        settings = listener_settings(self.protocol, self.mechanisms, self.users, self._node_password)
        if is_authorizing:
            settings["super.users"] = f"User:{NODE_USER}"
        if self.has_tls:
            own = self.authority.issue(NODE_USER, hosts)
            client_auth = self.client_auth
            if has_others and not self.has_sasl and client_auth == "none":
                client_auth = "requested"  # or else nodes would be unknown to each other
            settings |= self._stores(own) | {f"listener.name.{self.protocol.lower()}.ssl.client.auth": client_auth}
        return settings

    def scram_records(self) -> list[UserScramCredentialRecord]:
        """Return the records with which the metadata of a cluster begin: the users with SCRAM, and that of the nodes."""
        numbers = {name: number for number, name in SCRAM_MECHANISMS.items()}
        passwords = {**self.users, NODE_USER: self._node_password}
        made = []
        for mechanism in self.mechanisms if self.has_sasl else ():
            for user, password in passwords.items() if mechanism in numbers else ():
                salt = secrets.token_bytes(_SALT_BYTES)
                keys = credential_of_password(mechanism, password, salt)
                made.append(
                    UserScramCredentialRecord(
                        name=user,
                        mechanism=numbers[mechanism],
                        salt=salt,
                        stored_key=keys.stored_key,
                        server_key=keys.server_key,
                        iterations=keys.iterations,
                    )
                )
        return made

    def client_config(self, user: str | None) -> dict[str, str]:
        """Return the settings of a client, in the names of Java's clients and of `barnabas.client`."""
        name = self._user(user)
        settings = {"security.protocol": self.protocol}
        if self.has_sasl:
            settings["sasl.mechanism"] = self.mechanisms[0]
            if self.mechanisms[0] == OAUTHBEARER:
                settings["sasl.jaas.config"] = jaas_line(OAUTHBEARER, (name, ""), {})
            else:
                settings |= {"sasl.username": name, "sasl.password": self.users[name]}
        if self.has_tls:
            settings |= self._stores(self.certificate(name) if self.client_auth != "none" else None)
        return settings

    def librdkafka_config(self, user: str | None) -> dict[str, str]:
        """Return the settings of a client, in the names of librdkafka."""
        of_java = ("ssl.", "sasl.jaas.config")
        settings = {name: text for name, text in self.client_config(user).items() if not name.startswith(of_java)}
        if self.has_sasl and self.mechanisms[0] == OAUTHBEARER:
            settings |= {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={self._user(user)}",
            }
        if self.has_tls:
            settings["ssl.ca.pem"] = self.authority.pem
            if self.client_auth != "none":
                own = self.certificate(self._user(user))
                settings |= {"ssl.key.pem": own.key, "ssl.certificate.pem": own.chain}
        return settings

    def _user(self, user: str | None) -> str:
        name = next(iter(self.users)) if user is None else user
        if name not in self.users:
            raise ValueError(f"there is no user {name!r}; there are {', '.join(self.users)}")
        return name

    def _stores(self, own: Certificate | None) -> dict[str, str]:
        stores = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.authority.pem}
        if own is not None:
            stores |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": own.key,
                "ssl.keystore.certificate.chain": own.chain,
            }
        return stores
