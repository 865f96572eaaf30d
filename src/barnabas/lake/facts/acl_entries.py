"""ACL entries of the `acls` table, and the codes that have names there. Needs neither Spark nor Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType

_UNKNOWN: Final = "UNKNOWN_"
"""The name of a code that this version does not know is this and its number."""


def code_of(kind: Any, name: str) -> Any:
    """Return a code by its name; an unknown code has its number as name."""
    return kind[name] if name in kind.__members__ else kind(int(name.removeprefix(_UNKNOWN)))


def entries_of(rows: Iterable[Any]) -> Iterator[AclEntry]:
    """Yield rows of `acls` as entries."""
    for row in rows:
        yield AclEntry(
            resource_type=code_of(ResourceType, row["resource_type"]),
            resource_name=row["resource_name"],
            pattern_type=code_of(PatternType, row["pattern_type"]),
            principal=row["principal"],
            host=row["host"],
            operation=code_of(AclOperation, row["operation"]),
            permission=code_of(AclPermissionType, row["permission"]),
        )
