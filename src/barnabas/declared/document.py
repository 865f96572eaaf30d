"""The file that declares a cluster: topics, ACLs, quotas, users, broker configs.

    topics:
      orders:
        partitions: 12
        replicationFactor: 3
        configs: {retention.ms: 604800000, cleanup.policy: [compact, delete]}
      legacy: {state: absent}
    acls:
      - principal: User:billing
        operations: [READ, DESCRIBE]
        resource: topic:orders          # TYPE:NAME; `cluster`
        pattern: LITERAL                # or PREFIXED
        permission: ALLOW               # or DENY
        host: "*"
        description: Invoices are made of orders.
    quotas:
      - entity: {user: billing, client-id: <default>}
        quotas: {producer_byte_rate: 1048576}
    users:
      billing:
        SCRAM-SHA-512: {iterations: 8192, password: {env: BILLING_PASSWORD}}
    brokers:
      <default>: {log.cleaner.threads: 2}
      1: {log.cleaner.threads: 4}
    manages:                            # what `--delete` may delete if it is not declared
      topics: [billing-*]               # names; a * at the end stands for any suffix
      acls: [{resource: topic:billing-*}, {principal: User:billing}]
      quotas: [{user: billing-*}]
      users: [billing-*]

Its one rule: what is not declared stays as it is. That holds for a section that is left out, and for a field that is left out.
A null removes a config or a quota, and `state: absent` removes a topic, an ACL or a user. The file never has passwords, only
where to find them. This module reads text into values and reports every error with its line and column. Settings that the
Kafka release of barnabas would refuse are `doubts`: a cluster of another release may know them. It connects to no cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from barnabas.config import topic_names
from barnabas.declared import settings
from barnabas.declared.settings import SettingError
from barnabas.declared.yaml_nodes import NOWHERE, DocumentError, FilePosition, Node, Problem, Reader, is_null, kind
from barnabas.security import acl_text
from barnabas.security.acl import WILDCARD, AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType

T = TypeVar("T")

DEFAULT = "<default>"
"""The name that stands for the default of users, clients, IP addresses or brokers."""
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
SECTIONS = ("topics", "acls", "quotas", "users", "brokers")
MANAGED_KINDS = ("topics", "acls", "quotas", "users")
"""The kinds of resources that can be deleted because they are not declared. Broker configs never are."""

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""The entity of a quota: pairs of type and name, sorted by type. None as the name means the default of the type."""
Credential: TypeAlias = tuple[str, str]
"""A user and a mechanism."""

