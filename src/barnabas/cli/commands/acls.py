"""`barnabas acls`: list, explain, test, audit and change ACLs.

Parses arguments and prints. Decisions come from `security.authorizer`, audits from `security.acl_audit`, test cases from
`operations.acl_cases`; `security.acl_text` parses and formats resources and operations.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, never_asks_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import carry_out, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.declared_plan import documents, load
from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import Failure, JudgingCommand
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.security import acl_text
from barnabas.security.acl import (
    WILDCARD,
    AclEntry,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.similar_names import similar_names
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.security.authorizer import AuthorizerSettings, Decision

F = TypeVar("F", bound=Callable[..., Any])

_UNSEEN = (
    "the brokers' settings super.users and allow.everyone.if.no.acl.found are not known here;"
    " pass them with --super-user and --allow-everyone-if-no-acl-found"
)
_SECURITY_DISABLED = "set authorizer.class.name on brokers and controllers; until then every request is allowed"


def _colored(value: Any) -> str | None:
    return {"DENY": "red", "ALLOW": "green", "denied": "red", "allowed": "green", "FAILED": "red"}.get(str(value))


_PERMISSION = Column("permissionType", "PERMISSION", _colored)
_ENTRY = columns("resourceType", "resourceName", "patternType", "principal", _PERMISSION, "operation", "host")
_GROUPED = {
    "resource": columns("resourceType", "resourceName", "patternType", "principal", _PERMISSION, "operations", "host"),
    "principal": columns("principal", _PERMISSION, "operations", "resourceType", "resourceName", "patternType", "host"),
}


# --- types of options and arguments


class _Text(click.ParamType[Any]):
    """A value parsed by a function that raises ValueError."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _word(known: Iterable[acl_text.Code], what: str) -> _Text:
    words = tuple(known)
    return _Text(what, lambda text: acl_text.parse_word(text, words, what))


def _resource_or_type(text: str) -> tuple[ResourceType, str | None]:
    if ":" not in text:
        return acl_text.parse_word(text, acl_text.RESOURCE_TYPES, "resource type"), None
    return acl_text.parse_resource(text)


_RESOURCE = _Text("TYPE:NAME", acl_text.parse_resource)
_RESOURCE_OR_TYPE = _Text("TYPE[:NAME]", _resource_or_type)
_PRINCIPAL = _Text("PRINCIPAL", acl_text.parse_principal_text)
_OPERATION = _word(acl_text.OPERATIONS, "operation")
_NEW_PATTERN = _word(acl_text.PATTERNS, "pattern")
_ANY_PATTERN = _word(acl_text.FILTER_PATTERNS, "pattern")
_ANY_PERMISSION = _word(acl_text.PERMISSIONS, "permission")


def _filter_options(command: F) -> F:
    """Add the options that select ACLs; the command receives them as `filter`."""

    @click.option(
        "--principal", type=_PRINCIPAL, metavar="PRINCIPAL", help="Only ACLs of this principal: User:alice, or alice."
    )
    @click.option(
        "--resource",
        type=_RESOURCE_OR_TYPE,
        metavar="TYPE[:NAME]",
        help="Only ACLs of this resource or resource type: topic:orders, group, cluster.",
    )
    @click.option(
        "--pattern",
        type=_ANY_PATTERN,
        default="any",
        metavar="any|match|literal|prefixed",
        help="Only ACLs with this pattern type; match selects every ACL that covers the resource.  [default: any]",
    )
    @click.option("--operation", type=_OPERATION, metavar="OPERATION", help="Only ACLs for this operation.")
    @click.option("--host", metavar="HOST", help="Only ACLs for this host, exactly as written in the ACL.")
    @click.option(
        "--permission", type=_ANY_PERMISSION, metavar="allow|deny", help="Only ACLs that allow, or that deny."
    )
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        principal: str | None,
        resource: tuple[ResourceType, str | None] | None,
        pattern: PatternType,
        operation: AclOperation | None,
        host: str | None,
        permission: AclPermissionType | None,
        **kwargs: Any,
    ) -> Any:
        resource_type, name = resource or (ResourceType.ANY, None)
        filter = AclFilter(  # noqa: A001
            resource_type,
            name,
            pattern,
            principal,
            host,
            operation or AclOperation.ANY,
            permission or AclPermissionType.ANY,
        )
        return command(*args, filter=filter, **kwargs)

    return wrapped  # type: ignore[return-value]


