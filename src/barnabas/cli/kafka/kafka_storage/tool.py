"""The work of kafka-storage: format the directories of a node, show their state, and list feature dependencies.

Its one rule: nothing is written before everything is checked, and a directory with `meta.properties` or other
files of Kafka is not changed. Lines and errors are Kafka's. `formatting` writes the files.

Versions that are not for production are not supported, whatever the value of `unstable.feature.versions.enable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv6Address
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.cli.kafka.kafka_storage.scram_arguments import ScramArgumentError, parse_scram_argument
from barnabas.config.hash_order import hash_order
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.versions import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_VERSION,
    METADATA_VERSION,
    MINIMUM_VERSION,
    MetadataVersion,
    default_feature_level,
    metadata_version,
    parse_metadata_version,
)
from barnabas.raft.formatting import Formatting, bootstrap_records, effective_features, write_format
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.storage.errors import StorageError
from barnabas.storage.log_dirs import (
    META_PROPERTIES,
    MetaProperties,
    check_log_dirs,
    read_meta_properties,
    refuse_to_format,
)
from barnabas.wire import Message, Uuid, random_uuid
from barnabas.wire.records.metadata import FeatureLevelRecord, UserScramCredentialRecord

Say = Callable[[str], None]

_MAX_PORT = 65535


class FormatError(Exception):
    """The directories cannot be formatted with these options; nothing was written."""


class FormatOptions(NamedTuple):
    """The options of the command line."""

    cluster_id: str
    release_version: str | None = None
    features: Sequence[str] = ()  # name=level
    is_standalone: bool = False
    initial_controllers: str | None = None  # id@host:port:directory, ...
    has_no_initial_controllers: bool = False
    scram: Sequence[str] = ()
    ignore_formatted: bool = False


def storage_dirs(config: ServerConfig) -> list[str]:
    """Return all directories of a node, as written in its settings."""
    return sorted({*config.log_dirs, config.metadata_log_dir})


def format_storage(
    config: ServerConfig, options: FormatOptions, random: Random, clock: Callable[[], int], say: Say
) -> None:
    """Format the directories of a node as Kafka's tool does, and call `say` with its lines. Raises FormatError."""
    version, chosen = _chosen(options)
    voters = _initial_voters(config, options, random)
    version, levels = _levels(version, chosen, is_dynamic=not config.controller_quorum_voters)
    bootstrap = bootstrap_records(levels, _scram_records(version, options.scram, random))
    empty = _empty_dirs(config, options, say)
    if not empty:
        say("All of the log directories are already formatted.")
        return
    say(f"Bootstrap metadata: {_shown(bootstrap, version)}")
    metadata_dir = config.metadata_log_dir
    own = None if voters is None else voters.get(config.node_id)
    ids = {Path(each): random_uuid(random) for each in hash_order(empty)}
    if own is not None and metadata_dir in empty:
        ids[Path(metadata_dir)] = own.key.wire_directory_id
    names = {Path(each): each for each in empty}

    def before(log_dir: Path) -> None:
        kind = _kind(names[log_dir] == metadata_dir, voters, own)
        say(f"Formatting {kind} {names[log_dir]} with {METADATA_VERSION} {version}.")

    wanted = Formatting(options.cluster_id, config.node_id, Path(metadata_dir), ids, bootstrap, voters)
    try:
        write_format(wanted, clock, before)
    except (OSError, StorageError) as error:
        raise FormatError(f"Error while writing meta.properties file: {error}") from error


def describe_storage(config: ServerConfig, say: Say) -> bool:
    """Call `say` with the state of a node's directories, as Kafka's tool prints it. Returns True if there is no problem."""
    problems, found = [], []
    first: MetaProperties | None = None
    for log_dir in storage_dirs(config):
        path = Path(log_dir)
        if not path.is_dir():
            problems.append(f"{path} is not a directory" if path.exists() else f"{path} does not exist")
            continue
        found.append(str(path))
        try:
            meta = read_meta_properties(path)
        except StorageError as error:
            problems.append(f"Error loading {path / META_PROPERTIES}: {error}")
            continue
        if meta is None:
            problems.append(f"{path} is not formatted.")
        elif first is None:
            first = meta
        elif first.cluster_id != meta.cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif first.node_id != meta.node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.version == 0:
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but "
            "the directories are formatted for legacy mode."
        )
    _say_block(say, "Found log directory", "Found log directories", found)
    if first is not None:
        say(f"Found metadata: {_shown_meta(first)}\n")
    _say_block(say, "Found problem", "Found problems", problems)
    return not problems