_ENTITY_TYPES = ("user", "client-id", "ip")


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """A topic. A field that is None is not declared; in `configs`, None removes the config."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str | None] | None = None
    absent: bool = False
    place: FilePosition = NOWHERE


@dataclass(frozen=True, slots=True)
class DeclaredAcl:
    entry: AclEntry
    description: str | None = None
    absent: bool = False
    place: FilePosition = NOWHERE


@dataclass(frozen=True, slots=True)
class DeclaredQuota:
    entity: Entity
    values: Mapping[str, float | None]
    place: FilePosition = NOWHERE


@dataclass(frozen=True, slots=True)
class Password:
    """The source of a password: an environment variable, or a file. The path is relative to `folder`."""

    env: str | None = None
    file: str | None = None
    folder: str = ""

    def __str__(self) -> str:
        return f"${self.env}" if self.env is not None else f"file {self.file}"


@dataclass(frozen=True, slots=True)
class DeclaredUser:
    """One credential of a user."""

    user: str
    mechanism: str
    iterations: int | None = None
    password: Password | None = None
    absent: bool = False
    place: FilePosition = NOWHERE


@dataclass(frozen=True, slots=True)
class DeclaredBroker:
    """Configs of one broker, or of all brokers (DEFAULT)."""

    name: str
    configs: Mapping[str, str | None]
    place: FilePosition = NOWHERE


@dataclass(frozen=True, slots=True)
class AclScope:
    """A set of ACLs, by resource, principal or both. Names may end with `*`. None matches everything."""

    resource_type: ResourceType | None = None
    resource_name: str | None = None
    principal: str | None = None

    def includes(self, entry: AclEntry) -> bool:
        return (
            self.resource_type in (None, entry.resource_type)
            and (self.resource_name is None or name_matches(self.resource_name, entry.resource_name))
            and (self.principal is None or name_matches(self.principal, entry.principal))
        )


@dataclass(frozen=True, slots=True)
class Manages:
    """The resources that a file manages: those that are not declared may be deleted. A kind without patterns is not managed.

    A pattern of quotas has a name for some types of entities; the other types may have any name.
    """

    topics: tuple[str, ...] = ()
    acls: tuple[AclScope, ...] = ()
    quotas: tuple[Entity, ...] = ()
    users: tuple[str, ...] = ()

    def has_topic(self, name: str) -> bool:
        return any(name_matches(pattern, name) for pattern in self.topics)

    def has_acl(self, entry: AclEntry) -> bool:
        return any(scope.includes(entry) for scope in self.acls)

    def has_quota(self, entity: Entity) -> bool:
        names = dict(entity)
        return any(
            all(of in names and _entity_name_matches(pattern, names[of]) for of, pattern in each)
            for each in self.quotas
        )

    def has_user(self, name: str) -> bool:
        return any(name_matches(pattern, name) for pattern in self.users)


EVERYTHING = Manages((WILDCARD,), (AclScope(),), ((),), (WILDCARD,))
"""All resources: the scope of a file without `manages`."""


def name_matches(pattern: str, name: str) -> bool:
    """Return whether a name is the pattern, or starts with the part of it before a final `*`.

    >>> name_matches("billing-*", "billing-eu"), name_matches("billing", "billing-eu"), name_matches("*", "any")
    (True, False, True)
    """
    return name.startswith(pattern[:-1]) if pattern.endswith(WILDCARD) else name == pattern


def _entity_name_matches(pattern: str | None, name: str | None) -> bool:
    if pattern is None or name is None:
        return pattern is name or pattern == WILDCARD
    return name_matches(pattern, name)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A declared value that this release of Kafka refuses.

    It is a problem, unless the cluster has the value or knows the name. `resource` is the key of the resource in its section.
    """

    section: str
    resource: Any
    name: str
    value: str | float | None
    is_unknown: bool
    problem: Problem


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file. A section that is None is not in the file."""

    topics: Mapping[str, DeclaredTopic] | None = None
    acls: tuple[DeclaredAcl, ...] | None = None
    quotas: Mapping[Entity, DeclaredQuota] | None = None
    users: Mapping[Credential, DeclaredUser] | None = None
    brokers: Mapping[str, DeclaredBroker] | None = None
    file: str = ""
    manages: Manages | None = None
    doubts: tuple[Doubt, ...] = ()

    def sections(self) -> list[str]:
        """Return the sections that the document declares or manages."""
        managed = [] if self.manages is None else [name for name in MANAGED_KINDS if getattr(self.manages, name)]
        return [name for name in SECTIONS if getattr(self, name) is not None or name in managed]

    def entries(self) -> list[AclEntry]:
        """Return the declared ACLs, without those declared absent."""
        return [each.entry for each in self.acls or () if not each.absent]


def load_document(path: Path) -> Document:
    """Read a file. Raises `DocumentError` if its content is wrong, and `OSError`."""
    return read_document(load_text(path), str(path))


def load_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError([Problem(FilePosition(str(path), 1, 1), f"this is not UTF-8: {error.reason}")]) from None


def read_document(text: str, file: str = "cluster.yaml") -> Document:
    """Read the text of a file. Raises `DocumentError` with all problems."""
    reader = _DocumentReader(file)
    root = reader.parse(text)
    known = (*SECTIONS, "manages")
    nothing = f"the file declares nothing: expected {', '.join(known)}"
    if root is None or is_null(root) or (kind(root) == "a mapping" and not root.value):
        raise DocumentError([Problem(FilePosition(file, 1, 1), nothing)])
    sections = reader.fields(root, "the file", known)
    document = Document(
        topics=_section(reader, sections, "topics", _topics),
        acls=_section(reader, sections, "acls", _acls),
        quotas=_section(reader, sections, "quotas", _quotas),
        users=_section(reader, sections, "users", _users),
        brokers=_section(reader, sections, "brokers", _brokers),
        file=file,
        manages=_manages(reader, sections["manages"]) if "manages" in sections else None,
        doubts=tuple(reader.doubts),
    )
    reader.finish()
    return document


class _DocumentReader(Reader):
    """A reader that also notes doubts."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.doubts: list[Doubt] = []

    def doubt(
        self,
        node: Node,
        what: str,
        declared: tuple[str, Any, str, str | float | None],
        error: SettingError | None,
    ) -> None:
        """Note a value (section, resource, name and value) if there is an error in it."""
        if error is not None:
            problem = Problem(self.place(node), f"{what}: {error.message}")
            self.doubts.append(Doubt(*declared, error.is_unknown, problem))


def _section(
    reader: _DocumentReader, sections: Mapping[str, Node], name: str, read: Callable[[_DocumentReader, Node], T]
) -> T | None:
    node = sections.get(name)
    if node is None:
        return None
    if is_null(node):
        empty = "[]" if name in ("acls", "quotas") else "{}"
        reader.wrong(node, f"{name}: this section is empty: remove it, or write {empty} to declare that there are none")
        return None
    return read(reader, node)