@click.group(cls=CommandGroup, short_help="List, explain, test, audit and change ACLs.")
def acls() -> None:
    """List, explain, test, audit and change ACLs.

    A resource is `cluster` or TYPE:NAME, where TYPE is topic, group, transactional-id, delegation-token or user. A
    principal without a type is a user: alice is User:alice.

    \b
    Examples:
      barnabas acls list --resource topic:orders --pattern match
      barnabas acls by-principal alice
      barnabas acls create --allow alice --operation read --resource topic:orders
      barnabas acls create --allow alice --operation all --resource topic:alice- --prefixed --dry-run
      barnabas acls explain alice read topic:orders --host 10.0.0.1
      barnabas acls test -f cases.yaml --declared cluster.yaml
      barnabas acls audit
    """


# --- listing


@acls.command("list")
@_filter_options
@common_options
def list_(connection: Connection, output: Output, filter: AclFilter) -> None:
    """List ACLs: all of them, or those selected by the options.

    \b
    Examples:
      barnabas acls list
      barnabas acls list --principal User:alice --operation read
      barnabas acls list --resource topic:orders --pattern match     every ACL that covers this topic
    """
    entries = run(connection, lambda cluster: _described(cluster, filter))
    if not entries and filter.principal is not None:
        _note_unknown_principal(filter.principal, run(connection, lambda cluster: _described(cluster, AclFilter())))
    output.rows(_ENTRY, (_row(entry) for entry in sorted(entries, key=acl_text.entry_order)))


@acls.command("by-principal", short_help="List ACLs grouped by principal.")
@click.argument("principal", type=_PRINCIPAL, required=False)
@common_options
def by_principal(connection: Connection, output: Output, principal: str | None) -> None:
    """List ACLs grouped by principal: all, or those that apply to one principal, including those of User:*.

    \b
    Examples:
      barnabas acls by-principal
      barnabas acls by-principal alice
    """
    entries = run(connection, lambda cluster: _described(cluster, AclFilter()))
    if principal is not None:
        _note_unknown_principal(principal, entries)
        entries = [entry for entry in entries if entry.principal in (principal, "User:*")]
    order = sorted(entries, key=lambda entry: (entry.principal, *acl_text.entry_order(entry)))
    output.rows(_GROUPED["principal"], _grouped(order))


@acls.command("by-resource", short_help="List ACLs grouped by resource.")
@click.argument("resource", type=_RESOURCE, required=False, metavar="[TYPE:NAME]")
@common_options
def by_resource(connection: Connection, output: Output, resource: tuple[ResourceType, str] | None) -> None:
    """List ACLs grouped by resource: all, or those that cover one resource, including prefixed and wildcard ones.

    \b
    Examples:
      barnabas acls by-resource
      barnabas acls by-resource topic:orders
    """
    wanted = AclFilter() if resource is None else AclFilter(*resource, PatternType.MATCH)
    entries = run(connection, lambda cluster: _described(cluster, wanted))
    output.rows(_GROUPED["resource"], _grouped(sorted(entries, key=acl_text.entry_order)))


def _note_unknown_principal(principal: str, entries: Sequence[AclEntry]) -> None:
    if all(entry.principal != principal for entry in entries):
        note(f"no ACL names {principal}{_similar_principal(principal, entries)}")


def _similar_principal(principal: str, entries: Iterable[AclEntry]) -> str:
    """Return a hint with a principal of an entry whose name resembles this one, without the type that all names share."""
    kind, _, name = principal.partition(":")
    known = {entry.principal.partition(":")[2] for entry in entries if entry.principal.startswith(f"{kind}:")}
    close = [] if name in known else similar_names(name, known)
    return f"; did you mean {kind}:{close[0]}?" if close else ""


async def _described(cluster: Cluster, filter: AclFilter) -> list[AclEntry]:
    from barnabas.client.admin.acls import Acls

    with _acl_errors():
        return await Acls(cluster).describe_acls(filter)


@contextmanager
def _acl_errors() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            raise Failure(f"SECURITY_DISABLED: {error.message}", advice=_SECURITY_DISABLED) from error
        raise


def _row(entry: AclEntry) -> dict[str, Any]:
    return {
        "resourceType": entry.resource_type.name,
        "resourceName": entry.resource_name,
        "patternType": entry.pattern_type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permissionType": entry.permission.name,
    }


