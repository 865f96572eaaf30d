"""Access: ACLs by principal and by resource, explanations, tests, the audit, users, quotas and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, TypeVar

from starlette.responses import Response

from barnabas.client.admin.quotas import DEFAULT, entity_text, quota_entity
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.client.cluster import Cluster
from barnabas.console.changes import planned, show_plan
from barnabas.console.errors import RefusedError
from barnabas.console.forms import checked
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.declared.yaml_nodes import DocumentError
from barnabas.operations.access import Access, explain_access, look_at_access
from barnabas.operations.acl_cases import judge, read_cases
from barnabas.operations.acl_changes import grouped, propose_acl_creation, propose_acl_deletion
from barnabas.operations.doctor.cluster_facts import Unknown
from barnabas.operations.proposal import Proposal
from barnabas.operations.user_changes import propose_credential, propose_credential_deletion, propose_quotas
from barnabas.security import acl_text
from barnabas.security.acl import AclEntry, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_audit import Finding, audit, finding_text
from barnabas.wire.errors import KafkaError

E = TypeVar("E", bound=Enum)

ACCESS: Question[Access] = Question("access", look_at_access, 15)


class _Audited(NamedTuple):
    """What is known about access, and the findings of the audit with their texts, made once for all visits."""

    access: Access
    findings: list[tuple[Finding, str]]


async def _audited(cluster: Cluster) -> _Audited:
    found = await look_at_access(cluster)
    if isinstance(entries := found.acls, Unknown):
        return _Audited(found, [])

    def findings() -> list[tuple[Finding, str]]:
        return [(each, finding_text(each)) for each in audit(entries, found.topics, found.groups)]

    return _Audited(found, await asyncio.to_thread(findings))


AUDITED: Question[_Audited] = Question("audited access", _audited, 30)
TABS = ("acls", "users", "quotas", "tokens", "audit", "test")
OPERATIONS = ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL")
EXAMPLE = (
    "cases:\n  - principal: User:alice\n    resource: topic:orders\n    may: [READ, DESCRIBE]\n    mayNot: WRITE\n"
)


async def access(visit: Visit) -> Response:
    tab = visit.query("tab", "acls")
    if tab not in TABS:
        raise RefusedError(404, "there is no such page")
    audited = (await visit.ask(AUDITED)).value if tab == "audit" else None
    found = (await visit.ask(ACCESS)).value if tab != "audit" else None if audited is None else audited.access
    principal, resource, by = visit.query("principal"), visit.query("resource"), visit.query("by", "principal")
    entries = found.acls if found is not None and tab == "acls" and not isinstance(found.acls, Unknown) else []
    rows = [
        each
        for each in entries
        if principal.lower() in each.principal.lower()
        and resource.lower() in acl_text.resource_text(each.resource_type, each.resource_name).lower()
    ]
    if by == "principal":
        rows.sort(key=lambda each: (each.principal, acl_text.entry_order(each)))
    given = {"tab": tab, "principal": principal, "resource": resource, "by": by}
    values = {
        "tab": tab,
        "tabs": TABS,
        "found": found,
        "page": visit.listed(_rows(found, tab, rows) if audited is None else audited.findings),
        "given": given,
        "resource_text": acl_text.resource_text,
        "entity_text": entity_text,
        "operations": OPERATIONS,
        "types": [each.name.lower() for each in ResourceType if each.value > 1 and each.name != "USER"],
        "command": visit.entry.command(
            "acls", "create", "--allow", "PRINCIPAL", "--operation", "read", "--resource", "topic:NAME"
        ),
        **_test(visit, found, tab),
    }
    return visit.page("access.html", "Access", values, nav="access")


def _rows(found: Access | None, tab: str, entries: list[AclEntry]) -> Sequence[Any]:
    """Return the rows of a tab; none if they are not known."""
    if tab == "acls":
        return list(grouped(entries).items())
    if found is None:
        return ()
    match tab:
        case "users" if not isinstance(found.users, Unknown):
            return sorted(found.users.items())
        case "quotas" if not isinstance(found.quotas, Unknown):
            return [(entity, key, value) for entity, values in found.quotas.items() for key, value in values.items()]
        case "tokens" if not isinstance(found.tokens, Unknown):
            return found.tokens
    return ()


def _test(visit: Visit, found: Access | None, tab: str) -> dict[str, Any]:
    """Judge the cases of a query with the ACLs of the cluster."""
    text = visit.query("cases").replace("\r\n", "\n")
    judged, problem = [], None
    if tab == "test" and text and found is not None and not isinstance(found.acls, Unknown):
        try:
            cases = read_cases(text, "cases")
            if not isinstance(found.settings, Unknown) and not cases.super_users:
                cases = replace(cases, super_users=found.settings.super_users)
            judged = judge(cases, found.acls)
        except DocumentError as error:
            problem = str(error)
    return {"cases": text or EXAMPLE, "judged": judged, "problem": problem}


async def explain(visit: Visit) -> Response:
    answer = await visit.ask(ACCESS)
    given = {name: visit.query(name) for name in ("principal", "operation", "resource", "host")}
    found = problem = None
    if answer.value is not None and given["principal"] and given["operation"] and given["resource"]:
        try:
            found = explain_access(answer.value, **given)
        except ValueError as error:
            problem = str(error)
    values = {
        "access": answer.value,
        "given": given,
        "found": found,
        "problem": problem,
        "operations": OPERATIONS,
        "entry_text": acl_text.entry_text,
        "command": visit.entry.command(
            "acls",
            "explain",
            given["principal"] or "PRINCIPAL",
            given["operation"] or "read",
            given["resource"] or "topic:NAME",
            *(("--host", given["host"]) if given["host"] else ()),
        ),
    }
    return visit.page("explain.html", "Explain access", values, nav="access")


# --- changes


def _entries(form: Mapping[str, str]) -> list[AclEntry]:
    """Return the entries of a form, one for each operation. Raises RefusedError."""
    if not form.get("operations", "").strip():
        raise RefusedError(400, "choose at least one operation")
    with checked():
        resource_type, name = acl_text.parse_resource(form.get("resource", ""))
        pattern = _choice(PatternType, form, "pattern", "literal")
        permission = _choice(AclPermissionType, form, "permission", "allow")
        return [
            acl_text.checked_entry(
                AclEntry(
                    resource_type=resource_type,
                    resource_name=name,
                    pattern_type=pattern,
                    principal=acl_text.parse_principal_text(form.get("principal", "")),
                    host=acl_text.parse_host(form.get("host") or "*"),
                    operation=acl_text.parse_operation(word, resource_type),
                    permission=permission,
                )
            )
            for word in form.get("operations", "").split()
        ]


def _choice(kind: type[E], form: Mapping[str, str], name: str, default: str) -> E:
    """Return the member of an enumeration that a field names. Raises ValueError."""
    text = form.get(name, default)
    if text.upper() not in kind.__members__:
        raise ValueError(f"{text!r} is no {name}")
    return kind[text.upper()]


def _creation_command(visit: Visit, entries: list[AclEntry]) -> str:
    first = entries[0]
    verb = "--allow" if first.permission is AclPermissionType.ALLOW else "--deny"
    words = ["acls", "create", verb, first.principal]
    words += [word for each in entries for word in ("--operation", each.operation.name.lower())]
    words += ["--resource", acl_text.resource_text(first.resource_type, first.resource_name)]
    words += ["--prefixed"] if first.pattern_type is PatternType.PREFIXED else []
    return visit.entry.command(*words, *(["--host", first.host] if first.host != "*" else []))


def _deletion_command(visit: Visit, entry: AclEntry) -> str:
    """Return the command for this entry and no other: it leaves out nothing, because that selects more."""
    return visit.entry.command(
        *("acls", "delete", "--principal", entry.principal, "--permission", entry.permission.name.lower()),
        *("--operation", entry.operation.name.lower()),
        *("--resource", acl_text.resource_text(entry.resource_type, entry.resource_name)),
        *("--pattern", entry.pattern_type.name.lower(), "--host", entry.host),
    )


async def create_acl(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    entries = _entries(form)
    proposal = await visit.now(partial(propose_acl_creation, entries=entries))
    plan = planned(
        "Create ACLs",
        proposal,
        command=_creation_command(visit, entries),
        back=f"{visit.base}/access",
        nav="access",
        item=acl_text.entry_text,
    )
    return show_plan(visit, plan)


async def delete_acl(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    entries = _entries(form)

    async def propose(cluster: Cluster) -> Proposal[AclEntry, list[AclEntry] | KafkaError]:
        return propose_acl_deletion(cluster, entries)

    plan = planned(
        "Delete ACLs",
        await visit.now(propose),
        command=" && ".join(_deletion_command(visit, each) for each in entries),
        back=f"{visit.base}/access",
        nav="access",
        name=entries[0].principal,
        item=acl_text.entry_text,
    )
    return show_plan(visit, plan)


async def set_user(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    user, password, mechanism = form.get("user", "").strip(), form.get("password", ""), form.get("mechanism", "")
    if not user or (not password and not form.get("delete")):
        raise RefusedError(400, "a user and a password are needed")
    with checked():
        wanted = ScramMechanism.of(mechanism)
    if form.get("delete"):
        proposal = await visit.now(partial(propose_credential_deletion, name=user, mechanism=wanted))
        words, title = ("users", "delete", user, "--mechanism", mechanism), f"Delete a credential of {user}"
    else:
        proposal = await visit.now(partial(propose_credential, upsertion=ScramUpsertion(user, wanted, password)))
        words, title = ("users", "set", user, "--mechanism", mechanism), f"Set a credential of {user}"
    plan = planned(
        title,
        proposal,
        command=visit.entry.command(*words),
        back=f"{visit.base}/access?tab=users",
        nav="access",
        name=user if form.get("delete") else None,
        item=lambda key: f"{key.user}, {key.mechanism.sasl_name}",
    )
    return show_plan(visit, plan)


async def set_quota(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    key, text = form.get("key", "").strip(), form.get("value", "").strip()
    parts: dict[str, Any] = {}
    words = ["quotas", "set" if text else "unset"]
    for name, option in (("user", "--user"), ("client_id", "--client-id"), ("ip", "--ip")):
        if given := form.get(name, "").strip():
            parts[name] = DEFAULT if given == "<default>" else given
            words += [f"{option}-default"] if given == "<default>" else [option, given]
    if not parts or not key:
        raise RefusedError(400, "name a user, client id or address, and a quota")
    try:
        values = {key: float(text) if text else None}
    except ValueError:
        raise RefusedError(400, f"{text} is not a number") from None
    proposal = await visit.now(partial(propose_quotas, entity=quota_entity(**parts), values=values))
    words.append(f"{key}={text}" if text else key)
    plan = planned(
        "Change a quota",
        proposal,
        command=visit.entry.command(*words),
        back=f"{visit.base}/access?tab=quotas",
        nav="access",
        item=entity_text,
    )
    return show_plan(visit, plan)


PAGES = {"/access": access, "/access/explain": explain}
FORMS = {
    "/access/acl": create_acl,
    "/access/acl/delete": delete_acl,
    "/access/user": set_user,
    "/access/quota": set_quota,
}
