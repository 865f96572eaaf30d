"""Client metrics (KIP-714): which metrics each client must push, how often, and where pushed metrics go.

This is soft state of one node. The state of a client is dropped when its connection closes, when the client is silent
for long, or when there are too many clients. Subscriptions are settings in the image; a change applies to a client from
its next request on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple

from barnabas.batches.checksum import crc32c
from barnabas.broker.context import ClientInformation, Context
from barnabas.config import client_metrics
from barnabas.config.definitions import ConfigError, parse_all
from barnabas.config.hash_order import hash_order
from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata.configs import Config, Configs
from barnabas.recent import Recent
from barnabas.steps import Slices, stepwise
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid, random_uuid

_log = logging.getLogger(__name__)

MAX_INSTANCES: Final = 16384
INSTANCE_BYTES: Final = 1500  # without texts, as measured
METRIC_BYTES: Final = 8
FORGET_AFTER_MS: Final = 60_000
DEFAULT_PUSH_INTERVAL_MS: Final = 300_000
COMPRESSION_TYPES: Final = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

_RESERVED: Final = (ZERO_UUID, Uuid((1).to_bytes(16)))
_EVERYTHING: Final = "*"
_NEVER_MS: Final = -(1 << 62)


class Push(NamedTuple):
    """Metrics that a client has pushed, still compressed."""

    client_instance_id: Uuid
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes


Receiver = Callable[[Context, Push], None]


def log_push(context: Context, push: Push) -> None:
    """Receive a push by logging one line about it."""
    _log.info(
        "client %r at %s (instance %s) pushed %d bytes of metrics, compressed with %s%s",
        context.client_id,
        context.peer.host,
        push.client_instance_id,
        len(push.metrics),
        COMPRESSION_TYPES[push.compression_type],
        ", its last" if push.terminating else "",
    )


RECEIVERS: Final[Mapping[str, Receiver]] = {"log": log_push}
"""The receivers by the value of barnabas.telemetry.receiver."""


class _Subscription(NamedTuple):
    metrics: tuple[str, ...]
    push_interval_ms: int
    match: Mapping[str, Any]  # compiled by RE2


@dataclass(slots=True)
class Instance:
    """The subscription of one client, and the times of its requests."""

    attributes: Mapping[str, str | None]
    metrics: list[str]
    push_interval_ms: int
    subscription_id: int
    generation: int
    information: ClientInformation | None
    last_get_ms: int = _NEVER_MS
    last_push_ms: int = _NEVER_MS
    last_seen_ms: int = 0
    terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    @property
    def held_bytes(self) -> int:
        """About the memory of this instance. Names of metrics are shared with the subscriptions."""
        return (
            INSTANCE_BYTES
            + sum(len(text or "") for text in self.attributes.values())
            + METRIC_BYTES * len(self.metrics)
        )

    def is_forgotten(self, now_ms: int) -> bool:
        if self.information is not None and self.information.closed:
            return True
        return now_ms - self.last_seen_ms >= max(FORGET_AFTER_MS, 3 * self.push_interval_ms)


class ClientMetrics:
    """The client instances of a node. `now_ms` is a monotonic clock."""

    def __init__(
        self, receiver: str, max_bytes: int, max_held_bytes: int, random: Random, now_ms: Callable[[], int]
    ) -> None:
        """`max_bytes` limits one push, `max_held_bytes` the memory of all instances."""
        self.max_bytes = max_bytes
        self.pushes = self.pushed_bytes = 0  # that were accepted
        self._receive = RECEIVERS.get(receiver)
        self._random = random
        self._now_ms = now_ms
        self.instances: Recent[Uuid, Instance] = Recent(MAX_INSTANCES, max_held_bytes)
        self._configs: Configs | None = None
        self._settings: dict[str, Config] = {}
        self._subscriptions: list[_Subscription] = []
        self._generation = 0

    def __len__(self) -> int:
        """The number of client instances."""
        return len(self.instances)

    def get(self, context: Context, instance_id: Uuid) -> Slices[tuple[Uuid, Instance]]:
        """Return the client's id, a new one if it has none, and what it must push. Raises KafkaError if it asks too often."""
        now_ms = self._now_ms()
        if instance_id == ZERO_UUID:
            instance_id = random_uuid(self._random)
        instance = yield from self._instance(context, instance_id, now_ms)
        if now_ms - max(instance.last_get_ms, instance.last_push_ms) >= instance.push_interval_ms:
            instance.last_get_ms = now_ms
        elif instance.last_error not in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return instance_id, instance

    def push(self, context: Context, push: Push) -> Slices[None]:
        """Check a push and pass it to the receiver. Raises KafkaError if it is refused."""
        if push.client_instance_id in _RESERVED:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        now_ms = self._now_ms()
        instance = yield from self._instance(context, push.client_instance_id, now_ms)
        try:
            self._check(instance, push, now_ms)
            self._hand_over(context, push)
            self.pushes += 1
            self.pushed_bytes += len(push.metrics)
            instance.last_error = ErrorCode.NONE
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.terminating = push.terminating

    def _check(self, instance: Instance, push: Push, now_ms: int) -> None:
        if instance.terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        # The first push after a get may come early: clients spread their pushes over the interval.
        is_first = instance.last_get_ms > instance.last_push_ms
        if is_first or now_ms - instance.last_push_ms >= instance.push_interval_ms:
            instance.last_push_ms = now_ms
        elif not push.terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if push.subscription_id != instance.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if push.compression_type not in COMPRESSION_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(push.metrics) > self.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _hand_over(self, context: Context, push: Push) -> None:
        if self._receive is None or not push.metrics:
            return
        try:
            self._receive(context, push)
        except Exception:
            _log.exception("receiving the metrics of client instance %s failed", push.client_instance_id)
            raise KafkaError(ErrorCode.INVALID_RECORD) from None

    def _instance(self, context: Context, instance_id: Uuid, now_ms: int) -> Slices[Instance]:
        yield from self._look_at_settings(context.image.configs)
        instance = self.instances.use(instance_id)
        if instance is None or instance.is_forgotten(now_ms):
            instance = yield from self._new_instance(context, instance_id, _attributes(context, instance_id))
        elif instance.generation < self._generation:
            # A changed subscription is sent at once, so the times of earlier requests are reset.
            instance = yield from self._new_instance(context, instance_id, instance.attributes)
        instance.last_seen_ms = now_ms
        return instance

    def _new_instance(
        self, context: Context, instance_id: Uuid, attributes: Mapping[str, str | None]
    ) -> Slices[Instance]:
        subscriptions, generation = self._subscriptions, self._generation
        push_interval_ms = DEFAULT_PUSH_INTERVAL_MS
        wanted: dict[str, None] = {}
        for subscription in subscriptions:
            yield
            if _matches(subscription.match, attributes):
                wanted.update(dict.fromkeys(subscription.metrics))
                push_interval_ms = min(push_interval_ms, subscription.push_interval_ms)
        metrics = [_EVERYTHING] if _EVERYTHING in wanted else hash_order(wanted)
        subscription_id = _subscription_id(metrics, push_interval_ms, instance_id)
        information = context.peer.information
        instance = Instance(attributes, metrics, push_interval_ms, subscription_id, generation, information)
        self.instances.put(instance_id, instance, instance.held_bytes)
        return instance

    def _look_at_settings(self, configs: Configs) -> Slices[None]:
        if configs is self._configs:
            return
        kind = ConfigResourceType.CLIENT_METRICS
        settings: dict[str, Config] = {}
        for some in stepwise(configs.items()):
            settings.update((resource.name, config) for resource, config in some if resource.type == kind)
            yield
        if settings != self._settings:
            subscriptions = []
            for name, config in sorted(settings.items()):
                parsed = _parse(name, config)
                if parsed is not None:
                    subscriptions.append(parsed)
                yield
            if settings != self._settings:  # nor has another request seen them meanwhile
                self._settings, self._subscriptions = settings, subscriptions
                self._generation += 1
        self._configs = configs


