"""This controller's registration with the active controller, for clients that bootstrap from controllers.

Its one rule: the image decides. While it lacks this incarnation of the controller and its metadata.version has such
registrations, the request is sent, and repeated with a growing delay. So an unregistered or downgraded cluster gets it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas.broker.controller_channel import ControllerChannel
from barnabas.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from barnabas.config.server_config import ServerConfig
from barnabas.controller.features import SUPPORTED
from barnabas.metadata.image import MetadataImage
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse

_log = logging.getLogger(__name__)

VERSION = 0
MIN_BACKOFF_S = 0.1
MAX_BACKOFF_S = 60.0


class ControllerRegistration:
    """Keeps this controller registered from `start` to `stop`."""

    def __init__(
        self,
        config: ServerConfig,
        incarnation_id: Uuid,
        listeners: Iterable[Endpoint],
        channel: ControllerChannel,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._node_id = config.node_id
        self._incarnation_id = incarnation_id
        self._listeners = list(listeners)
        self._channel = channel
        self._image = image
        self._news = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register, if the cluster has registrations of controllers. Raises KafkaError if it is refused."""
        if self._is_due:
            await self._register()
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])

    def image_changed(self, old: MetadataImage, new: MetadataImage, records: Sequence[Any]) -> None:
        if old.controllers is not new.controllers or old.metadata_version != new.metadata_version:
            self._news.set()

    @property
    def _is_due(self) -> bool:
        image = self._image()
        version = image.metadata_version
        if version is None or not version.is_controller_registration_supported:
            return False
        known = image.controllers.get(self._node_id)
        return known is None or known.incarnation_id != self._incarnation_id

    async def _keep(self) -> None:
        backoff_s = MIN_BACKOFF_S
        while True:
            await self._news.wait()
            self._news.clear()
            if not self._is_due:
                backoff_s = MIN_BACKOFF_S
                continue
            try:
                await self._register()
            except (KafkaError, OSError) as error:
                _log.warning("registering this controller failed and will be retried: %s", error)
                self._news.set()
            await asyncio.sleep(backoff_s)  # until the image has it, or for the next attempt
            backoff_s = min(2 * backoff_s, MAX_BACKOFF_S)

    async def _register(self) -> None:
        request = ControllerRegistrationRequest(
            controller_id=self._node_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                ControllerRegistrationRequest.Listener(
                    name=e.listener_name,
                    host=e.host,
                    port=e.port,
                    security_protocol=SECURITY_PROTOCOLS.index(e.security_protocol),
                )
                for e in self._listeners
            ],
            features=[
                ControllerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
        )
        response: ControllerRegistrationResponse = await self._channel.call(request, VERSION)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code), response.error_message)
