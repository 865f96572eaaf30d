"""Automatic creation of topics: those that clients ask for (auto.create.topics.enable), and Kafka's internal ones.

`begin` does not wait. It starts the creation, at most one at a time per name, and a later request finds the topic. A
failed creation is logged, and the next request starts another. Authorization is left to the caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.controller import topics
from barnabas.slices import in_slices
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from barnabas.broker.context import Context, Controller
    from barnabas.broker.controller_channel import ControllerChannel
    from barnabas.config.server_config import ServerConfig

_log = logging.getLogger(__name__)

DEFAULT = -1
CREATE_TOPICS_VERSION = 7
MAX_ERRORS = 1000  # of creations, that are remembered
MAX_SHOWN = 10  # topics in the log, of those that one request names


class TopicCreation:
    """The creations in progress on this node."""

    def __init__(self, controller: Controller, config: ServerConfig, channel: ControllerChannel | None = None) -> None:
        """The channel leads to the active controller while that is another node."""
        self._controller = controller
        self._config = config
        self._channel = channel
        self._names: set[str] = set()
        self._errors: dict[str, tuple[str, int]] = {}  # by topic: message, and until when it is shown
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order

    def begin(self, names: Iterable[str], asked_by: Context | None = None, *, as_caller: bool = False) -> None:
        """Start to create the topics whose creation is not in progress. Names must be valid.

        The audit log names the request that asked for them. If another node is the active controller, it gets the request
        with the caller's principal if `as_caller` is true, and otherwise with this broker's.
        """
        wanted = [name for name in names if name not in self._names]
        if wanted:
            creatable = mapped(lambda name: creatable_topic(name, self._config), wanted)
            self._start(wanted, creatable, asked_by, as_caller=as_caller)

    def begin_topics(
        self, wanted: Iterable[CreateTopicsRequest.CreatableTopic], asked_by: Context, remember_ms: int
    ) -> None:
        """Start to create topics as they are given, with the caller's principal, as `begin` does.

        One that failed is not tried again until its error is forgotten.
        """
        failed = self.errors((topic.name for topic in wanted), asked_by)
        new = [topic for topic in wanted if topic.name not in self._names and topic.name not in failed]
        if new:
            self._start(
                [topic.name for topic in new], mapped(lambda topic: topic, new), asked_by, remember_ms, as_caller=True
            )

    def errors(self, names: Iterable[str], asked_by: Context) -> dict[str, str]:
        """Return the errors of recent creations by `begin_topics`."""
        now_ms = asked_by.services.monotonic_ms()
        found = {name: self._errors[name] for name in names if name in self._errors}
        return {name: message for name, (message, until_ms) in found.items() if until_ms > now_ms}

    def _start(
        self,
        names: list[str],
        wanted: Slices[list[CreateTopicsRequest.CreatableTopic]],
        asked_by: Context | None,
        remember_ms: int = 0,
        *,
        as_caller: bool,
    ) -> None:
        self._names.update(names)
        creation = self._create(names, wanted, asked_by, remember_ms, as_caller=as_caller)
        task = asyncio.get_running_loop().create_task(creation)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def _remember(self, errors: Mapping[str, str], asked_by: Context, remember_ms: int) -> None:
        now_ms = asked_by.services.monotonic_ms()
        for name, message in errors.items():
            self._errors.pop(name, None)  # the newest is the last
            self._errors[name] = (message, now_ms + remember_ms)
        for name in list(self._errors)[: max(0, len(self._errors) - MAX_ERRORS)]:
            del self._errors[name]

    async def wait_done(self) -> None:
        """Wait until no creation is in progress."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.wait_done()

    async def _create(
        self,
        names: list[str],
        creatable: Slices[list[CreateTopicsRequest.CreatableTopic]],
        asked_by: Context | None,
        remember_ms: int,
        *,
        as_caller: bool,
    ) -> None:
        timeout_ms = self._config.get_int("request.timeout.ms")
        asked = None if asked_by is None else asked_by.for_later()
        controller = self._controller if asked is None else asked.controller
        errors: Counter[int] = Counter()
        messages: dict[str, str] = {}
        try:
            wanted = await in_slices(creatable)
            rows = await self._created(controller, wanted, timeout_ms, asked if as_caller else None)
        except (KafkaError, OSError) as error:
            _log.warning("creating the topics %s failed: %s", _shown(names), error)
            errors[error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR] = len(names)
            messages = dict.fromkeys(names, str(error))
        else:
            failed = [row for row in rows if row.error_code]
            errors.update(row.error_code for row in failed)
            messages = {row.name: row.error_message or str(ErrorCode(row.error_code).message) for row in failed}
            for row in failed[:MAX_SHOWN]:
                # Two brokers that need the same topic both ask for it.
                level = logging.INFO if row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS else logging.WARNING
                _log.log(level, "creating the topic %s failed: %d %s", row.name, row.error_code, row.error_message)
            if len(failed) > MAX_SHOWN:
                _log.warning("creating %d more topics failed", len(failed) - MAX_SHOWN)
        finally:
            self._names.difference_update(names)
        if asked is not None and remember_ms:
            self._remember(messages, asked, remember_ms)
        if asked is not None and asked.services.audit is not None:
            await in_slices(asked.services.audit.created(asked, names, errors))

    async def _created(
        self,
        controller: Controller,
        wanted: list[CreateTopicsRequest.CreatableTopic],
        timeout_ms: int,
        caller: Context | None,
    ) -> list[CreateTopicsResponse.CreatableTopicResult]:
        try:
            return (await controller.write(topics.create, wanted, timeout_ms=timeout_ms)).answers
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER or self._channel is None:
                raise
        request = CreateTopicsRequest(topics=wanted, timeout_ms=timeout_ms)
        response: CreateTopicsResponse
        if caller is not None and caller.services.forwarding is not None:
            enclosed = caller.for_message("CreateTopics", CREATE_TOPICS_VERSION)
            response = await caller.services.forwarding.forward_message(enclosed, request)
        else:
            response = await self._channel.call(request, CREATE_TOPICS_VERSION, timeout_ms=timeout_ms)
        return response.topics


