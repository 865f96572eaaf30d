"""Checks of log dirs of barnabas or Apache Kafka: damaged files, lost records, and what a start would refuse or clean up.

Its one rule: files are only read. What a start checks is asked of the same functions (`storage.log_dirs`, `raft.stored_log`,
`raft.sole_voter`). Segments are read at their ends only, unless `deep` is set: then every batch and index entry is checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.client.listener_settings import own_principal
from barnabas.config.broker import effective
from barnabas.config.definitions import ConfigError
from barnabas.config.reconfiguration import load_dynamic, refusals
from barnabas.config.resolve import Layers
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.errors import ReplayError
from barnabas.offline.metadata import OfflineMetadata, load
from barnabas.operations.doctor.findings import Check, Fault, Severity, advised, error, limited, note, warning
from barnabas.operations.quantities import bytes_text
from barnabas.raft.formatting import read_bootstrap
from barnabas.raft.sole_voter import why_never_led, why_not_formatted, why_two_leaders
from barnabas.raft.stored_log import damaged_files, metadata_log_directory
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings, authorize, parse_super_users
from barnabas.storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    read_epoch_checkpoint,
    read_offset_checkpoint,
)
from barnabas.storage.errors import StorageError
from barnabas.storage.index import OffsetIndex, TimeIndex
from barnabas.storage.loading import segment_offsets
from barnabas.storage.log_dirs import (
    CLUSTER_METADATA,
    META_PROPERTIES,
    DirectoryState,
    MetaProperties,
    PartitionDirectory,
    ScannedDir,
    check_owner,
    list_partitions,
    lock_holder,
    read_meta_properties,
    scan_log_dir,
)
from barnabas.storage.offline import QuickEnd, check_batches, check_indexes, quick_end_of
from barnabas.storage.producer_snapshots import CorruptSnapshotError, decode_producers
from barnabas.storage.quorum_state import recorded_voters
from barnabas.storage.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    segment_path,
)
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.primitives import Uuid

_MAX_SHOWN = 10
"""Faults of one kind that are listed; the others are counted."""
_MIN_FREE_SHARE, _MIN_FREE_BYTES = 0.1, 1 << 30
_RESTORE = "restore it from a backup or from another replica"
_METADATA_ERRORS = (StorageError, ReplayError, MalformedError, UnsupportedVersionError, ValueError)


class PartitionFiles(NamedTuple):
    """The directory of a partition, its files with their sizes, and the end of its log; None if it cannot be read.

    `folders` have names that only files should have.
    """

    directory: PartitionDirectory
    sizes: dict[str, int]
    folders: list[str]
    end: QuickEnd | None

    @property
    def path(self) -> Path:
        return self.directory.path


class LogDirs:
    """The log dirs of one node. `config` is that of its server.properties, if it was given."""

    def __init__(
        self,
        paths: tuple[Path, ...],
        config: ServerConfig | None = None,
        *,
        deep: bool = False,
        progressed: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """`progressed` is called with the bytes that were checked so far, and their total."""
        self.paths = paths
        self.config = config
        self.deep = deep
        self.progressed = progressed
        self.damages: list[StorageError] = []

    @cached_property
    def usable(self) -> tuple[Path, ...]:
        return tuple(each for each in self.paths if each.is_dir() and os.access(each, os.R_OK | os.X_OK))

    @cached_property
    def owners(self) -> dict[Path, MetaProperties]:
        found = {}
        for each in self.usable:
            try:
                meta = read_meta_properties(each)
            except StorageError:
                continue
            if meta is not None:
                found[each] = meta
        return found

    def is_mirror(self, path: Path) -> bool:
        return path in self.owners and self.owners[path].is_mirror

    @cached_property
    def node_id(self) -> int | None:
        if self.config is not None:
            return self.config.node_id
        return next((meta.node_id for meta in self.owners.values() if meta.node_id is not None), None)

    @cached_property
    def runs_in(self) -> int | None:
        """The process that uses the directories now."""
        return next((found for each in self.usable if (found := lock_holder(each)) is not None), None)

    @cached_property
    def scanned(self) -> dict[Path, ScannedDir]:
        """The small files; `damages` has those that cannot be read."""
        found = {}
        for each in self.usable:
            try:
                found[each] = scan_log_dir(each, self.damages.append)
            except StorageError as damage:
                self.damages.append(damage)
        return found

    @cached_property
    def partitions(self) -> list[PartitionFiles]:
        """The partitions that a start would use, and the metadata log."""
        used = (DirectoryState.CURRENT, DirectoryState.FUTURE)
        return [
            _files_of(each) for path in self.usable for each in list_partitions(path).partitions if each.state in used
        ]

    @cached_property
    def metadata(self) -> OfflineMetadata | Exception | None:
        """The metadata of the cluster as the files have it, why it cannot be read, or None if it is not here."""
        directory = self.metadata_directory
        if directory is None:
            return None
        try:
            return load(directory, static_voters=self._static_voters())
        except _METADATA_ERRORS as wrong:
            return wrong

    @cached_property
    def metadata_directory(self) -> Path | None:
        return next((found for each in self.usable if (found := metadata_log_directory(each)).is_dir()), None)

    def _static_voters(self) -> VoterSet | None:
        if self.config is None or not self.config.controller_listener_names:
            return None
        name = self.config.controller_listener_names[0]
        return VoterSet(
            Voter(ReplicaKey(each.id), (Endpoint(name, each.host, each.port),))
            for each in self.config.controller_quorum_voters
        )


_FILE_NAME = re.compile(r"\d{20}\..*|leader-epoch-checkpoint|partition\.metadata")


def _files_of(directory: PartitionDirectory) -> PartitionFiles:
    sizes: dict[str, int] = {}
    folders: list[str] = []
    try:
        with os.scandir(directory.path) as entries:
            for entry in entries:
                if entry.is_file():
                    sizes[entry.name] = entry.stat().st_size
                elif _FILE_NAME.fullmatch(entry.name):
                    folders.append(entry.name)
        return PartitionFiles(directory, sizes, folders, quick_end_of(directory.path))
    except (OSError, StorageError):
        return PartitionFiles(directory, sizes, folders, None)


# --- the directories


def _usable(dirs: LogDirs) -> Iterator[Fault]:
    for path in dirs.paths:
        if not path.exists():
            parent = next(each for each in path.absolute().parents if each.exists())
            if not parent.is_dir():
                yield error(path, f"it does not exist, and {parent} is not a directory", "name a directory in log.dirs")
            elif dirs.config is not None and dirs.config.knows_other_controllers:
                continue  # see `_formatted`
            elif os.access(parent, os.W_OK | os.X_OK):
                yield note(path, "it does not exist yet", "nothing to do: a start creates and formats it")
            else:
                yield error(path, f"it does not exist, and you may not write in {parent}", f"sudo mkdir -p {path}")
        elif not path.is_dir():
            yield error(path, "it is not a directory", "name a directory in log.dirs")
        elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            yield error(path, f"user {os.geteuid()} may not read and write it", f"sudo chown -R $(id -u) {path}")
    for path in dirs.usable:
        yield from limited(str(path), list(_foreign(path)), _MAX_SHOWN, f"sudo chown -R $(id -u) {path}")


def _foreign(log_dir: Path) -> Iterator[Fault]:
    """Yield what another user owns, or what cannot be read or written."""
    owner = log_dir.stat().st_uid
    for path in (log_dir, *sorted(log_dir.glob("*")), *sorted(log_dir.glob("*/*"))):
        try:
            other = path.stat().st_uid
        except OSError:
            continue  # deleted meanwhile
        if not os.access(path, os.R_OK | os.W_OK):
            yield error(path, f"user {os.geteuid()} may not read and write it", f"sudo chown -R $(id -u) {log_dir}")
        elif other != owner:
            yield warning(
                path, f"user {other} owns it, but user {owner} owns the log dir", f"sudo chown -R {owner} {log_dir}"
            )


def _space(dirs: LogDirs) -> Iterator[Fault]:
    for path in dirs.usable:
        disk = os.statvfs(path)
        free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        if not free:
            yield error(path, f"its disk of {bytes_text(total)} is full: the log dir goes offline", "free space")
        elif free < _MIN_FREE_BYTES or free < total * _MIN_FREE_SHARE:
            yield warning(
                path,
                f"its disk of {bytes_text(total)} has {bytes_text(free)} left",
                "free space, or lower retention; barnabas log-dirs describe",
            )
        if disk.f_files and disk.f_favail < disk.f_files * _MIN_FREE_SHARE / 2:
            yield warning(path, f"its file system has {disk.f_favail:,} inodes left", "delete small files")


def _formatted(dirs: LogDirs) -> Iterator[Fault]:
    try:
        owned = [each for each in dirs.usable if dirs.config is not None or not dirs.is_mirror(each)]
        found = check_owner(owned, -1 if dirs.node_id is None else dirs.node_id)
    except StorageError as refused:
        message, remedy = advised(refused)
        yield error(_path_in(message, dirs), message, remedy or _RESTORE)
        return
    config = dirs.config
    if config is not None and not found.formatted and config.knows_other_controllers:
        voters = tuple(voter.id for voter in config.controller_quorum_voters)
        message, remedy = advised(ValueError(why_not_formatted(config.node_id, voters)))
        yield error(dirs.paths[0], f"barnabas serve would refuse it: {message}", remedy)
        return
    for path in found.empty:
        yield note(path, f"it is not formatted: it has no {META_PROPERTIES}", "barnabas serve formats it")
    for path, meta in found.formatted.items():
        if meta.directory_id is None:
            yield note(
                path / META_PROPERTIES,
                "it has no directory.id, so the cluster does not know which log dir a replica is in",
                "a start of Apache Kafka 3.7 or newer adds it",
            )


def _path_in(text: str, dirs: LogDirs) -> Path:
    """Return the log dir that an error is about."""
    return next((each for each in dirs.paths if str(each) in text), dirs.paths[0])


def _locked(dirs: LogDirs) -> Iterator[Fault]:
    for path in dirs.usable:
        process = lock_holder(path)
        if process is not None:
            yield note(
                path,
                f"process {process} is using it: files change while they are checked",
                "check the running node instead: barnabas doctor -b HOST:PORT",
            )


def _clean(dirs: LogDirs) -> Iterator[Fault]:
    for path, found in dirs.scanned.items():
        if dirs.runs_in is None and found.partitions and not found.was_clean:
            yield note(
                path,
                "the last stop was not clean: a start recovers every log, which takes time",
                "stop nodes with SIGTERM, and wait until they end",
            )


# --- files


def _small_files(dirs: LogDirs) -> Iterator[Fault]:
    _ = dirs.scanned
    damages: list[Exception] = [*dirs.damages]
    if dirs.metadata_directory is not None:
        damages += damaged_files(dirs.metadata_directory)
    for path in dirs.usable:
        try:
            read_bootstrap(path)
        except StorageError as damage:
            damages.append(damage)
    faults = [
        error(files.path / name, "it is a directory, but Kafka has a file of this name", "move it away")
        for files in dirs.partitions
        if files.directory.partition != CLUSTER_METADATA
        for name in files.folders
    ]
    for each in damages:
        message, remedy = advised(each)
        faults.append(error(_path_in(message, dirs), message, remedy or _RESTORE))
    yield from limited(str(dirs.paths[0]), faults, _MAX_SHOWN, _RESTORE)
    for path in dirs.usable:
        try:
            read_offset_checkpoint(path / CLEANER_OFFSET_CHECKPOINT)
        except StorageError as damage:
            message, remedy = advised(damage)
            yield warning(path, f"{message}: compaction starts over", remedy)


def _rebuilt(dirs: LogDirs) -> Iterator[Fault]:
    """Files that a start rebuilds by itself."""
    faults = [fault for files in dirs.partitions for fault in _rebuilt_of(files)]
    yield from limited(str(dirs.paths[0]), faults, _MAX_SHOWN, "nothing to do: a start rebuilds them")


def _rebuilt_of(files: PartitionFiles) -> Iterator[Fault]:
    for name, size in sorted(files.sizes.items()):
        path = files.path / name
        if name.endswith(LOG_SUFFIX) and size:
            for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                if path.with_suffix(suffix).name not in files.sizes:
                    yield note(path.with_suffix(suffix), "the index is missing", "nothing to do: a start rebuilds it")
        reason = _fault_of_rebuilt(files, name, size)
        if reason is not None:
            yield note(path, reason, "nothing to do: a start rebuilds it")


_ENTRY_SIZES = {INDEX_SUFFIX: OffsetIndex.ENTRY.size, TIME_INDEX_SUFFIX: TimeIndex.ENTRY.size}


def _fault_of_rebuilt(files: PartitionFiles, name: str, size: int) -> str | None:
    path = files.path / name
    if size % _ENTRY_SIZES.get(path.suffix, 1):
        return f"its {size} bytes are not whole entries"
    if path.suffix == ".snapshot":
        return _fault_of_producers(path)
    if name == LEADER_EPOCH_CHECKPOINT and files.directory.partition != CLUSTER_METADATA:
        try:
            read_epoch_checkpoint(path)
        except StorageError as damage:
            return advised(damage)[0].removeprefix(f"{path} ")
    return None


def _fault_of_producers(path: Path) -> str | None:
    try:
        decode_producers(path.read_bytes())
    except CorruptSnapshotError as damage:
        return str(damage)
    except OSError as failed:
        return failed.strerror
    return None


def _leftovers(dirs: LogDirs) -> Iterator[Fault]:
    for log_dir in dirs.usable:
        listing = list_partitions(log_dir)
        for directory in listing.partitions:
            size = _size_of(directory.path)
            if directory.state is DirectoryState.STRAY:
                yield warning(
                    directory.path,
                    f"a stray log of {bytes_text(size)}: the cluster does not know this replica",
                    f"rm -r '{directory.path}', if its records are not needed",
                )
            elif directory.state is DirectoryState.FUTURE:
                yield note(
                    directory.path, "a replica that was being moved here", "nothing to do: a start resumes the move"
                )
            elif directory.state is DirectoryState.DELETED:
                yield note(
                    directory.path, f"a deleted log of {bytes_text(size)}", "nothing to do: a running node deletes it"
                )
        for stranger in listing.strangers:
            if stranger.name != "lost+found":
                yield note(stranger, "this directory is not one of Kafka", "move it elsewhere")
    suffixes = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)
    faults = [
        note(
            files.path / name,
            "left by a compaction or deletion that did not end",
            "nothing to do: a start cleans it up",
        )
        for files in dirs.partitions
        for name in sorted(files.sizes)
        if name.endswith(suffixes) and dirs.runs_in is None
    ]
    yield from limited(str(dirs.paths[0]), faults, _MAX_SHOWN, "nothing to do: a start cleans them up")


def _size_of(directory: Path) -> int:
    try:
        return sum(each.stat().st_size for each in directory.iterdir())
    except OSError:
        return 0


# --- logs


def _ends(dirs: LogDirs) -> Iterator[Fault]:
    faults = [fault for files in dirs.partitions for fault in _end_of(dirs, files)]
    if dirs.runs_in is None:
        yield from limited(str(dirs.paths[0]), faults, _MAX_SHOWN, _RESTORE)


def _end_of(dirs: LogDirs, files: PartitionFiles) -> Iterator[Fault]:
    scanned = dirs.scanned.get(files.path.parent)
    name = files.directory.partition
    if scanned is None or files.directory.state is not DirectoryState.CURRENT:
        return
    if files.end is None:
        yield error(files.path, "its last segment cannot be read", f"barnabas dump {files.path}; {_RESTORE}")
        return
    end, damage = files.end
    if damage is not None:
        what = f"{damage.path} ends at byte {damage.position}: {damage.reason}"
        if scanned.was_clean:
            yield error(files.path, f"{what}, although the last stop was clean", _RESTORE)
        else:
            yield note(files.path, what, "nothing to do: a start truncates it, as after any crash")
    recovery_point = scanned.recovery_points.get(name, 0)
    if end < recovery_point:
        when = "of the clean shutdown" if scanned.was_clean else "of its last flush"
        make = error if scanned.was_clean else warning
        yield make(
            files.path,
            f"the log ends at offset {end}, before the recovery point {recovery_point} {when}: records are lost",
            f"{_RESTORE}; a start continues with what is left",
        )
    start = scanned.log_start_offsets.get(name, 0)
    if start > end and segment_offsets(files.path):
        yield error(
            files.path, f"the log starts at offset {start}, after its end {end}: a start would empty it", _RESTORE
        )
    high_watermark = scanned.high_watermarks.get(name, 0)
    if scanned.was_clean and high_watermark > max(end, recovery_point):
        yield warning(files.path, f"the high watermark {high_watermark} is after the log end {end}", _RESTORE)


def _missing(dirs: LogDirs) -> Iterator[Fault]:
    """Replicas that the metadata has and no log dir, and the other way round."""
    found = dirs.metadata
    if not isinstance(found, OfflineMetadata) or dirs.node_id is None or not dirs.scanned:
        return
    here = {each.directory.partition for each in dirs.partitions}
    strays, topics = [], found.image.topics
    for scanned in dirs.scanned.values():
        for directory, topic_id in scanned.partitions:
            name = directory.partition
            topic = topics.get(name.topic)
            if directory.state is DirectoryState.DELETED:
                continue
            if topic is None or name.partition >= len(topic.partitions):
                why = f"the cluster has no {name}"
            elif topic_id not in (None, topic.topic_id):
                why = f"its topic id is {topic_id}, and that of {name.topic} is {topic.topic_id}: it is of a deleted topic"
            elif dirs.node_id not in topic.partitions[name.partition].replicas:
                why = f"{name} has no replica on node {dirs.node_id}"
            else:
                continue
            what = f"{why}: a start renames it to a stray"
            strays.append(warning(directory.path, what, f"barnabas dump {directory.path}"))
    yield from limited(str(dirs.paths[0]), strays, _MAX_SHOWN, f"barnabas dump {dirs.paths[0]}")
    if not _is_complete(dirs, found):
        return
    lost = []
    for topic in topics.by_id.values():
        for number, partition in enumerate(topic.partitions):
            name = CLUSTER_METADATA._replace(topic=topic.name, partition=number)
            if dirs.node_id in partition.replicas and name not in here:
                recovery_point = max(each.recovery_points.get(name, 0) for each in dirs.scanned.values())
                if recovery_point:
                    what = f"its log is gone, which ended at offset {recovery_point}: a start creates it empty"
                    lost.append(error(name, what, _RESTORE))
                else:
                    lost.append(note(name, "it has no directory yet", "nothing to do: a start creates it"))
    yield from limited(str(dirs.paths[0]), lost, _MAX_SHOWN, _RESTORE)


def _is_complete(dirs: LogDirs, found: OfflineMetadata) -> bool:
    """Whether these are all log dirs of the node, so that a replica in none of them is lost."""
    if dirs.config is not None:
        return len(dirs.usable) == len(dirs.paths)
    broker = None if dirs.node_id is None else found.image.brokers.get(dirs.node_id)
    ids = {meta.directory_id for meta in dirs.owners.values()}
    return broker is not None and bool(broker.log_dirs) and set(broker.log_dirs) <= ids


# --- the metadata log


def _metadata(dirs: LogDirs) -> Iterator[Fault]:
    found, directory = dirs.metadata, dirs.metadata_directory
    if directory is None:
        if dirs.config is not None and dirs.owners and dirs.config.is_controller:
            yield note(dirs.config.metadata_log_dir, "it has no metadata log yet", "nothing to do: a start creates it")
        return
    if isinstance(found, Exception):
        message, remedy = advised(found)
        if isinstance(found, ValueError) and "metadata.version" in message:
            remedy = "start the release of Kafka that wrote it"
        yield error(directory, f"the metadata log cannot be read: {message}", remedy or _RESTORE)
    elif found is not None and found.problem is not None and dirs.runs_in is None:
        yield error(directory, found.problem, _RESTORE)
    for offset in segment_offsets(directory):  # a start reads them all
        path = segment_path(directory, offset, LOG_SUFFIX)
        faults = [fault for fault in _faults_of(path, lambda position: None) if fault.severity is Severity.ERROR]
        if dirs.runs_in is None:
            yield from limited(str(path), faults, _MAX_SHOWN, f"barnabas dump --verify {path}")


def _leads(dirs: LogDirs) -> Iterator[Fault]:
    """Whether the quorum of this directory can have a leader."""
    found, directory = dirs.metadata, dirs.metadata_directory
    if not isinstance(found, OfflineMetadata) or directory is None or dirs.node_id is None:
        return
    if dirs.config is None and found.history.current_offset is None:
        return  # the voters are in a file that was not given
    own = ReplicaKey(dirs.node_id, _directory_id(dirs, directory))
    knows_others = dirs.config is None or len(dirs.config.controller_quorum_bootstrap_servers) > 1
    why = why_never_led(own, found.history, knows_others=knows_others)
    if why is None and dirs.config is not None and not found.history.can_reconfigure:
        why = why_two_leaders(recorded_voters(directory), [each.id for each in dirs.config.controller_quorum_voters])
    if why is not None:
        message, remedy = advised(ValueError(why))
        make = note if dirs.config is None else error
        yield make(directory.parent, f"barnabas serve would refuse it: {message}", remedy)


def _directory_id(dirs: LogDirs, directory: Path) -> Uuid | None:
    meta = dirs.owners.get(directory.parent)
    return None if meta is None else meta.directory_id


def _permits_node(dirs: LogDirs) -> Iterator[Fault]:
    config, found = dirs.config, dirs.metadata
    if config is None or not config.get_str("authorizer.class.name") or isinstance(found, Exception):
        return
    try:
        super_users = parse_super_users(config.given.get("super.users", ""))
    except ValueError:
        return  # settings-supported says so
    everyone = config.given.get("allow.everyone.if.no.acl.found", "").strip().lower() == "true"
    settings = AuthorizerSettings(enabled=True, super_users=super_users, allow_everyone_if_no_acl_found=everyone)
    acls = (OfflineMetadata() if found is None else found).image.acls.index
    operation = AclOperation.CLUSTER_ACTION
    mechanism = config.get_str("sasl.mechanism.controller.protocol") or ""
    own = own_principal(config, config.controller_listener_names[0], mechanism)
    if own is None:
        return  # its name is in a token, or secured-listeners says what is wrong
    if not authorize(acls, settings, own, "127.0.0.1", operation, ResourceType.CLUSTER, CLUSTER_NAME):
        yield error(
            dirs.paths[0],
            "the authorizer does not allow this node to register with its own controller",
            f"add {own} to super.users, or allow it CLUSTER_ACTION on the cluster",
        )


def _dynamic(dirs: LogDirs) -> Iterator[Fault]:
    """Whether the node could run with the dynamic settings that the metadata has for it."""
    config, found = dirs.config, dirs.metadata
    if config is None or not isinstance(found, OfflineMetadata):
        return
    own = found.image.config(ConfigResourceType.BROKER, str(config.node_id))
    shared = found.image.config(ConfigResourceType.BROKER, "")
    layers = Layers(effective(own, cluster_wide=False), effective(shared, cluster_wide=True), config.given)
    try:
        refused = list(refusals(config, load_dynamic(layers)))
    except ConfigError as wrong:
        yield warning(
            dirs.paths[0], f"a start ignores the dynamic settings of this node: {wrong}", "barnabas configs describe"
        )
        return
    for text in refused:
        yield error(
            dirs.paths[0],
            f"the dynamic settings of broker {config.node_id} cannot be applied: {text}",
            "delete them with kafka-configs, while Apache Kafka runs on this directory",
        )


# --- every byte


def _deep(dirs: LogDirs) -> Iterator[Fault]:
    if not dirs.deep:
        return
    segments = [
        (files, segment_path(files.path, offset, LOG_SUFFIX))
        for files in dirs.partitions
        for offset in segment_offsets(files.path)
    ]
    total, before = sum(files.sizes.get(path.name, 0) for files, path in segments), 0

    def progressed(position: int) -> None:
        dirs.progressed(before + position, total)

    for files, path in segments:
        faults = list(_faults_of(path, progressed))
        yield from limited(str(path), faults, _MAX_SHOWN, f"barnabas dump --verify {path}")
        before += files.sizes.get(path.name, 0)


def _faults_of(path: Path, progressed: Callable[[int], None]) -> Iterator[Fault]:
    try:
        for position, base_offset, reason in check_batches(path, progressed):
            offset = "" if base_offset is None else f", offset {base_offset}"
            yield error(path, f"byte {position}{offset}: {reason}", f"{_RESTORE}; barnabas dump --verify {path}")
        for mismatch in check_indexes(path.parent, int(path.name[:20])):
            entry = ", ".join(map(str, mismatch.entry))
            yield note(mismatch.path, f"entry {entry}: {mismatch.reason}", f"rm {mismatch.path}: a start rebuilds it")
    except StorageError as failed:
        yield error(path, str(failed), _RESTORE)


CHECKS: Final[tuple[Check[LogDirs], ...]] = (
    Check("directories", "Log dirs that are missing, are no directories, or belong to another user.", _usable),
    Check("disk-space", "Disks that are full or almost full.", _space),
    Check(
        "formatted",
        "meta.properties that is missing, damaged or of another node or cluster.",
        _formatted,
    ),
    Check("locked", "Directories that a running node uses.", _locked),
    Check("clean-stop", "Directories whose node was killed.", _clean),
    Check(
        "small-files", "Damaged checkpoints, topic ids, snapshots and quorum state: a start refuses them.", _small_files
    ),
    Check("rebuilt-files", "Damaged or missing files that a start rebuilds: indexes, producers, epochs.", _rebuilt),
    Check("leftovers", "Stray, deleted and moved logs, and files of interrupted compactions.", _leftovers),
    Check("log-ends", "Logs that have lost records, or end with a broken batch.", _ends),
    Check("metadata-log", "Metadata that cannot be read, or of another release.", _metadata),
    Check("replicas", "Logs that the cluster does not know, and replicas without a log.", _missing),
    Check("sole-voter", "Voters that do not match the directory.", _leads),
    Check("own-permission", "An authorizer that locks out the node itself.", _permits_node),
    Check("dynamic-settings", "Dynamic settings in the metadata that this node cannot run with.", _dynamic),
    Check("every-batch", "With --deep: checksums, offsets and records of every batch, and all index entries.", _deep),
)
