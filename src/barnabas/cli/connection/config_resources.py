"""How a resource that has settings is written on the command line.

Its one rule: `TYPE:NAME`, as `topic:orders`, `broker:1`, `broker-logger:1`, `client-metrics:app`, `group:billing`; `brokers` is
what holds for all brokers, and a word without a colon is a topic. Kafka's own words for types (`topics`) will do as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.terminal.parsing import parsed_by
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.config.resource_type import ConfigResourceType

ALL_BROKERS = "brokers"
TYPES = {kind.name.lower().replace("_", "-"): kind for kind in ConfigResourceType}


def parse_resource(text: str) -> ConfigResource:
    """Raises ValueError.

    >>> parse_resource("orders"), parse_resource("broker:1").type.name, parse_resource("brokers")
    (ConfigResource(type=<ConfigResourceType.TOPIC: 2>, name='orders'), 'BROKER', \
ConfigResource(type=<ConfigResourceType.BROKER: 4>, name=''))
    """
    if text == ALL_BROKERS:
        return ConfigResource.all_brokers()
    word, colon, name = text.partition(":")
    if not colon:
        return ConfigResource.topic(text)
    kind = TYPES.get(word) or TYPES.get(word.removesuffix("s"))
    if kind is None:
        raise ValueError(f"{word!r} is none of {', '.join(TYPES)}")
    if not name:
        advice = f"; for all brokers say {ALL_BROKERS!r}" if kind is ConfigResourceType.BROKER else ""
        raise ValueError(f"{text!r} has no name{advice}")
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) and not name.isdecimal():
        raise ValueError(f"{name!r} is no id of a broker")
    return ConfigResource(kind, name)


def resource_text(resource: ConfigResource) -> str:
    """
    >>> resource_text(ConfigResource.broker(1)), resource_text(ConfigResource.all_brokers())
    ('broker:1', 'brokers')
    """
    if resource == ConfigResource.all_brokers():
        return ALL_BROKERS
    return f"{resource.type.name.lower().replace('_', '-')}:{resource.name}"


def resource_row(resource: ConfigResource) -> dict[str, Any]:
    """The fields of a row by which a resource is known."""
    return {"resource": resource_text(resource), "resourceType": resource.type.name, "resourceName": resource.name}


to_resource = parsed_by(parse_resource)
"""The callback of arguments that are a resource, or several."""


def complete_resource(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics, under both their names, and the words that others begin with."""
    prefix = "topic:" if incomplete.startswith("topic:") else ""
    topics = [prefix + name for name in complete_topic(ctx, param, incomplete.removeprefix(prefix))]
    return topics + [each for each in (ALL_BROKERS, *(f"{kind}:" for kind in TYPES)) if each.startswith(incomplete)]


def parse_pairs(pairs: Iterable[str], type: AlterConfigOpType) -> list[AlterConfigOp]:
    """Settings that are given as KEY=VALUE. Raises click.UsageError."""
    ops = []
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise click.UsageError(f"{pair!r}: settings are given as KEY=VALUE.")
        ops.append(AlterConfigOp(key.strip(), type, value))
    return ops