# --- topics


def _topics(reader: _DocumentReader, node: Node) -> dict[str, DeclaredTopic]:
    topics = {}
    for name, key, value in reader.entries(node, "topics"):
        what = f"topic {name}"
        if not topic_names.is_valid(name):
            reader.wrong(
                key, f"{what}: a name has up to {topic_names.MAX_LENGTH} letters, digits, dots, underscores and hyphens"
            )
        if is_null(value):
            topics[name] = DeclaredTopic(name, place=reader.place(key))
            continue
        fields = reader.fields(value, what, ("partitions", "replicationFactor", "configs", "state"))
        partitions, factor = fields.get("partitions"), fields.get("replicationFactor")
        topics[name] = DeclaredTopic(
            name,
            None if partitions is None else reader.integer(partitions, f"{what}: partitions", 1),
            None if factor is None else reader.integer(factor, f"{what}: replicationFactor", 1),
            _topic_configs(reader, fields["configs"], name) if "configs" in fields else None,
            _is_absent(reader, fields, value, what),
            reader.place(key),
        )
    return topics


def _topic_configs(reader: _DocumentReader, node: Node, topic: str) -> dict[str, str | None]:
    what = f"topic {topic}"
    configs = _configs(reader, node, "topics", topic, what, settings.check_topic_setting)
    lag = "min.compaction.lag.ms"
    reader.doubt(node, what, ("topics", topic, lag, configs.get(lag)), settings.check_compaction_lags(configs))
    return configs


def _configs(
    reader: _DocumentReader,
    node: Node,
    section: str,
    resource: str,
    what: str,
    check: Callable[[str, str | None], SettingError | None],
) -> dict[str, str | None]:
    configs = {}
    for name, key, node_of_value in reader.entries(node, f"configs of {what}"):
        value = configs[name] = reader.setting(node_of_value, f"{what}: {name}")
        if value is None and not is_null(node_of_value):
            continue  # not a value at all, which is reported
        error = check(name, value)
        is_name = error is not None and error.is_unknown
        reader.doubt(key if is_name else node_of_value, what, (section, resource, name, value), error)
    return configs


def _is_absent(reader: Reader, fields: Mapping[str, Node], node: Node, what: str, beside: Iterable[str] = ()) -> bool:
    """Return whether `state: absent` is declared. No other field is allowed then, except those in `beside`."""
    if "state" not in fields:
        return False
    state = reader.text(fields["state"], f"{what}: state", "absent or present")
    if state not in (None, "absent", "present"):
        reader.wrong(fields["state"], f"{what}: state: expected absent or present, found {state}")
    others = [name for name in fields if name not in ("state", *beside)]
    if state == "absent" and others:
        reader.wrong(node, f"{what}: it is declared absent, so it cannot have {', '.join(others)}")
    return state == "absent"


# --- acls

_ACL_FIELDS = (
    "principal",
    "operations",
    "operation",
    "resource",
    "pattern",
    "permission",
    "host",
    "description",
    "state",
)


def _acls(reader: Reader, node: Node) -> tuple[DeclaredAcl, ...]:
    acls: dict[AclEntry, DeclaredAcl] = {}
    for item in reader.items(node, "acls"):
        for acl in _acl(reader, item):
            before = acls.setdefault(acl.entry, acl)
            if before is not acl:
                text = f"{acl_text.entry_text(acl.entry)}: already declared in line {before.place.line}"
                reader.wrong(item, f"acl: {text}")
    return tuple(acls.values())


