"""The settings of a secured node, in Kafka's names: the same for a file and for a broker in a test. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.client.jaas import MODULES
from barnabas.config.unsupported import UNSECURED_VALIDATOR
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER

NODE_USER: Final = "node"
"""The user that the node logs in to its controller as, and the name in its certificate."""

NAME_OF_CERTIFICATE: Final = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"
"""Makes the principal of `CN=alice` User:alice, so that it is the same with a certificate and with a password."""


def quoted(text: str) -> str:
    """Return a value of a JAAS line in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def jaas_line(mechanism: str, own: tuple[str, str], users: Mapping[str, str]) -> str:
    """Return the line of a listener: its own login, and for PLAIN the passwords of all users. For OAUTHBEARER, the login is
    a name in a token without a signature."""
    username, password = own
    options = {"username": username, "password": password}
    if mechanism == OAUTHBEARER:
        options = {"unsecuredLoginStringClaim_sub": username}
    if mechanism == "PLAIN":
        options |= {f"user_{name}": secret for name, secret in {**users, username: password}.items()}
    shown = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    return f"{MODULES[mechanism]} required {shown};"


def listener_settings(
    protocol: str, mechanisms: tuple[str, ...], users: Mapping[str, str], node_password: str
) -> dict[str, str]:
    """Return the settings of a client listener with the name of its protocol, and of the listener CONTROLLER.

    The node shows its controller its certificate, or without TLS logs in with PLAIN: neither needs a user in the metadata.
    """
    has_tls = protocol.endswith("SSL")
    settings = {
        "listener.security.protocol.map": f"{protocol}:{protocol},CONTROLLER:{'SSL' if has_tls else protocol}",
        "security.inter.broker.protocol": protocol,
    }
    if has_tls:
        settings["ssl.principal.mapping.rules"] = NAME_OF_CERTIFICATE
        settings["listener.name.controller.ssl.client.auth"] = "required"
    if protocol.startswith("SASL_"):
        own = (NODE_USER, node_password)
        settings["sasl.enabled.mechanisms"] = ",".join(mechanisms)
        settings["sasl.mechanism.inter.broker.protocol"] = mechanisms[0]
        if not has_tls:
            settings["listener.name.controller.sasl.enabled.mechanisms"] = "PLAIN"
            settings["sasl.mechanism.controller.protocol"] = "PLAIN"
            settings["listener.name.controller.plain.sasl.jaas.config"] = jaas_line("PLAIN", own, {})
        for mechanism in mechanisms:
            name = f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"
            settings[name] = jaas_line(mechanism, own, users)
            if mechanism == OAUTHBEARER:
                settings[name.replace("jaas.config", "server.callback.handler.class")] = UNSECURED_VALIDATOR
    return settings
