"""A broker that starts: it stays fenced, and does not look at its logs, until its image is not older than its process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.lifecycle import BrokerLifecycle
from barnabas.config import server
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicas.log_directories import LogDirectories
from barnabas.wire import Uuid
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from barnabas.wire.records.metadata import RegisterBrokerRecord

OWN_ID = 1
EARLIER, NOW = Uuid((1).to_bytes(16)), Uuid((2).to_bytes(16))


def image_with(incarnation_id: Uuid) -> MetadataImage:
    record = RegisterBrokerRecord(broker_id=OWN_ID, incarnation_id=incarnation_id, broker_epoch=5, fenced=True)
    return replay(EMPTY_IMAGE, [record], Provenance(5, 1, 1))


class Controller:
    """Stands in for the channel to a controller, which unfences each broker that wants it."""

    def __init__(self) -> None:
        self.image = image_with(EARLIER)
        self.heartbeats: list[BrokerHeartbeatRequest] = []

    async def call(self, request: Any, version: int) -> Any:
        if isinstance(request, BrokerRegistrationRequest):
            return BrokerRegistrationResponse(broker_epoch=9)
        assert isinstance(request, BrokerHeartbeatRequest)
        self.heartbeats.append(request)
        return BrokerHeartbeatResponse(is_fenced=request.want_fence, is_caught_up=True)


def lifecycle_of(controller: Controller, path: Path) -> BrokerLifecycle:
    config = server.load(None, {"log.dirs": str(path), "node.id": str(OWN_ID)})
    channel: Any = controller
    return BrokerLifecycle(
        config,
        cluster_id="cluster",
        incarnation_id=NOW,
        listeners=(),
        log_directories=LogDirectories(lambda: config, {path: Uuid((3).to_bytes(16))}),
        previous_epoch=-1,
        image=lambda: controller.image,
        channel=channel,
        heartbeat_channel=channel,
    )


def test_a_registration_takes_until_the_image_has_it_and_the_broker_wants_to_be_fenced_until_then(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        controller = Controller()
        lifecycle = lifecycle_of(controller, tmp_path)
        registering = asyncio.create_task(lifecycle.register())
        while len(controller.heartbeats) < 3:
            await asyncio.sleep(0)
        assert not registering.done(), "the image has the registration of an earlier process only"
        controller.image = image_with(NOW)
        async with asyncio.timeout(10):
            await registering
        assert all(each.want_fence for each in controller.heartbeats)
        controller.heartbeats.clear()
        await lifecycle.start()
        assert [each.want_fence for each in controller.heartbeats] == [False]
        await lifecycle.drop()

    asyncio.run(scenario())


@pytest.mark.parametrize("incarnation_id", [EARLIER, NOW])
def test_an_image_without_brokers_is_too_old_whatever_else_it_has(tmp_path: Path, incarnation_id: Uuid) -> None:
    controller = Controller()
    lifecycle = lifecycle_of(controller, tmp_path)
    controller.image = EMPTY_IMAGE
    assert not lifecycle._has_read_registration
    controller.image = image_with(incarnation_id)
    assert lifecycle._has_read_registration is (incarnation_id is NOW)