def _acl(reader: Reader, node: Node) -> list[DeclaredAcl]:
    """Return one ACL for each operation, resource and principal of an item."""
    fields = reader.fields(node, "acl", _ACL_FIELDS, ("principal", "resource"))
    if not fields:
        return []
    if ("operations" in fields) == ("operation" in fields):
        reader.wrong(node, "acl: expected either operation or operations")
    host = reader.text(fields["host"], "acl: host") if "host" in fields else WILDCARD
    description = reader.text(fields["description"], "acl: description") if "description" in fields else None
    pattern: PatternType | None = PatternType.LITERAL
    if "pattern" in fields:
        parse_pattern = _word(acl_text.PATTERNS, "pattern")
        pattern = reader.parsed(fields["pattern"], "acl: pattern", parse_pattern)
    permission: AclPermissionType | None = AclPermissionType.ALLOW
    if "permission" in fields:
        parse_permission = _word(acl_text.PERMISSIONS, "permission")
        permission = reader.parsed(fields["permission"], "acl: permission", parse_permission)
    absent = _is_absent(reader, fields, node, "acl", _ACL_FIELDS)
    principals = _several(reader, fields.get("principal"), "acl: principal", _principal)
    resources = _several(reader, fields.get("resource"), "acl: resource", acl_text.parse_resource)
    operations = fields.get("operations") or fields.get("operation")
    declared = []
    for resource_type, name in resources:
        found = _several(reader, operations, "acl: operations", _operation_of(resource_type))
        for principal in principals:
            for operation in found:
                if host is None or pattern is None or permission is None:
                    continue
                entry = AclEntry(resource_type, name, pattern, principal, host, operation, permission)
                declared.append(DeclaredAcl(entry, description, absent, reader.place(node)))
    for acl in declared:
        try:
            acl_text.checked_entry(acl.entry)
        except ValueError as error:
            reader.wrong(node, f"acl: {error}")
    return declared


def _several(reader: Reader, node: Node | None, what: str, parse: Callable[[str], T]) -> list[T]:
    if node is None:
        return []
    found = [reader.parsed(each, what, parse) for _, each in reader.texts(node, what)]
    return [each for each in found if each is not None]


def _word(known: tuple[acl_text.Code, ...], what: str) -> Callable[[str], acl_text.Code]:
    return lambda text: acl_text.parse_word(text, known, what)


def _principal(text: str) -> str:
    if ":" not in text:
        raise ValueError(f"expected TYPE:NAME, as in User:{text}, found {text!r}")
    return acl_text.parse_principal_text(text)


def _operation_of(resource_type: ResourceType) -> Callable[[str], AclOperation]:
    return lambda text: acl_text.parse_operation(text, resource_type)


# --- quotas


def _quotas(reader: _DocumentReader, node: Node) -> dict[Entity, DeclaredQuota]:
    quotas: dict[Entity, DeclaredQuota] = {}
    for item in reader.items(node, "quotas"):
        fields = reader.fields(item, "quota", ("entity", "quotas"), ("entity", "quotas"))
        if len(fields) < 2:
            continue
        entity = _entity(reader, fields["entity"])
        values = {}
        for name, key, node_of_value in reader.entries(fields["quotas"], "quotas of an entity"):
            value = values[name] = _rate(reader, node_of_value, f"quota: {name}")
            if value is None and not is_null(node_of_value):
                continue  # not a number, which is reported
            error = settings.check_quota(name, value, is_ip="ip" in dict(entity))
            where = key if error is not None and error.is_unknown else node_of_value
            reader.doubt(where, f"quota: {entity_text(entity)}", ("quotas", entity, name, value), error)
        if entity in quotas:
            reader.wrong(item, f"quota: {entity_text(entity)}: already declared in line {quotas[entity].place.line}")
        quotas[entity] = DeclaredQuota(entity, values, reader.place(item))
    return quotas


def _entity(reader: Reader, node: Node, what: str = "quota: entity") -> Entity:
    fields = reader.fields(node, what, _ENTITY_TYPES)
    if not fields or ("ip" in fields and len(fields) > 1):
        reader.wrong(node, f"{what}: expected user, client-id, both of them, or ip")
    names = {of: reader.text(value, f"quota: {of}", f"a name or {DEFAULT}") for of, value in fields.items()}
    return tuple(sorted((of, None if name == DEFAULT else name) for of, name in names.items()))


def entity_text(entity: Entity) -> str:
    """Format an entity, as in `user billing, client-id <default>`."""
    names = {of: DEFAULT if name is None else name for of, name in entity}
    return ", ".join(f"{of} {names[of]}" for of in sorted(names, reverse=True))


def _rate(reader: Reader, node: Node, what: str) -> float | None:
    return None if is_null(node) else reader.parsed(node, what, _positive, "a number")


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"expected a number of at least 0, found {text}")
    return number


# --- users


def _users(reader: _DocumentReader, node: Node) -> dict[Credential, DeclaredUser]:
    users = {}
    for name, key, value in reader.entries(node, "users"):
        if not name:
            reader.wrong(key, "users: the name of a user is empty")
        for mechanism, credential in reader.fields(value, f"user {name}", MECHANISMS).items():
            users[name, mechanism] = _user(reader, name, mechanism, credential)
    return users


