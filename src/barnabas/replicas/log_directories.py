"""The log dirs of a node: their paths, ids and contents, and which of them are online or cordoned.

Its one rule: a directory is identified by its absolute path, as in Kafka's responses; ids are only for the controller.
A directory whose listing fails goes offline. Logs are sized by their files, not opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.config.server_config import ServerConfig
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.errors import StorageError
from barnabas.storage.files import File, file_names, is_directory, space_of
from barnabas.storage.log_dirs import CLUSTER_METADATA, DirectoryState, directory_name, list_partitions
from barnabas.wire import Uuid

_log = logging.getLogger(__name__)

MAX_CHOICES = 100_000
_LISTED = (DirectoryState.CURRENT, DirectoryState.FUTURE)


class StoredPartition(NamedTuple):
    """A log in a directory. A future log is the copy that replaces the current one of another directory."""

    partition: TopicPartition
    size_in_bytes: int
    is_future: bool


class DirectoryUsage(NamedTuple):
    """The content of a directory, and the size of its file system."""

    partitions: tuple[StoredPartition, ...]
    total_bytes: int
    usable_bytes: int


class LogDirectories:
    """All log dirs of a node.

    `config` returns the current configuration. `ids` maps paths to directory ids and may contain other directories.
    """

    def __init__(self, config: Callable[[], ServerConfig], ids: Mapping[Path, Uuid]) -> None:
        self._config = config
        self.paths = tuple(dict.fromkeys(_absolute(each) for each in config().log_dirs))
        known = {_absolute(path): directory_id for path, directory_id in ids.items()}
        self._ids = {path: known[path] for path in self.paths if path in known}
        self._offline: dict[str, str] = {}  # with the reasons
        self._choices: dict[TopicPartition, str] = {}

    @property
    def ids(self) -> list[Uuid]:
        """Ids of the online directories."""
        return [directory_id for path, directory_id in self._ids.items() if path not in self._offline]

    @property
    def offline_ids(self) -> list[Uuid]:
        return [directory_id for path, directory_id in self._ids.items() if path in self._offline]

    @property
    def cordoned_ids(self) -> list[Uuid]:
        return [directory_id for path, directory_id in self._ids.items() if self.is_cordoned(path)]

    def failure(self, path: str) -> str | None:
        """Return why a directory is offline, or None if it is not."""
        return self._offline.get(path)

    def id_of(self, path: str) -> Uuid | None:
        return self._ids.get(path)

    def is_online(self, path: str) -> bool:
        return path in self.paths and path not in self._offline

    def is_cordoned(self, path: str) -> bool:
        """Whether `cordoned.log.dirs` excludes this directory from new replicas."""
        config = self._config()
        cordoned = config.get_list("cordoned.log.dirs")
        return "*" in cordoned or path in map(_absolute, cordoned)

    def fail(self, path: str, reason: object) -> None:
        """Take a directory offline until the node restarts."""
        if path not in self._offline:
            _log.error("the log dir %s is now offline: %s", path, reason)
            self._offline[path] = str(reason)

    def usage(self, path: str) -> DirectoryUsage:
        """List a directory and measure its files.

        If that fails, the directory goes offline and StorageError is raised.
        """
        try:
            if path in self._offline:
                raise StorageError(f"the log dir {path} is offline")
            space = space_of(path)
            found = tuple(
                StoredPartition(each.partition, _log_bytes(each.path), each.state is DirectoryState.FUTURE)
                for each in list_partitions(Path(path)).partitions
                if each.state in _LISTED and each.partition != CLUSTER_METADATA
            )
        except StorageError as error:
            self.fail(path, error)
            raise
        return DirectoryUsage(found, *space)

    def find(self, partition: TopicPartition) -> str | None:
        """Return the directory that has the current log of a partition, or None."""
        name = directory_name(partition)
        return next((path for path in self.paths if is_directory(Path(path, name))), None)

    def assigned(self, directory_id: Uuid | None) -> str | None:
        """Return the path of a directory id, or the only path if there is just one."""
        if len(self.paths) == 1:
            return self.paths[0]
        return next((path for path, each in self._ids.items() if each == directory_id), None)

    def choose(self, partition: TopicPartition, path: str) -> None:
        """Remember in which directory to create the log of a partition."""
        if len(self._choices) >= MAX_CHOICES and partition not in self._choices:
            del self._choices[next(iter(self._choices))]
        self._choices[partition] = path

    def chosen(self, partition: TopicPartition) -> str | None:
        return self._choices.get(partition)

    def forget_choice(self, partition: TopicPartition) -> None:
        """Drop the choice, because the log was created."""
        self._choices.pop(partition, None)


def _absolute(path: str | Path) -> str:
    return str(Path(path).absolute())


def _log_bytes(directory: Path) -> int:
    """Return the size of a log's segments, or 0 if the log was deleted meanwhile."""
    try:
        names = [name for name in file_names(directory) if name.endswith(".log")]
        return sum(File(directory / name, writable=False).find_size() or 0 for name in names)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return 0
        raise
