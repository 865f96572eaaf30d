"""Write a declared cluster as the text of a file that `read_document` reads. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from barnabas.declared.difference import number
from barnabas.declared.document import (
    DEFAULT,
    DeclaredAcl,
    DeclaredBroker,
    DeclaredQuota,
    DeclaredTopic,
    DeclaredUser,
    Document,
    Entity,
)
from barnabas.declared.observed import Observed
from barnabas.security.acl import WILDCARD, AclEntry, AclOperation, AclPermissionType, PatternType
from barnabas.security.acl_text import entry_order, resource_text

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Flow(list[str]):
    """A list that is written on one line."""


class _Writer(_Dumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Writer.add_representer(
    _Flow, lambda writer, data: writer.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)


def document_of(observed: Observed, descriptions: Mapping[AclEntry, str] | None = None) -> Document:
    """Return the document that declares a cluster as it is, without internal topics and without passwords."""
    known = descriptions or {}
    topics = acls = quotas = users = brokers = None
    if observed.topics is not None:
        topics = {
            name: DeclaredTopic(name, len(topic.replicas), _one(map(len, topic.replicas.values())), dict(topic.configs))
            for name, topic in sorted(observed.topics.items())
            if not topic.is_internal
        }
    if observed.acls is not None:
        acls = tuple(DeclaredAcl(entry, known.get(entry)) for entry in sorted(observed.acls, key=entry_order))
    if observed.quotas is not None:
        ordered = sorted(observed.quotas.items(), key=lambda each: str(each[0]))
        quotas = {entity: DeclaredQuota(entity, values) for entity, values in ordered}
    if observed.users is not None:
        users = {key: DeclaredUser(*key, iterations) for key, iterations in sorted(observed.users.items())}
    if observed.brokers is not None:
        brokers = {
            name: DeclaredBroker(name, {key: value for key, value in configs.items() if value is not None})
            for name, configs in observed.brokers.items()
            if configs
        }
    return Document(topics, acls, quotas, users, brokers)


def _one(numbers: Iterable[int]) -> int | None:
    """Return the number if all are equal, else None."""
    different = set(numbers)
    return different.pop() if len(different) == 1 else None


def document_text(document: Document) -> str:
    """Format a document as YAML."""
    return "\n".join(
        str(yaml.dump({name: value}, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=120))
        for name, value in document_value(document).items()
    )


def document_json(document: Document) -> str:
    """Format a document as JSON, which is also YAML: characters that YAML does not allow are escaped."""
    text = json.dumps(document_value(document), ensure_ascii=False, indent=2)
    return re.sub(r"[\x7f-\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def document_value(document: Document) -> dict[str, Any]:
    """Return a document as dicts, lists and scalars, in the form of a file."""
    whole: dict[str, Any] = {}
    if document.topics is not None:
        whole["topics"] = {name: _topic(topic) for name, topic in document.topics.items()}
    if document.acls is not None:
        whole["acls"] = _acls(document.acls)
    if document.quotas is not None:
        whole["quotas"] = [
            {
                "entity": _entity(quota.entity),
                "quotas": {
                    key: None if value is None else number(value) for key, value in sorted(quota.values.items())
                },
            }
            for quota in document.quotas.values()
        ]
    if document.users is not None:
        users: dict[str, Any] = {}
        for (user, mechanism), declared in document.users.items():
            users.setdefault(user, {})[mechanism] = _user(declared)
        whole["users"] = users
    if document.brokers is not None:
        whole["brokers"] = {_key(name): _configs(broker.configs) for name, broker in document.brokers.items()}
    return whole


def _topic(topic: DeclaredTopic) -> dict[str, Any]:
    if topic.absent:
        return {"state": "absent"}
    fields: dict[str, Any] = {"partitions": topic.partitions, "replicationFactor": topic.replication_factor}
    fields = {name: value for name, value in fields.items() if value is not None}
    return fields if topic.configs is None else {**fields, "configs": _configs(topic.configs)}


def _configs(configs: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: _scalar(value) for name, value in configs.items()}


def _scalar(text: str | None) -> Any:
    """Return a value that is written without quotes if it is a number or a boolean."""
    if text is not None and re.fullmatch(r"-?(0|[1-9]\d*)", text):
        return int(text)
    return {"true": True, "false": False}.get(text or "", text)


def _key(name: str) -> str | int:
    return int(name) if name.isdecimal() else name


def _acls(acls: Iterable[DeclaredAcl]) -> list[dict[str, Any]]:
    """Return one item for all entries that differ only in their operation."""
    together: dict[tuple[AclEntry, str | None, bool], list[AclOperation]] = {}
    for acl in acls:
        key = (acl.entry._replace(operation=AclOperation.ANY), acl.description, acl.absent)
        together.setdefault(key, []).append(acl.entry.operation)
    items = []
    for (entry, description, absent), operations in together.items():
        item: dict[str, Any] = {
            "principal": entry.principal,
            "operations": _Flow(operation.name for operation in sorted(operations)),
            "resource": resource_text(entry.resource_type, entry.resource_name),
        }
        if entry.pattern_type != PatternType.LITERAL:
            item["pattern"] = entry.pattern_type.name
        if entry.permission != AclPermissionType.ALLOW:
            item["permission"] = entry.permission.name
        if entry.host != WILDCARD:
            item["host"] = entry.host
        if description is not None:
            item["description"] = description
        if absent:
            item["state"] = "absent"
        items.append(item)
    return items


def _entity(entity: Entity) -> dict[str, str]:
    return {kind: DEFAULT if name is None else name for kind, name in sorted(entity, reverse=True)}


def _user(user: DeclaredUser) -> dict[str, Any]:
    if user.absent:
        return {"state": "absent"}
    fields: dict[str, Any] = {} if user.iterations is None else {"iterations": user.iterations}
    if user.password is not None:
        source = {"env": user.password.env, "file": user.password.file}
        fields["password"] = {name: value for name, value in source.items() if value is not None}
    return fields