def version_mapping(release_version: str | None) -> list[str]:
    """Return the level of each feature in a new cluster of a release."""
    text = str(LATEST_VERSION) if release_version is None else release_version
    version = _parse_version(text)
    levels = [f"{name}={default_feature_level(name, version)}" for name in FEATURES]
    return [f"{METADATA_VERSION}={version.value} ({text})", *levels]


def feature_dependencies(features: Iterable[str]) -> list[str]:
    """Return the dependencies of each `name=level` on other features. Raises FormatError."""
    lines = []
    for feature in features:
        name, equals, text = (part.strip() for part in feature.partition("="))
        if not equals:
            form = "'feature=version' (e.g. 'group.version=1')"
            raise FormatError(f"Invalid feature format: {feature}. Expected format: {form}")
        level = _parse_short(text)
        if level is None:
            raise FormatError(f"Invalid version format: {text} for feature {name}")
        if name == METADATA_VERSION:
            if level not in list(MetadataVersion):
                raise FormatError(f"Unknown {METADATA_VERSION} {level}")
            lines.append(f"{name}={level} ({metadata_version(level)}) has no dependencies.")
            continue
        if name not in FEATURES:
            raise FormatError(f"Unknown feature: {name}")
        known = next((each for each in FEATURES[name] if each.level == level), None)
        if known is None:
            raise FormatError(f"Feature level {level} is not supported for feature {name}")
        lines.append(f"{name}={level} requires:" if known.needs else f"{name}={level} has no dependencies.")
        for needed, least in known.needs:
            shown = f" ({metadata_version(least)})" if needed == METADATA_VERSION else ""
            lines.append(f"    {needed}={least}{shown}")
    return lines


# --- options


def parse_initial_controllers(text: str, listener_name: str) -> VoterSet:
    """Parse the voters in `id@host:port:directory,...`. Raises FormatError."""
    voters: dict[int, Voter] = {}
    for part in filter(None, text.strip().split(",")):
        voter = _parse_voter(part.strip(), listener_name)
        if voter.id in voters:
            raise FormatError(f"Node id {voter.id} was specified more than once.")
        voters[voter.id] = voter
    if not voters:
        raise FormatError("No voters given.")
    return VoterSet(voters.values())


def _parse_voter(text: str, listener_name: str) -> Voter:
    id_text, at, address = text.partition("@")
    if not at:
        raise FormatError("No @ found in dynamic voter string.")
    if not id_text:
        raise FormatError("Invalid @ at beginning of dynamic voter string.")
    node_id = _parse_int(id_text)
    if node_id is None:
        raise FormatError("Failed to parse node id in dynamic voter string.")
    if node_id < 0:
        raise FormatError(f"Invalid negative node id {node_id} in dynamic voter string.")
    if not address:
        raise FormatError("No hostname found after node id.")
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket:
            raise FormatError("Hostname began with left bracket, but no right bracket was found.")
        if not rest.startswith(":"):
            raise FormatError("Port section must start with a colon.")
        rest = rest[1:]
    else:
        host, colon, rest = address.partition(":")
        if not colon:
            raise FormatError("No colon following hostname could be found.")
    port_text, colon, directory_text = rest.partition(":")
    if not colon:
        raise FormatError("No colon following port could be found.")
    port = _parse_int(port_text)
    if port is None:
        raise FormatError("Failed to parse port in dynamic voter string.")
    if not 0 <= port <= _MAX_PORT:
        raise FormatError(f"Invalid port {port} in dynamic voter string.")
    try:
        directory_id = Uuid.parse(directory_text)
    except ValueError:
        raise FormatError("Failed to parse directory ID in dynamic voter string.") from None
    return Voter(ReplicaKey(node_id, directory_id), (Endpoint(listener_name, _told_host(host), port),))