def _user(reader: _DocumentReader, user: str, mechanism: str, node: Node) -> DeclaredUser:
    what, place = f"user {user}: {mechanism}", reader.place(node)
    if is_null(node):
        return DeclaredUser(user, mechanism, place=place)
    fields = reader.fields(node, what, ("iterations", "password", "state"))
    iterations = None
    if "iterations" in fields:
        iterations = reader.integer(fields["iterations"], f"{what}: iterations", MIN_ITERATIONS)
        if iterations is not None and iterations > MAX_ITERATIONS:
            error = SettingError(f"iterations: expected a whole number of at most {MAX_ITERATIONS}, found {iterations}")
            reader.doubt(fields["iterations"], what, ("users", (user, mechanism), "iterations", iterations), error)
    password = _password(reader, fields["password"], f"{what}: password") if "password" in fields else None
    return DeclaredUser(user, mechanism, iterations, password, _is_absent(reader, fields, node, what), place)


def _password(reader: Reader, node: Node, what: str) -> Password | None:
    instead = "expected {env: VARIABLE} or {file: PATH}"
    if kind(node) != "a mapping":
        reader.wrong(node, f"{what}: passwords must not be in this file: {instead}")
        return None
    fields = reader.fields(node, what, ("env", "file"))
    if len(fields) != 1:
        reader.wrong(node, f"{what}: {instead}")
        return None
    name, value = next(iter(fields.items()))
    text = reader.text(value, what, "a name")
    if text is None:
        return None
    return Password(env=text) if name == "env" else Password(file=text, folder=str(Path(reader.file).parent))


# --- brokers


def _brokers(reader: _DocumentReader, node: Node) -> dict[str, DeclaredBroker]:
    brokers = {}
    for name, key, value in reader.entries(node, "brokers"):
        if name != DEFAULT and not name.isdecimal():
            reader.wrong(key, f"brokers: expected a broker id or {DEFAULT}, found {name!r}")
        check = partial(settings.check_broker_setting, cluster_wide=name == DEFAULT)
        configs = _configs(reader, value, "brokers", name, f"broker {name}", check)
        brokers[name] = DeclaredBroker(name, configs, reader.place(key))
    return brokers


# --- manages


def _manages(reader: Reader, node: Node) -> Manages:
    fields = reader.fields(node, "manages", MANAGED_KINDS)
    if not fields:
        reader.wrong(node, f"manages: expected at least one of {', '.join(MANAGED_KINDS)}")
    acls, quotas = fields.get("acls"), fields.get("quotas")
    return Manages(
        topics=_patterns(reader, fields.get("topics"), "manages: topics"),
        acls=() if acls is None else tuple(_acl_scope(reader, each) for each in _listed(reader, acls, "manages: acls")),
        quotas=()
        if quotas is None
        else tuple(_quota_scope(reader, each) for each in _listed(reader, quotas, "manages: quotas")),
        users=_patterns(reader, fields.get("users"), "manages: users"),
    )


def _listed(reader: Reader, node: Node, what: str) -> list[Node]:
    items = reader.items(node, what)
    if kind(node) == "a list" and not items:
        reader.wrong(node, f"{what}: the list is empty: remove it")
    return items


def _patterns(reader: Reader, node: Node | None, what: str) -> tuple[str, ...]:
    if node is None:
        return ()
    found = [reader.parsed(each, what, _pattern) for each in _listed(reader, node, what)]
    return tuple(each for each in found if each is not None)


def _pattern(text: str) -> str:
    if not text:
        raise ValueError("expected a name, or a prefix and *; found an empty text")
    if WILDCARD in text[:-1]:
        raise ValueError(f"a * is only possible at the end of a name, found {text}")
    return text


def _acl_scope(reader: Reader, node: Node) -> AclScope:
    fields = reader.fields(node, "manages: acls", ("resource", "principal"))
    if not fields and kind(node) == "a mapping":
        reader.wrong(node, "manages: acls: expected resource, principal or both")
    resource_type = name = principal = None
    if "resource" in fields:
        found = reader.parsed(fields["resource"], "manages: acls: resource", _resource_pattern)
        resource_type, name = found or (None, None)
    if "principal" in fields:
        principal = reader.parsed(fields["principal"], "manages: acls: principal", _principal_pattern)
    return AclScope(resource_type, name, principal)


def _resource_pattern(text: str) -> tuple[ResourceType | None, str]:
    if text == WILDCARD:
        return None, WILDCARD
    resource_type, name = acl_text.parse_resource(text)
    return resource_type, _pattern(name)


def _principal_pattern(text: str) -> str:
    return text if text == WILDCARD else _pattern(_principal(text))


def _quota_scope(reader: Reader, node: Node) -> Entity:
    entity = _entity(reader, node, "manages: quotas")
    for _, name in entity:
        try:
            _pattern(name or WILDCARD)
        except ValueError as error:
            reader.wrong(node, f"manages: quotas: {error}")
    return entity
