"""A node's services in memory: decisions run, records are applied and committed at once; no disk, no network.

node = MemoryNode(brokers=4)
response = node.call(CreateTopicsRequest(...), version=7)
frame = node.answer(bytes.fromhex(capture["request_hex"]))
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from barnabas import wire
from barnabas.broker.active_controller import ActiveController
from barnabas.broker.context import ClientInformation, FinalizedFeatures, Listener, Peer
from barnabas.broker.dispatch import dispatch
from barnabas.broker.dynamic_config import DynamicConfig
from barnabas.broker.services import NodeServices
from barnabas.broker.surroundings import Surroundings
from barnabas.broker.topic_creation import TopicCreation
from barnabas.config import server
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicas.fetch_sessions import FetchSessions
from barnabas.replicas.log_directories import LogDirectories
from barnabas.replicas.replicas import Replicas
from barnabas.replicas.share.share_partitions import SharePartitions
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.steps import at_once
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.wire import APIS, ApiKey, ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.frame import Frame
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.records.metadata import FeatureLevelRecord, RegisterBrokerRecord
from tests.broker.memory_groups import MemoryGroups
from tests.broker.memory_transactions import MemoryTransactions

FEATURES = {"metadata.version": 30, "eligible.leader.replicas.version": 1, "group.version": 1, "transaction.version": 2}
CLUSTER_ID = "Z29sZC1jbHVzdGVyLTAwMQ"
SEEDS = {"controller": 1, "client metrics": 2, "replicas": 3, "fetch sessions": 4}
LISTENER_NAMES = {"broker": "PLAINTEXT", "controller": "CONTROLLER", "sasl": "SASL"}


def register_broker(broker_id: int, *, rack: str | None = None, fenced: bool = False) -> RegisterBrokerRecord:
    """A broker as the golden cluster has them: node 1 listens on 19091, and so on."""
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=Uuid(bytes([broker_id]) * 16),
        broker_epoch=100 + broker_id,
        end_points=[RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=19090 + broker_id)],
        rack=rack,
        fenced=fenced,
        log_dirs=[Uuid(bytes([broker_id, 1]) * 8)],
    )


class _MemoryLog:
    def __init__(self, offset: int) -> None:
        self.end_offset = offset + 1
        self.records: list[tuple[Message, int]] = []
        self.controller: ActiveController

    def append(self, epoch: int, records: Sequence[tuple[Message, int]]) -> int:
        for record, version in records:
            assert wire.decode_record(wire.encode_record(record, version)) == (record, version)
        self.records += records
        self.end_offset += len(records)
        asyncio.get_running_loop().call_soon(self.controller.loop.committed, self.end_offset - 1)
        return self.end_offset - 1


class MemoryNode(NodeServices):
    """Services over an image; `written` are the records of decisions. Implements `broker.context.Services`."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        brokers: int = 1,
        records: Sequence[Message] = (),
        features: Mapping[str, int] | None = None,
        image: MetadataImage | None = None,
        authorizer: AuthorizerSettings | None = None,
        now_ms: int = 1_700_000_000_000,
        kraft_version: int = 0,
        directory_ids: Mapping[Path, Uuid] | None = None,
    ) -> None:
        config = server.load(None, dict(properties or {}))
        self.now_ms = now_ms
        surroundings = Surroundings(
            now_ms=lambda: self.now_ms,
            monotonic_ms=lambda: self.now_ms,
            monotonic_ns=lambda: self.now_ms * 1_000_000,
            random_for=lambda purpose: Random(SEEDS[purpose]),
        )
        receiver = config.get_str("barnabas.telemetry.receiver") or ""
        super().__init__(config, surroundings, authorizer or AuthorizerSettings(), telemetry_receiver=receiver)
        self.fetch_sessions = FetchSessions(4, surroundings.random_for("fetch sessions"))  # few enough to run out
        self.log_directories = LogDirectories(lambda: self.config, directory_ids or {})
        self.cluster_id = CLUSTER_ID
        if image is None:
            levels = FEATURES if features is None else features
            start: list[Message] = [FeatureLevelRecord(name=n, feature_level=v) for n, v in levels.items()]
            start += [register_broker(i) for i in range(1, brokers + 1)]
            image = replay(EMPTY_IMAGE, [*start, *records], Provenance(len(start) + len(records) - 1, 1, now_ms))
        self._log = _MemoryLog(image.offset)
        self.controller = ActiveController(
            image,
            self.config,
            self._log,
            surroundings.now_ms,
            surroundings.random_for("controller"),
            cluster_id=CLUSTER_ID,
            kraft_version=lambda: kraft_version,
        )
        self._log.controller = self.controller
        self.topic_creation = TopicCreation(self.controller, self.config)
        at_once(self.follow_quotas(EMPTY_IMAGE, image, ()))
        self.controller.loop.subscribe(self.follow_quotas)
        self.controller.loop.gained(1, self._log.end_offset)
        self.memory_transactions = MemoryTransactions(self)
        self.memory_groups = MemoryGroups(self)
        self.share_state = self.memory_groups.share_state
        self.persister = self.memory_groups.persister
        self.share_partitions = SharePartitions(
            lambda: self.config,
            lambda: self.image,
            lambda: self.replicas,
            self.memory_groups.clock,
            surroundings.monotonic_ms,
            self.persister,
        )
        self._replicas: Replicas | None = None

    @property
    def replicas(self) -> Replicas:
        """The partitions of this broker, from the first use on; `log.dirs` has to be of the test itself."""
        if self._replicas is None:
            dynamic = DynamicConfig(self.config, self.image)
            self._replicas = Replicas(
                self.config.node_id,
                self.log_directories,
                dynamic.topic_values,
                now_ms=self.surroundings.now_ms,
                random=self.surroundings.random_for("replicas"),
            )
            self._replicas.start(self.image)
            self.controller.loop.subscribe(dynamic.image_changed)
            self.controller.loop.subscribe(self._replicas.image_changed)
        return self._replicas

    @property
    def groups(self) -> GroupCoordinator:
        return self.memory_groups.coordinator

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.memory_transactions.coordinator

    @property
    def quorum_leader_id(self) -> int:
        return self.config.node_id

    async def ask_quorum(self, request: Message, version: int, listener_name: str) -> Message:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "a node in memory has no quorum")

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    @property
    def finalized_features(self) -> FinalizedFeatures:
        return FinalizedFeatures(self.image.offset, dict(self.image.features))

    @property
    def written(self) -> list[Message]:
        return [record for record, _ in self._log.records]

    def answer(
        self,
        frame: Frame,
        *,
        listener: str = "broker",
        principal: KafkaPrincipal = ANONYMOUS,
        host: str = "127.0.0.1",
        information: ClientInformation | None = None,
    ) -> bytes | None:
        """The answer to a request frame (header and body), without its size."""

        async def run() -> bytes | None:
            name = LISTENER_NAMES.get(listener, listener.upper())
            peer = Peer(host, principal, Listener(name, is_controller=listener == "controller"), information)
            await self.memory_transactions.load()
            await self.memory_groups.load()
            answer = dispatch(frame, self, peer)
            pieces = await answer if inspect.isawaitable(answer) else answer
            await self.topic_creation.wait_done()
            await self.memory_transactions.settle()
            return None if pieces is None else b"".join(map(bytes, pieces))[4:]

        return asyncio.run(run())

    def call(self, request: Message, version: int, **peer: Any) -> Any:
        """The response to a request, through its bytes."""
        api = APIS[ApiKey(request.schema().key or 0)]
        header = RequestHeader(
            request_api_key=request.schema().key or 0, request_api_version=version, correlation_id=5, client_id="test"
        )
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        answer = self.answer(frame, **peer)
        assert answer is not None
        return wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])
