"""Test cases for ACLs: each case names the operations that a principal must be allowed or denied on a resource.

    superUsers: [User:admin]              # settings of brokers, which are not part of the ACLs
    allowEveryoneIfNoAclFound: false
    cases:
      - principal: User:billing
        resource: topic:orders
        may: [READ, DESCRIBE]
        mayNot: WRITE
        host: 10.0.0.1                    # default: a host that no entry names
        description: Invoices are made of orders.

Its one rule: `security.authorizer` decides, as on a broker. No cluster is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from barnabas.declared.yaml_nodes import NOWHERE, DocumentError, FilePosition, Node, Problem, Reader
from barnabas.security import acl_text
from barnabas.security.acl import WILDCARD, AclEntry, AclOperation, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import AuthorizerSettings, Decision, authorize
from barnabas.security.principal import parse_principal

_FIELDS = ("principal", "resource", "may", "mayNot", "host", "description")


@dataclass(frozen=True, slots=True)
class Case:
    """One question to the authorizer, and the expected answer."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    resource_name: str
    allowed: bool
    host: str = WILDCARD
    description: str | None = None
    place: FilePosition = NOWHERE

    @property
    def resource(self) -> str:
        return acl_text.resource_text(self.resource_type, self.resource_name)


@dataclass(frozen=True, slots=True)
class Cases:
    cases: tuple[Case, ...]
    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False


def read_cases(text: str, file: str = "cases.yaml") -> Cases:
    """Parse the text of a file. Raises `DocumentError` with all problems found."""
    reader = Reader(file)
    root = reader.parse(text)
    if root is None:
        raise DocumentError([Problem(FilePosition(file, 1, 1), "the file is empty: expected cases")])
    fields = reader.fields(root, "the file", ("cases", "superUsers", "allowEveryoneIfNoAclFound"), ("cases",))
    items = reader.items(fields["cases"], "cases") if "cases" in fields else []
    cases = tuple(case for item in items for case in _case(reader, item))
    super_users = (
        [text for text, _ in reader.texts(fields["superUsers"], "superUsers")] if "superUsers" in fields else []
    )
    everyone = fields.get("allowEveryoneIfNoAclFound")
    allow = everyone is not None and bool(reader.truth(everyone, "allowEveryoneIfNoAclFound"))
    reader.finish()
    return Cases(cases, frozenset(super_users), allow)


def _case(reader: Reader, node: Node) -> list[Case]:
    fields = reader.fields(node, "case", _FIELDS, ("principal", "resource"))
    if fields and "may" not in fields and "mayNot" not in fields:
        reader.wrong(node, "case: expected may, mayNot or both")
    host = reader.text(fields["host"], "case: host") if "host" in fields else None
    description = reader.text(fields["description"], "case: description") if "description" in fields else None
    found = []
    for text, at in reader.texts(fields["resource"], "case: resource") if "resource" in fields else []:
        try:
            resource_type, name = acl_text.parse_resource(text)
        except ValueError as error:
            reader.wrong(at, f"case: resource: {error}")
            continue
        for principal, of in reader.texts(fields["principal"], "case: principal") if "principal" in fields else []:
            if ":" not in principal:
                reader.wrong(of, f"case: principal: expected TYPE:NAME, as in User:{principal}")
            for key, allowed in (("may", True), ("mayNot", False)):
                for word, place in reader.texts(fields[key], f"case: {key}") if key in fields else []:
                    try:
                        operation = acl_text.parse_operation(word, resource_type)
                    except ValueError as error:
                        reader.wrong(place, f"case: {key}: {error}")
                        continue
                    case = Case(principal, operation, resource_type, name, allowed, host or WILDCARD, description)
                    found.append(replace(case, place=reader.place(place)))
    return found


@dataclass(frozen=True, slots=True)
class Judged:
    case: Case
    decision: Decision

    @property
    def is_right(self) -> bool:
        return self.decision.allowed == self.case.allowed


def judge(cases: Cases, entries: Iterable[AclEntry]) -> list[Judged]:
    """Return the decision of these entries in each case."""
    index = AclIndex(entries)
    settings = AuthorizerSettings(True, cases.super_users, cases.allow_everyone_if_no_acl_found)
    return [
        Judged(
            case,
            authorize(
                index,
                settings,
                parse_principal(case.principal),
                acl_text.parse_host(case.host),
                case.operation,
                case.resource_type,
                case.resource_name,
            ),
        )
        for case in cases.cases
    ]
