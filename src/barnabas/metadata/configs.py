"""Dynamic configs: the values set on each resource, as text. Defaults and meanings are not known here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata.pmap import PMap
from barnabas.wire.records.metadata import ConfigRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft


class ConfigResource(NamedTuple):
    """The resource of a config. An empty name means the default for all resources of the type."""

    type: int
    name: str

    def __str__(self) -> str:
        try:
            kind = ConfigResourceType(self.type).name.lower()
        except ValueError:
            kind = f"resource type {self.type}"
        return f"{kind} {self.name or '(default)'}"


Config = PMap[str, str]
Configs = PMap[ConfigResource, Config]

_EMPTY: Config = PMap()


def replay_config(draft: Draft, record: ConfigRecord) -> None:
    """Set a config, or remove it if the value is null. A resource without configs is removed."""
    if draft.is_supported_config is not None and not draft.is_supported_config(record.resource_type, record.name):
        return
    resource = ConfigResource(record.resource_type, record.resource_name)
    config = draft.configs.get(resource) or _EMPTY
    if record.value is not None:
        draft.configs.set(resource, config.set(record.name, record.value))
    elif record.name in config:
        config = config.delete(record.name)
        if config:
            draft.configs.set(resource, config)
        else:
            draft.configs.remove(resource)


def to_records(configs: Configs) -> Iterator[tuple[ConfigRecord, int]]:
    for resource, config in sorted(configs.items()):
        for name, value in sorted(config.items()):
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value), 0