def _shown(names: list[str]) -> str:
    return ", ".join(names[:MAX_SHOWN]) + (f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else "")


def creatable_topic(name: str, config: ServerConfig) -> CreateTopicsRequest.CreatableTopic:
    """Return a topic with this node's settings; the controller's defaults fill in the rest."""
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=DEFAULT, replication_factor=DEFAULT)
    if name == GROUP_METADATA_TOPIC:
        settings = {"cleanup.policy": "compact", "compression.type": "producer"}
        _shape(topic, config, "offsets.topic", settings)
    elif name == TRANSACTION_STATE_TOPIC:
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.get_int("transaction.state.log.min.isr")),
            "unclean.leader.election.enable": "false",
        }
        _shape(topic, config, "transaction.state.log", settings)
    elif name == SHARE_GROUP_STATE_TOPIC:
        settings = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(config.get_int("share.coordinator.state.topic.min.isr")),
            "retention.ms": "-1",
        }
        _shape(topic, config, "share.coordinator.state.topic", settings)
    else:
        if "num.partitions" in config.given:
            topic.num_partitions = config.num_partitions
        if "default.replication.factor" in config.given:
            topic.replication_factor = config.default_replication_factor
    return topic


def _shape(
    topic: CreateTopicsRequest.CreatableTopic, config: ServerConfig, prefix: str, settings: dict[str, str]
) -> None:
    topic.num_partitions = config.get_int(f"{prefix}.num.partitions")
    topic.replication_factor = config.get_int(f"{prefix}.replication.factor")
    settings["segment.bytes"] = str(config.get_int(f"{prefix}.segment.bytes"))
    topic.configs = [
        CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in sorted(settings.items())
    ]
