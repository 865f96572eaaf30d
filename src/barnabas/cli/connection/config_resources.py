"""Resources with settings as command line arguments.

Its one rule: `TYPE:NAME`, such as `topic:orders`, `broker:1`, `broker-logger:1`, `client-metrics:app`, `group:billing`.
`brokers` is the default for all brokers, and a name without a colon is a topic. Kafka's plural types (`topics`) work too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import click

from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.terminal.output import note
from barnabas.cli.terminal.parsing import parsed_by
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.config.resource_type import ConfigResourceType
from barnabas.operations.configs.alterations import ALL_BROKERS, resource_text
from barnabas.similar_names import did_you_mean

TYPES = {kind.name.lower().replace("_", "-"): kind for kind in ConfigResourceType}


def parse_resource(text: str) -> ConfigResource:
    """Parse a resource. Raises ValueError.

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
        raise ValueError(f"{word!r} is not one of {', '.join(TYPES)}{did_you_mean(word, TYPES)}")
    if not name:
        advice = f"; use {ALL_BROKERS!r} for all brokers" if kind is ConfigResourceType.BROKER else ""
        raise ValueError(f"{text!r} has no name{advice}")
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) and not name.isdecimal():
        raise ValueError(f"{name!r} is not a broker id")
    return ConfigResource(kind, name)


def resource_row(resource: ConfigResource) -> dict[str, Any]:
    """Return the fields of a row that identify the resource."""
    return {"resource": resource_text(resource), "resourceType": resource.type.name, "resourceName": resource.name}


to_resource = parsed_by(parse_resource)
"""Callback for arguments that take one or several resources."""


def complete_resource(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete topics, with or without `topic:`, and the prefixes of other types."""
    prefix = "topic:" if incomplete.startswith("topic:") else ""
    topics = [prefix + name for name in complete_topic(ctx, param, incomplete.removeprefix(prefix))]
    return topics + [each for each in (ALL_BROKERS, *(f"{kind}:" for kind in TYPES)) if each.startswith(incomplete)]


def parse_pairs(pairs: Iterable[str], type: AlterConfigOpType) -> list[AlterConfigOp]:
    """Parse settings given as KEY=VALUE. Raises click.UsageError."""
    ops = []
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise click.UsageError(f"{pair!r}: must be KEY=VALUE.")
        ops.append(AlterConfigOp(key.strip(), type, value))
    return ops


def note_misspelt_settings(names: Iterable[str], known: Collection[str]) -> None:
    """Print a note for each setting that is not known, if it resembles one that is."""
    for name in names:
        if name not in known and (hint := did_you_mean(name, known)):
            note(f"there is no setting {name}{hint}")