def _parse(name: str, config: Config) -> _Subscription | None:
    values = parse_all(client_metrics.definitions(), dict(config))
    metrics, interval_ms, match = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple) and isinstance(interval_ms, int) and isinstance(match, tuple)
    try:
        return _Subscription(metrics, interval_ms, client_metrics.parse_match(match))
    except ConfigError as error:  # stored by Apache Kafka, whose patterns can do more
        _log.warning("client metrics subscription %s matches no client: %s", name, error)
        return None


def _attributes(context: Context, instance_id: Uuid) -> dict[str, str | None]:
    """The attributes by which subscriptions match clients."""
    information = context.peer.information
    return {
        "client_instance_id": str(instance_id),
        "client_id": context.client_id,
        "client_software_name": None if information is None else information.software_name,
        "client_software_version": None if information is None else information.software_version,
        "client_source_address": context.peer.host,
        "client_source_port": None if information is None else str(information.port),
    }


def _matches(patterns: Mapping[str, Any], attributes: Mapping[str, str | None]) -> bool:
    return all(
        (text := attributes[key]) is not None and pattern.fullmatch(text) is not None
        for key, pattern in patterns.items()
    )


def _subscription_id(metrics: list[str], push_interval_ms: int, instance_id: Uuid) -> int:
    """Return a checksum of the metrics and the interval that differs from client to client."""
    checksum = crc32c(f"[{', '.join(metrics)}]{push_interval_ms}".encode())
    for at in range(0, 16, 4):
        checksum ^= int.from_bytes(instance_id[at : at + 4])
    return checksum - (1 << 32) if checksum >> 31 else checksum