def _told_host(host: str) -> str:
    """Format a host as Kafka does: IPv6 addresses in full, names unchanged."""
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def _initial_voters(config: ServerConfig, options: FormatOptions, random: Random) -> VoterSet | None:
    is_static = bool(config.controller_quorum_voters)
    if is_static and (options.initial_controllers is not None or options.is_standalone):
        raise FormatError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. "
            "If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    listener_name = config.controller_listener_names[0]
    if options.is_standalone:
        if not config.is_controller:
            raise FormatError("You can only use --standalone on a controller.")
        listener = config.advertised_controller_listeners[0]
        address = Endpoint(listener_name, _told_host(listener.host or "localhost"), listener.port)
        return VoterSet([Voter(ReplicaKey(config.node_id, random_uuid(random)), (address,))])
    if options.initial_controllers is not None:
        return parse_initial_controllers(options.initial_controllers, listener_name)
    if not options.has_no_initial_controllers and config.is_controller and not is_static:
        raise FormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    return None


def _chosen(options: FormatOptions) -> tuple[MetadataVersion | None, dict[str, int]]:
    """Return the requested release and levels, not checked yet. Raises FormatError."""
    version = None if options.release_version is None else _parse_version(options.release_version)
    chosen = {}
    for text in options.features:
        name, equals, level_text = (part.strip() for part in text.partition("="))
        if not equals:
            raise FormatError(f"Can't parse feature=level string {text}: equals sign not found.")
        level = _parse_short(level_text)
        if level is None:
            raise FormatError(f"Can't parse feature=level string {text}: unable to parse {level_text} as a short.")
        chosen[name] = level
    return version, chosen


def _levels(
    version: MetadataVersion | None, chosen: Mapping[str, int], *, is_dynamic: bool
) -> tuple[MetadataVersion, dict[str, int]]:
    if METADATA_VERSION in chosen:
        if version is not None:
            raise FormatError(f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity.")
        level = chosen[METADATA_VERSION]
        if level not in list(MetadataVersion):
            raise FormatError(
                f"No MetadataVersion with feature level {level}. "
                f"Valid feature levels are from {MINIMUM_VERSION.value} to {LATEST_VERSION.value}."
            )
        version = metadata_version(level)
    version = LATEST_VERSION if version is None else version
    for name in sorted(chosen):
        if name not in FEATURES and name != METADATA_VERSION:
            raise FormatError(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(FEATURES))}")
    kraft_version = _kraft_version(chosen.get(KRAFT_VERSION), is_dynamic)
    levels = effective_features(version, {**chosen, KRAFT_VERSION: kraft_version})
    for name in sorted(FEATURES):
        known = next((each for each in FEATURES[name] if each.level == levels[name]), None)
        if known is None:
            raise FormatError(f"No feature:{name} with feature level {levels[name]}")
        for needed, least in known.needs:
            if levels[needed] < least:
                raise FormatError(
                    f"{name} could not be set to {known.level} because it depends on {needed} level {least}"
                )
    return version, levels


def _kraft_version(chosen: int | None, is_dynamic: bool) -> int:
    flags = "--standalone, --initial-controllers, or --no-initial-controllers"
    if chosen == 0 and is_dynamic:
        raise FormatError(
            f"Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags {flags} is used. "
            "For dynamic controllers support, try removing the --feature flag for kraft.version."
        )
    if chosen and not is_dynamic:
        raise FormatError(
            f"Cannot set kraft.version to {chosen} unless controller.quorum.voters is empty and one of the flags {flags} "
            f"is used. For dynamic controllers support, try using one of {flags} and removing controller.quorum.voters."
        )
    return int(is_dynamic) if chosen is None else chosen


