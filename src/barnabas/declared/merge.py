"""Merge the documents of several files into one. Pure.

Its one rule: a resource is declared once. A topic, an ACL, the quotas of an entity, a credential of a user or the configs of a
broker that two files declare is an error that names both places, even if both say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from barnabas.declared.document import DeclaredAcl, Document, Manages, entity_text
from barnabas.declared.yaml_nodes import DocumentError, FilePosition, Problem
from barnabas.security.acl import AclEntry
from barnabas.security.acl_text import entry_text


class _Declared(Protocol):
    @property
    def place(self) -> FilePosition: ...


K = TypeVar("K")
D = TypeVar("D", bound=_Declared)


def merge(documents: Sequence[Document]) -> Document:
    """Return one document with everything that the documents declare. Raises `DocumentError` for what is declared twice."""
    if len(documents) == 1:
        return documents[0]
    problems: list[Problem] = []
    topics = _merged(problems, (each.topics for each in documents), lambda name: f"topic {name}")
    acls = _merged(problems, (_by_entry(each.acls) for each in documents), lambda entry: f"acl {entry_text(entry)}")
    quotas = _merged(problems, (each.quotas for each in documents), lambda entity: f"quota {entity_text(entity)}")
    users = _merged(problems, (each.users for each in documents), lambda key: f"user {key[0]}: {key[1]}")
    brokers = _merged(problems, (each.brokers for each in documents), lambda name: f"broker {name}")
    if problems:
        raise DocumentError(problems)
    return Document(
        topics=topics,
        acls=None if acls is None else tuple(acls.values()),
        quotas=quotas,
        users=users,
        brokers=brokers,
        file=f"{len(documents)} files",
        doubts=tuple(doubt for each in documents for doubt in each.doubts),
        manages=_managed([each.manages for each in documents if each.manages is not None]),
    )


def _managed(manages: Sequence[Manages]) -> Manages | None:
    """Return what the files manage together, or None if no file has `manages`."""
    if not manages:
        return None
    return Manages(
        topics=tuple(pattern for each in manages for pattern in each.topics),
        acls=tuple(scope for each in manages for scope in each.acls),
        quotas=tuple(entity for each in manages for entity in each.quotas),
        users=tuple(pattern for each in manages for pattern in each.users),
    )


def _by_entry(acls: Iterable[DeclaredAcl] | None) -> dict[AclEntry, DeclaredAcl] | None:
    return None if acls is None else {each.entry: each for each in acls}


def _merged(
    problems: list[Problem], sections: Iterable[Mapping[K, D] | None], describe: Callable[[K], str]
) -> dict[K, D] | None:
    """Return the sections as one, or None if no file has the section."""
    found: dict[K, D] | None = None
    for section in sections:
        if section is None:
            continue
        found = {} if found is None else found
        for key, declared in section.items():
            before = found.setdefault(key, declared)
            if before is not declared:
                problems.append(Problem(declared.place, f"{describe(key)}: already declared in {before.place}"))
    return found