def _grouped(entries: Iterable[AclEntry]) -> Iterator[dict[str, Any]]:
    """Merge entries that differ only in their operation into one row."""
    from barnabas.operations.acl_changes import grouped  # slow to import: event loop

    for entry, operations in grouped(entries).items():
        row = _row(entry)
        del row["operation"]
        yield {**row, "operations": operations}


# --- changing


@acls.command("create", short_help="Create ACLs.")
@click.option(
    "--allow", multiple=True, type=_PRINCIPAL, metavar="PRINCIPAL", help="Principal to allow; may be repeated."
)
@click.option("--deny", multiple=True, type=_PRINCIPAL, metavar="PRINCIPAL", help="Principal to deny; may be repeated.")
@click.option(
    "--operation",
    "operations",
    multiple=True,
    required=True,
    type=_OPERATION,
    metavar="OPERATION",
    help="Operation: read, write, describe, all, ...; may be repeated.",
)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    required=True,
    type=_RESOURCE,
    metavar="TYPE:NAME",
    help="Resource: topic:orders, group:*, cluster; may be repeated.",
)
@click.option("--prefixed", is_flag=True, help="Treat the resource name as a prefix (pattern type PREFIXED).")
@click.option(
    "--host", "hosts", multiple=True, metavar="HOST", help="Client address; may be repeated.  [default: *, all hosts]"
)
@never_asks_option
@dry_run_option
@common_options
def create(
    connection: Connection,
    output: Output,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    operations: tuple[AclOperation, ...],
    resources: tuple[tuple[ResourceType, str], ...],
    prefixed: bool,
    hosts: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Create one ACL for each combination of principal, operation, resource and host. Existing ACLs are kept.

    \b
    Examples:
      barnabas acls create --allow alice --operation read --operation describe --resource topic:orders
      barnabas acls create --allow etl --operation all --resource topic:etl. --prefixed
      barnabas acls create --deny User:* --operation write --resource topic:archive --host 10.0.0.7
    """
    if not allow and not deny:
        raise click.UsageError("Give at least one principal with --allow or --deny.")
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    who = [(each, AclPermissionType.ALLOW) for each in allow] + [(each, AclPermissionType.DENY) for each in deny]
    entries = [
        _entry(AclEntry(*resource, pattern, principal, host, operation, permission))
        for resource in resources
        for principal, permission in who
        for operation in operations
        for host in hosts or (WILDCARD,)
    ]
    run(connection, lambda cluster: _create(cluster, output, entries, dry_run))


def _entry(entry: AclEntry) -> AclEntry:
    try:
        acl_text.parse_operation(entry.operation.name, entry.resource_type)
        return acl_text.checked_entry(entry)
    except ValueError as error:
        raise click.UsageError(f"{acl_text.entry_text(entry)}: {error}") from None


async def _create(cluster: Cluster, output: Output, entries: list[AclEntry], dry_run: bool) -> None:
    from barnabas.operations.acl_changes import propose_acl_creation

    with _acl_errors():
        proposal = await propose_acl_creation(cluster, entries)
    results = await carry_out(proposal, dry_run=dry_run)
    if not dry_run or not output.is_for_people:
        show_results(output, _ENTRY, results, lambda entry, _: _row(entry))


@acls.command("delete", short_help="Delete the ACLs selected by the options.")
@_filter_options
@yes_option
@dry_run_option
@common_options
def delete(connection: Connection, output: Output, filter: AclFilter, yes: bool, dry_run: bool) -> None:
    """Delete the ACLs selected by the options, after showing them and asking for confirmation.

    \b
    Examples:
      barnabas acls delete --principal alice --resource topic:orders
      barnabas acls delete --resource topic --permission deny --dry-run
    """
    if filter == AclFilter():
        raise click.UsageError("Select the ACLs to delete with at least one option, such as --principal or --resource.")
    run(connection, lambda cluster: _delete(cluster, output, filter, yes, dry_run))


async def _delete(cluster: Cluster, output: Output, filter: AclFilter, yes: bool, dry_run: bool) -> None:
    from barnabas.operations.acl_changes import propose_acl_deletion

    entries = sorted(await _described(cluster, filter), key=acl_text.entry_order)
    if not entries:
        hint = ""
        if filter.principal is not None:
            hint = _similar_principal(filter.principal, await _described(cluster, AclFilter()))
        raise Failure(f"no ACL matches the options{hint}", advice="list all ACLs with: barnabas acls list")
    proposal = propose_acl_deletion(cluster, entries)
    results = await carry_out(proposal, dry_run=dry_run, yes=yes)
    if not dry_run or not output.is_for_people:
        show_results(output, _ENTRY, results, lambda entry, _: _row(entry))


# --- checking


def _settings_options(command: F) -> F:
    command = click.option(
        "--allow-everyone-if-no-acl-found",
        "allow_everyone",
        is_flag=True,
        help="Assume allow.everyone.if.no.acl.found=true on the brokers.",
    )(command)
    return click.option(
        "--super-user",
        "super_users",
        multiple=True,
        type=_PRINCIPAL,
        metavar="PRINCIPAL",
        help="Assume this principal is in super.users of the brokers; may be repeated.",
    )(command)


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DECLARED: dict[str, Any] = {"type": click.Path(exists=True), "multiple": True, "metavar": "FILE"}


@acls.command("explain", cls=JudgingCommand)
@click.argument("principal", type=_PRINCIPAL)
@click.argument("operation", type=_OPERATION)
@click.argument("resource", type=_RESOURCE, metavar="TYPE:NAME")
@click.option("--prefixed", is_flag=True, help="Explain the access to all resources whose names begin with NAME.")
@click.option("--host", default=WILDCARD, metavar="HOST", help="Client address.  [default: one that no ACL names]")
@click.option(
    "--declared",
    "-f",
    **_DECLARED,
    help="Use the ACLs of this cluster.yaml or folder, not a cluster's; may be repeated.",
)
@_settings_options
@common_options
def explain(
    connection: Connection,
    output: Output,
    principal: str,
    operation: AclOperation,
    resource: tuple[ResourceType, str],
    prefixed: bool,
    host: str,
    declared: tuple[str, ...],
    super_users: tuple[str, ...],
    allow_everyone: bool,
) -> None:
    """Show whether an operation is allowed, and which ACL decides. Exits with 2 if it is denied.

    With --prefixed, shows whether it is allowed for all, some or none of the resources whose names begin with NAME: for every
    possible name, and for the topics or groups that exist now. Exits with 2 unless it is allowed for all.

    \b
    Examples:
      barnabas acls explain alice read topic:orders
      barnabas acls explain alice read topic:pii- --prefixed
      barnabas acls explain User:etl write topic:etl.raw --host 10.0.0.1
      barnabas acls explain alice read topic:orders -f cluster.yaml
    """
    from barnabas.security.acl_index import AclIndex
    from barnabas.security.authorizer import AuthorizerSettings
    from barnabas.security.authorizer import explain as explain_
    from barnabas.security.principal import parse_principal

    resource_type, name = resource
    try:
        acl_text.parse_operation(operation.name, resource_type)
    except ValueError as error:
        raise Failure(str(error)) from None
    settings = AuthorizerSettings(True, frozenset(super_users), allow_everyone)
    if prefixed:
        asked = _Asked(settings, principal, acl_text.parse_host(host), operation, resource_type, name)
        entries, topics, groups = _entries_and_resources(connection, declared)
        existing = {ResourceType.TOPIC: topics, ResourceType.GROUP: groups}.get(resource_type)
        _explain_prefix(output, asked, entries, existing)
        return
    entries = _entries(connection, declared)
    found = explain_(
        AclIndex(entries),
        settings,
        parse_principal(principal),
        acl_text.parse_host(host),
        operation,
        resource_type,
        name,
    )
    decision = found.decision
    row = {
        "principal": principal,
        "operation": operation.name,
        "resource": acl_text.resource_text(resource_type, name),
        "host": host,
        "decision": "allowed" if decision.allowed else "denied",
        "reason": str(decision.reason),
        "decidedBy": None if decision.entry is None else acl_text.entry_text(decision.entry),
    }
    considered = [{**_row(each.entry), "mismatch": each.mismatch} for each in found.candidates]
    if output.is_for_people:
        output.one(row)
        if considered:
            output.title("ACLs of this resource, and why they do not apply:")
            output.rows((*_ENTRY, Column("mismatch")), considered)
    else:
        output.one({**row, "entries": considered})
    if not super_users:
        note(_UNSEEN)
    if not decision.allowed:
        sys.exit(EXIT_NO)


class _Asked(NamedTuple):
    settings: AuthorizerSettings
    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    prefix: str


_SHOWN_RESOURCES = 20
"""Existing resources that are shown as a table; the others are counted."""
_DECISION = Column("decision", style=lambda value: "red" if value == "denied" else "green")
_REGIONS = columns(Column("names"), _DECISION, Column("decidedBy", "BECAUSE"))
_EXISTING = columns("name", _DECISION, Column("decidedBy", "BECAUSE"))


def _explain_prefix(output: Output, asked: _Asked, entries: list[AclEntry], names: Iterable[str] | None) -> None:
    """Show the access to all resources with a prefix: the answer, its regions, and the resources that exist."""
    from barnabas.security.acl_index import AclIndex
    from barnabas.security.acl_prefix import Allowed, prefix_access
    from barnabas.security.authorizer import authorize
    from barnabas.security.principal import parse_principal

    index, principal = AclIndex(entries), parse_principal(asked.principal)
    question = (index, asked.settings, principal, asked.host, asked.operation, asked.resource_type)
    found = prefix_access(*question, asked.prefix)
    regions = [
        {"patternType": each.pattern_type.name, "resourceName": each.name, **_decided(each.decision)}
        for each in found.regions
    ]
    existing = None
    if names is not None:
        fitting = sorted(name for name in names if name.startswith(asked.prefix))
        existing = [{"name": name, **_decided(authorize(*question, name))} for name in fitting]
    row = {
        "principal": asked.principal,
        "operation": asked.operation.name,
        "resource": acl_text.resource_text(asked.resource_type, asked.prefix),
        "patternType": PatternType.PREFIXED.name,
        "host": asked.host,
        "allowed": found.allowed.value,
    }
    if output.is_for_people:
        kind = acl_text.type_text(asked.resource_type)
        answer = {Allowed.ALL: "all", Allowed.SOME: "some, not all", Allowed.NONE: "none"}[found.allowed]
        output.title(
            f"{asked.principal} is allowed to {asked.operation.name} {answer} of the {kind}s "
            f"whose names begin with {asked.prefix}"
        )
        ends = {PatternType.PREFIXED.name: "*", PatternType.LITERAL.name: ""}
        shown = [{**each, "names": each["resourceName"] + ends[each["patternType"]]} for each in regions]
        shown[0]["names"] += ", other than below" if len(shown) > 1 else ""
        output.rows(_REGIONS, shown)
        if existing is not None:
            denied = [each for each in existing if each["decision"] == "denied"]
            output.title(f"{kind}s that exist: {len(existing) - len(denied):,} allowed, {len(denied):,} denied")
            output.flush()
            if found.allowed is Allowed.SOME and existing:
                allowed = (each for each in existing if each["decision"] == "allowed")
                output.rows(_EXISTING, [*denied, *allowed][:_SHOWN_RESOURCES])
                if len(existing) > _SHOWN_RESOURCES:
                    note(f"and {len(existing) - _SHOWN_RESOURCES:,} more; -o json lists all")
    else:
        output.one({**row, "regions": regions, "existing": existing})
    if not asked.settings.super_users:
        note(_UNSEEN)
    if found.allowed is not Allowed.ALL:
        sys.exit(EXIT_NO)


def _decided(decision: Decision) -> dict[str, Any]:
    entry = decision.entry
    return {
        "decision": "allowed" if decision.allowed else "denied",
        "decidedBy": str(decision.reason) if entry is None else acl_text.entry_text(entry),
    }


@acls.command("test", cls=JudgingCommand, short_help="Run test cases for authorization.")
@click.option("--file", "-f", "file", type=_FILE, required=True, metavar="FILE", help="YAML file of test cases.")
@click.option(
    "--declared", **_DECLARED, help="Use the ACLs of this cluster.yaml or folder, not a cluster's; may be repeated."
)
@_settings_options
@common_options
def test(
    connection: Connection,
    output: Output,
    file: Path,
    declared: tuple[str, ...],
    super_users: tuple[str, ...],
    allow_everyone: bool,
) -> None:
    """Run test cases for authorization against a cluster or a cluster.yaml. Exits with 2 if a case fails.

    \b
    A file of cases:
      cases:
        - principal: User:billing
          resource: topic:orders
          may: [READ, DESCRIBE]
          mayNot: WRITE
          host: 10.0.0.1             optional
      superUsers: [User:admin]       optional

    \b
    Examples:
      barnabas acls test -f cases.yaml
      barnabas acls test -f cases.yaml --declared cluster.yaml      before applying it
    """
    from dataclasses import replace

    from barnabas.declared.document import load_text
    from barnabas.operations.acl_cases import judge, read_cases

    with documents():
        cases = read_cases(load_text(file), str(file))
    cases = replace(
        cases,
        super_users=cases.super_users | set(super_users),
        allow_everyone_if_no_acl_found=cases.allow_everyone_if_no_acl_found or allow_everyone,
    )
    judged = judge(cases, _entries(connection, declared))
    shown = columns(
        Column("result", style=_colored),
        "principal",
        "operation",
        "resource",
        "host",
        "expected",
        "actual",
        "decidedBy",
    )
    words = {True: "allowed", False: "denied"}
    output.rows(
        shown,
        (
            {
                "result": "ok" if each.is_right else "FAILED",
                "principal": each.case.principal,
                "operation": each.case.operation.name,
                "resource": each.case.resource,
                "host": each.case.host,
                "expected": words[each.case.allowed],
                "actual": words[each.decision.allowed],
                "decidedBy": str(each.decision.reason)
                if each.decision.entry is None
                else acl_text.entry_text(each.decision.entry),
                "description": each.case.description,
                "line": each.case.place.line,
            }
            for each in judged
        ),
    )
    wrong = sum(not each.is_right for each in judged)
    note(f"{len(judged)} cases, {wrong} failed" if wrong else f"{len(judged)} cases, all passed")
    if wrong:
        sys.exit(EXIT_NO)


@acls.command("audit", cls=JudgingCommand, short_help="Find ACLs without effect, redundant or too wide.")
@click.option("--declared", "-f", **_DECLARED, help="Audit the ACLs of this cluster.yaml or folder; may be repeated.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 if there are findings.")
@common_options
def audit(connection: Connection, output: Output, declared: tuple[str, ...], exit_code: bool) -> None:
    """Find ACLs that have no effect, are redundant, allow too much, or name a topic or group that does not exist.

    \b
    Findings:
      duplicated         the file contains this ACL twice
      shadowed           another ACL covers this one
      denied             another ACL denies what this one allows
      never-denies       no ACL allows what this one denies
      wildcard           it allows everyone, every resource or every operation
      replaceable        one PREFIXED ACL could replace several
      no-such-resource   the topic or group does not exist

    \b
    Examples:
      barnabas acls audit
      barnabas acls audit -f cluster.yaml --exit-code
    """
    from barnabas.security.acl_audit import audit as audit_
    from barnabas.security.acl_audit import finding_text

    entries, topics, groups = _entries_and_resources(connection, declared)
    findings = audit_(entries, topics, groups)
    rows = (
        {
            "finding": str(each.kind),
            "entry": finding_text(each),
            "message": each.message,
            "because": None if each.because is None else acl_text.entry_text(each.because),
            "entries": [_row(entry) for entry in each.entries],
        }
        for each in findings
    )
    output.rows(columns("finding", "entry", "message", "because"), rows)
    note(f"{len(entries)} ACLs, {len(findings)} finding{'s' if len(findings) != 1 else ''}")
    if findings and exit_code:
        sys.exit(EXIT_NO)


async def _with_resources(cluster: Cluster) -> tuple[list[AclEntry], list[str] | None, list[str] | None]:
    from barnabas.client.admin.groups import Groups

    entries = await _described(cluster, AclFilter())
    if cluster.settings.bootstrap_controllers:
        return entries, None, None  # controllers list neither topics nor groups
    state = await cluster.metadata(None)
    groups = await Groups(cluster).list_groups()
    return entries, list(state.topics), [group.group_id for group in groups]


def _entries_and_resources(
    connection: Connection, declared: tuple[str, ...]
) -> tuple[list[AclEntry], list[str] | None, list[str] | None]:
    """Return the ACLs, and the topics and groups that exist; None if they are not known."""
    if not declared:
        return run(connection, _with_resources)
    document = load(declared)
    if document.topics is None:
        return document.entries(), None, None
    return document.entries(), [each.name for each in document.topics.values() if not each.absent], None


def _entries(connection: Connection, declared: tuple[str, ...]) -> list[AclEntry]:
    if declared:
        return load(declared).entries()
    return run(connection, lambda cluster: _described(cluster, AclFilter()))
