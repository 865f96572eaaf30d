"""The image as a tree of paths for `ls`, `cat` and `find`, with the names of Kafka's metadata shell.

The one rule: the tree is a view that is built during the lookup; nothing is stored. A slash or percent sign in a name
is written as %2F or %25. Secrets of users are not included; `redact` may hide configs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.pmap import PMap
from barnabas.metadata.quotas import QuotaEntity
from barnabas.metadata.scram import SCRAM_MECHANISMS
from barnabas.metadata.topics import Topic
from barnabas.metadata.versions import METADATA_VERSION
from barnabas.similar_names import did_you_mean
from barnabas.wire.primitives import Uuid

Redact = Callable[[ConfigResource, str], bool]
"""Whether to hide the value of this config."""


class NoSuchPathError(LookupError):
    """The path does not exist, or is a directory where a file is expected."""


def look(image: MetadataImage, path: str, redact: Redact | None = None) -> list[str] | str:
    """Return the sorted names in a directory, or the content of a file: plain text, or JSON if it has fields."""
    node = _walk(image, path, redact)
    if isinstance(node, dict):
        return _names(node)
    return node if isinstance(node, str) else json.dumps(_plain(node), indent=2)


def ls(image: MetadataImage, path: str = "") -> list[str]:
    """Return the sorted names in a directory. For a file, return its own name."""
    found = look(image, path)
    return found if isinstance(found, list) else [path.rstrip("/").rpartition("/")[2]]


def cat(image: MetadataImage, path: str, redact: Redact | None = None) -> str:
    """Return the content of a file."""
    found = look(image, path, redact)
    if isinstance(found, list):
        raise NoSuchPathError(f"{path} is a directory")
    return found


def find(image: MetadataImage, path: str = "", pattern: str = "*") -> Iterator[str]:
    """Yield the paths of a node and its descendants whose last name matches the pattern."""
    return _find(_walk(image, path, None), path.strip("/"), pattern)


def _find(node: Any, path: str, pattern: str) -> Iterator[str]:
    if path and fnmatchcase(path.rpartition("/")[2], pattern):
        yield path
    if isinstance(node, dict):
        for name in _names(node):
            yield from _find(_open(node[name]), f"{path}/{name}".lstrip("/"), pattern)


def _walk(image: MetadataImage, path: str, redact: Redact | None) -> Any:
    """Return the node at a path. A dict is a directory, a function returns one on demand, anything else is a file."""
    node: Any = {"image": _root(image, redact)}
    for name in filter(None, path.split("/")):
        if not isinstance(node, dict) or name not in node:
            hint = did_you_mean(name, map(str, node)) if isinstance(node, dict) else ""
            raise NoSuchPathError(f"there is no {path}{hint}")
        node = _open(node[name])
    return node


def _open(node: Any) -> Any:
    return node() if callable(node) else node


def _names(directory: dict[str, Any]) -> list[str]:
    return sorted(directory, key=lambda name: (0, int(name), "") if name.isdecimal() else (1, 0, name))


def _root(image: MetadataImage, redact: Redact | None) -> dict[str, Any]:
    topics = image.topics
    return {
        "provenance": image.provenance,
        "features": {
            "metadataVersion": str(image.metadata_version),
            **{f"finalized_{name}": level for name, level in image.features.items() if name != METADATA_VERSION},
        },
        "cluster": {
            "brokers": {str(broker_id): broker for broker_id, broker in image.brokers.items()},
            "controllers": {str(node_id): controller for node_id, controller in image.controllers.items()},
        },
        "topics": {
            "byName": lambda: {t.name: partial(_topic, t) for t in topics.by_id.values()},
            "byId": lambda: {str(t.topic_id): partial(_topic, t) for t in topics.by_id.values()},
        },
        "configs": lambda: {
            _escape(_resource(resource)): {
                _escape(name): "[redacted]" if redact is not None and redact(resource, name) else value
                for name, value in config.items()
            }
            for resource, config in image.configs.items()
        },
        "clientQuotas": lambda: {_escape(_entity(entity)): dict(quota) for entity, quota in image.quotas.items()},
        "producerIds": {"nextProducerId": image.producer_ids.next_producer_id},
        "acls": {"byId": lambda: {str(acl_id): partial(str, entry) for acl_id, entry in image.acls.by_id.items()}},
        "scram": lambda: _scram(image),
        "delegationToken": lambda: {_escape(token_id): token for token_id, token in image.tokens.items()},
    }


def _topic(topic: Topic) -> dict[str, Any]:
    partitions = {str(index): partition for index, partition in enumerate(topic.partitions)}
    return {"name": topic.name, "id": str(topic.topic_id), **partitions}


def _scram(image: MetadataImage) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {name: {} for name in SCRAM_MECHANISMS.values()}
    for user, credential in image.scram.items():
        mechanism = SCRAM_MECHANISMS.get(user.mechanism, str(user.mechanism))
        found.setdefault(mechanism, {})[_escape(user.name)] = f"{credential.iterations} iterations"
    return found


def _resource(resource: ConfigResource) -> str:
    kind = ConfigResourceType(resource.type).name if resource.type in list(ConfigResourceType) else str(resource.type)
    return f"{kind}:{resource.name}" if resource.name else kind


def _entity(entity: QuotaEntity) -> str:
    kinds = {"client-id": "clientId"}
    return "_".join(f"{kinds.get(kind, kind)}({'<default>' if name is None else name})" for kind, name in entity)


def _escape(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _plain(value: Any) -> Any:
    """Convert a value to JSON types."""
    if hasattr(value, "_asdict"):
        return {name: _plain(member) for name, member in value._asdict().items()}
    if isinstance(value, PMap):
        return {name: _plain(member) for name, member in sorted(value.items())}
    if isinstance(value, tuple):
        return [_plain(member) for member in value]
    return str(value) if isinstance(value, Uuid) else value
