"""The broker's requests to the active controller: registration, heartbeats, producer ids, directories of replicas.

It sends Kafka's own requests to the controller's listener, even if the controller is in the same process. A broker is
fenced until it has read its own registration; only then it looks at its logs, and after that it serves clients. Before it
stops, it asks the controller, so that the controller can move its leaderships. Heartbeats have a channel of their own, as
in Kafka: they do not wait for the commit of another request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any

from barnabas.broker.controller_channel import ControllerChannel
from barnabas.client import shared
from barnabas.client.errors import TlsError
from barnabas.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from barnabas.config.server_config import ServerConfig
from barnabas.controller.features import SUPPORTED
from barnabas.metadata.image import MetadataImage
from barnabas.replicas.log_directories import LogDirectories
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

_log = logging.getLogger(__name__)

REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
HEARTBEAT_VERSION_WITH_CORDONED = 2
ALLOCATE_PRODUCER_IDS_VERSION = 0
ASSIGN_REPLICAS_TO_DIRS_VERSION = 0
RETRY_S = 0.1
MAX_RETRY_S = 0.5

SHUTDOWN_HEARTBEAT_S = 0.05


class BrokerLifecycle:
    """The broker's registration and heartbeats: first `register`, then `start`, which returns when the broker is unfenced."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        cluster_id: str,
        incarnation_id: Uuid,
        listeners: Iterable[Endpoint],
        log_directories: LogDirectories,
        previous_epoch: int,
        image: Callable[[], MetadataImage],
        channel: ControllerChannel,
        heartbeat_channel: ControllerChannel,
    ) -> None:
        self._config = config
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._listeners = list(listeners)
        self._log_directories = log_directories
        self._previous_epoch = previous_epoch
        self._image = image
        self._channel = channel
        self._heartbeat_channel = heartbeat_channel
        self._beating: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self.epoch = -1

    async def register(self) -> None:
        """Register, and wait until this node has read that.

        Only then its image has all that was committed before it started. An older image, of a snapshot or of the part of the
        log that it knows to be committed, may lack topics whose logs are in its log dirs.
        """
        await self._register()
        while not self._has_read_registration:
            await self._beat(want_fence=True)
            await asyncio.sleep(RETRY_S)

    async def start(self) -> None:
        """Serve from now on: wait until the controller has unfenced this broker."""
        while (await self._beat()).is_fenced:
            await asyncio.sleep(RETRY_S)
        self._beating = asyncio.create_task(self._keep_beating())

    def beat_soon(self) -> None:
        """Send a heartbeat now instead of after the interval."""
        self._news.set()

    async def allocate_producer_ids(self) -> tuple[int, int]:
        """Reserve a block of producer ids and return the first id and the count. Raises KafkaError and OSError."""
        request = AllocateProducerIdsRequest(broker_id=self._config.node_id, broker_epoch=self.epoch)
        response: AllocateProducerIdsResponse = await self._call(self._channel, request, ALLOCATE_PRODUCER_IDS_VERSION)
        return response.producer_id_start, response.producer_id_len

    async def assign_replicas_to_dirs(
        self, directories: list[AssignReplicasToDirsRequest.DirectoryData]
    ) -> AssignReplicasToDirsResponse:
        """Report the log directories of replicas. Raises KafkaError and OSError."""
        request = AssignReplicasToDirsRequest(
            broker_id=self._config.node_id, broker_epoch=self.epoch, directories=directories
        )
        response: AssignReplicasToDirsResponse = await self._call(
            self._channel, request, ASSIGN_REPLICAS_TO_DIRS_VERSION
        )
        return response

    async def stop(self, timeout_s: float = 10.0) -> None:
        """Request a controlled shutdown and wait until the controller allows it, for at most `timeout_s`."""
        beating, self._beating = self._beating, None
        if beating is None:
            return
        await shared.stop(beating)
        try:
            async with asyncio.timeout(timeout_s):
                while not (await self._beat(want_shut_down=True)).should_shut_down:
                    await asyncio.sleep(SHUTDOWN_HEARTBEAT_S)
        except TimeoutError:
            _log.warning(
                "the controller did not allow the shutdown within %g s; stopping without its consent: it fences this "
                "broker when its session times out",
                timeout_s,
            )
        except (OSError, KafkaError) as error:
            _log.warning("stopping without the controller's consent: %s", error)

    async def drop(self) -> None:
        """Stop without a word, as if the process had died."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])

    async def _register(self) -> None:
        request = BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=e.listener_name,
                    host=e.host,
                    port=e.port,
                    security_protocol=SECURITY_PROTOCOLS.index(e.security_protocol),
                )
                for e in self._listeners
            ],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
            rack=self._config.get_str("broker.rack"),
            log_dirs=sorted(self._log_directories.ids),
            previous_broker_epoch=self._previous_epoch,
        )
        backoff_s, reported = RETRY_S, ""
        while True:
            try:
                response: BrokerRegistrationResponse = await self._call(
                    self._heartbeat_channel, request, REGISTRATION_VERSION
                )
                break
            except TlsError:
                raise
            except OSError as error:
                reason = f"the controller is not reachable yet: {error}"
            except KafkaError as error:
                reason = f"the controller refused the registration: {error}"
                if not error.code.retriable and error.code is not ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                    raise
            if reason != reported:
                _log.info("%s; trying again", reason)
                reported = reason
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, MAX_RETRY_S)
        self.epoch = response.broker_epoch
        _log.info("registered as broker %d in epoch %d", self._config.node_id, self.epoch)

    async def _keep_beating(self) -> None:
        interval_s = self._config.get_int("broker.heartbeat.interval.ms") / 1000
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await self._news.wait()
            self._news.clear()
            try:
                await self._beat_or_register()
            except KafkaError as error:
                _log.warning("the controller refused a heartbeat: %s", error)
            except (OSError, TimeoutError) as error:
                _log.warning("a heartbeat did not reach the controller: %s", error)

    async def _beat_or_register(self) -> None:
        try:
            await self._beat()
        except KafkaError as error:
            if error.code is not ErrorCode.STALE_BROKER_EPOCH:
                raise
            _log.warning("the controller refused a heartbeat: %s", error)
            await self._register()

    @property
    def _has_read_registration(self) -> bool:
        known = self._image().brokers.get(self._config.node_id)
        return known is not None and known.incarnation_id == self._incarnation_id

    async def _beat(self, *, want_shut_down: bool = False, want_fence: bool = False) -> BrokerHeartbeatResponse:
        image = self._image()
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=image.offset,
            want_shut_down=want_shut_down,
            want_fence=want_fence,
            offline_log_dirs=self._log_directories.offline_ids,
        )
        version = HEARTBEAT_VERSION
        if image.metadata_version is not None and image.metadata_version.is_cordoned_log_dirs_supported:
            version = HEARTBEAT_VERSION_WITH_CORDONED
            request.cordoned_log_dirs = self._log_directories.cordoned_ids
        response: BrokerHeartbeatResponse = await self._call(self._heartbeat_channel, request, version)
        return response

    async def _call(self, channel: ControllerChannel, request: Message, version: int) -> Any:
        response = await channel.call(request, version)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        return response