def _scram_records(version: MetadataVersion, arguments: Sequence[str], random: Random) -> list[Message]:
    if arguments and not version.is_scram_supported:
        least = MetadataVersion.IBP_3_5_IV2
        raise FormatError(f"SCRAM is only supported in {METADATA_VERSION} {least} or later.")
    try:
        return [parse_scram_argument(argument, random) for argument in arguments]
    except ScramArgumentError as error:
        raise FormatError(str(error)) from None


def _empty_dirs(config: ServerConfig, options: FormatOptions, say: Say) -> list[str]:
    """Return the directories to format. Raises FormatError if one belongs to another node or is already formatted."""
    formatted: list[str] = []
    empty: list[str] = []
    unreadable: list[str] = []
    for log_dir in storage_dirs(config):
        try:
            meta = read_meta_properties(Path(log_dir))
        except StorageError:
            unreadable.append(log_dir)
        else:
            (empty if meta is None else formatted).append(log_dir)
    try:
        check_log_dirs(map(Path, formatted), options.cluster_id, config.node_id)
    except StorageError as error:
        raise FormatError(str(error)) from None
    if formatted and not options.ignore_formatted:
        raise FormatError(
            f"Log directory {hash_order(formatted, at_once=True)[0]} is already formatted. "
            "Use --ignore-formatted to ignore this directory and format the others."
        )
    for log_dir in hash_order(unreadable):
        say(f"I/O error trying to read log directory {log_dir}. Ignoring...")
    if not empty and not formatted:
        raise FormatError("No available log directories to format.")
    try:
        for log_dir in empty:
            refuse_to_format(Path(log_dir))
    except StorageError as error:
        raise FormatError(str(error)) from None
    return empty


def _parse_version(text: str) -> MetadataVersion:
    try:
        return parse_metadata_version(text)
    except ValueError:
        known = ", ".join(map(str, MetadataVersion))
        raise FormatError(f"Unknown {METADATA_VERSION} '{text}'. Supported {METADATA_VERSION} are: {known}") from None


def _parse_int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,10}", text) and -(2**31) <= int(text) < 2**31 else None


def _parse_short(text: str) -> int | None:
    value = _parse_int(text)
    return value if value is not None and -(2**15) <= value < 2**15 else None


# --- output


def _kind(is_metadata_dir: bool, voters: VoterSet | None, own: Voter | None) -> str:
    if not is_metadata_dir:
        return "data directory"
    if voters is None:
        return "metadata directory"
    return "dynamic metadata directory" if own is None else "dynamic metadata voter directory"


def _shown(records: Iterable[Message], version: MetadataVersion) -> str:
    rows = ", ".join(f"ApiMessageAndVersion({_shown_record(record)} at version 0)" for record in records)
    return f"BootstrapMetadata(records=[{rows}], metadataVersionLevel={version.value}, source=format command)"


def _shown_record(record: Message) -> str:
    if isinstance(record, FeatureLevelRecord):
        return f"FeatureLevelRecord(name='{record.name}', featureLevel={record.feature_level})"
    assert isinstance(record, UserScramCredentialRecord)
    salt, stored_key, server_key = map(_shown_bytes, (record.salt, record.stored_key, record.server_key))
    return (
        f"UserScramCredentialRecord(name='{record.name}', mechanism={record.mechanism}, salt={salt}, "
        f"storedKey={stored_key}, serverKey={server_key}, iterations={record.iterations})"
    )


def _shown_bytes(data: bytes) -> str:
    return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in data)}]"


def _shown_meta(meta: MetaProperties) -> str:
    values = {
        "cluster.id": meta.cluster_id,
        "directory.id": meta.directory_id,
        "node.id" if meta.version else "broker.id": meta.node_id,
        "version": meta.version,
    }
    return "{" + ", ".join(f"{k}={v}" for k, v in sorted(values.items()) if v is not None) + "}"


def _say_block(say: Say, one: str, many: str, lines: Sequence[str]) -> None:
    if lines:
        say(f"{one if len(lines) == 1 else many}:")
        for line in lines:
            say(f"  {line}")
        say("")
