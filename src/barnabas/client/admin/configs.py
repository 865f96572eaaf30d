"""Configs of topics, brokers, broker loggers, client metrics and groups: DescribeConfigs, IncrementalAlterConfigs,
AlterConfigs, ListConfigResources.

    described = checked(await configs.describe_configs([ConfigResource.topic("orders")]))
    described[ConfigResource.topic("orders")]["retention.ms"].value

Its one rule: a request about a broker or its loggers goes to that broker. Other requests go to any broker, or to the active
controller for clients with `bootstrap.controllers`. Names and values are checked by the broker, not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import starmap
from typing import Final, TypeVar

from barnabas.client.admin.config_values import (
    AlterConfigOp,
    AlterConfigOpType,
    Config,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    is_done,
    replacement,
)
from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.client.routing import Destination, NodeId, any_broker, controller, node
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.values import ConfigType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

__all__ = [
    "AlterConfigOp",
    "AlterConfigOpType",
    "Config",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "Configs",
]

T = TypeVar("T")

_DESCRIBED_AT_ONCE: Final = 250
_ALTERED_AT_ONCE: Final = 500
_NO_SOURCE: Final = -1


class Configs(Part):
    """Configs and their alteration.

    >>> from barnabas.client.admin.part import checked
    >>> from barnabas.testing import Broker
    >>> async def main() -> None:
    ...     orders = ConfigResource.topic("orders")
    ...     async with Broker(["orders"]) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
    ...         configs = Configs(cluster)
    ...         shorter = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1000")
    ...         checked(await configs.incremental_alter_configs({orders: [shorter]}))
    ...         entry = checked(await configs.describe_configs([orders]))[orders]["retention.ms"]
    ...         print(entry.value, entry.source.name)
    >>> asyncio.run(main())
    1000 DYNAMIC_TOPIC_CONFIG
    """

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        keys: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ConfigResource, Config | KafkaError]:
        """Return all configs of these resources, or those in `keys`, in the broker's order.

        A group or client metrics subscription that does not exist has the defaults. A missing topic or broker is an error.
        """
        wanted = list(dict.fromkeys(resources))
        names = None if keys is None else list(keys)

        async def ask(to: Destination, some: list[ConfigResource]) -> dict[ConfigResource, Config | KafkaError]:
            request = _describe_request(some, names, include_synonyms, include_documentation)
            return await _describe(self.cluster, to, request, timeout_ms)

        return await _each_destination(self.cluster, wanted, _DESCRIBED_AT_ONCE, ask)

    async def incremental_alter_configs(
        self,
        alterations: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ConfigResource, KafkaError | None]:
        """Alter single configs, and leave the others as they are. All alterations of a resource are made, or none.

        Brokers before Kafka 2.3 can only replace all configs of a resource. For them the configs are read, altered and written
        back, unless that would lose a password, which cannot be read. There, two concurrent alterations may undo each other.
        """
        ops = {resource: list(some) for resource, some in alterations.items()}

        async def ask(to: Destination, some: list[ConfigResource]) -> dict[ConfigResource, KafkaError | None]:
            return await self._alter_configs_at(to, {each: ops[each] for each in some}, validate_only, timeout_ms)

        return await _each_destination(self.cluster, list(ops), _ALTERED_AT_ONCE, ask)

    async def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ConfigResource, KafkaError | None]:
        """Replace all configs of these resources; configs that are not named are removed. Meant for old brokers."""

        async def ask(to: Destination, some: list[ConfigResource]) -> dict[ConfigResource, KafkaError | None]:
            return await self._replace_configs_at(to, {each: configs[each] for each in some}, validate_only, timeout_ms)

        return await _each_destination(self.cluster, list(configs), _ALTERED_AT_ONCE, ask)

    async def list_config_resources(
        self, types: Iterable[ConfigResourceType] | None = None, *, timeout_ms: float | None = None
    ) -> list[ConfigResource]:
        """List the resources with configs: topics, brokers, broker loggers, and the groups and client metrics that have some.

        Brokers before Kafka 4.1 only list client metrics (since 3.7); topics and brokers then come from Metadata, and asking
        for groups raises `UnsupportedByNodeError`.
        """
        wanted = list(ConfigResourceType) if types is None else list(dict.fromkeys(types))
        request = ListConfigResourcesRequest(resource_types=[int(each) for each in wanted])
        try:
            response: ListConfigResourcesResponse = await self.cluster.call(
                request, least_version=1, timeout_ms=timeout_ms
            )
        except UnsupportedByNodeError:
            found = [(kind, await _list_old(self.cluster, kind, timeout_ms)) for kind in wanted]
            return [ConfigResource(kind, name) for kind, names in found for name in names]
        rows = response.config_resources
        return [ConfigResource(ConfigResourceType(row.resource_type), row.resource_name) for row in rows]

    async def _alter_configs_at(
        self,
        to: Destination,
        ops: dict[ConfigResource, list[AlterConfigOp]],
        validate_only: bool,
        timeout_ms: float | None,
    ) -> dict[ConfigResource, KafkaError | None]:
        request = _incremental_request(ops, validate_only)

        async def ask() -> dict[ConfigResource, KafkaError | None]:
            return _results(await self.cluster.call(request, to, timeout_ms=timeout_ms))

        async def look(late: list[ConfigResource]) -> dict[ConfigResource, bool]:
            return _compared(await self.describe_configs(late), ops)

        try:
            return await ask() if validate_only else await change(list(ops), ask, look, _settings_of)
        except UnsupportedByNodeError:
            return await self._alter_configs_before_2_3(to, ops, validate_only, timeout_ms)

    async def _alter_configs_before_2_3(
        self,
        to: Destination,
        ops: dict[ConfigResource, list[AlterConfigOp]],
        validate_only: bool,
        timeout_ms: float | None,
    ) -> dict[ConfigResource, KafkaError | None]:
        """Do the work of IncrementalAlterConfigs with AlterConfigs."""
        results: dict[ConfigResource, KafkaError | None] = {}
        whole: dict[ConfigResource, dict[str, str | None]] = {}
        for resource, present in (await self.describe_configs(ops, timeout_ms=timeout_ms)).items():
            try:
                whole[resource] = replacement(resource, _checked(present), ops[resource])
            except KafkaError as error:
                results[resource] = error
        if whole:
            results.update(await self._replace_configs_at(to, whole, validate_only, timeout_ms))
        return results

    async def _replace_configs_at(
        self,
        to: Destination,
        whole: Mapping[ConfigResource, Mapping[str, str | None]],
        validate_only: bool,
        timeout_ms: float | None,
    ) -> dict[ConfigResource, KafkaError | None]:
        rows = [
            AlterConfigsRequest.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[AlterConfigsRequest.AlterableConfig(name=name, value=value) for name, value in values.items()],
            )
            for resource, values in whole.items()
        ]
        request = AlterConfigsRequest(resources=rows, validate_only=validate_only)

        async def ask() -> dict[ConfigResource, KafkaError | None]:
            return _results(await self.cluster.call(request, to, timeout_ms=timeout_ms))

        async def look(late: list[ConfigResource]) -> dict[ConfigResource, bool]:
            ops = {each: [AlterConfigOp(*item) for item in _as_ops(whole[each])] for each in late}
            return _compared(await self.describe_configs(late), ops)

        return await ask() if validate_only else await change(list(whole), ask, look, _settings_of)


def _compared(
    described: Mapping[ConfigResource, Config | KafkaError], ops: Mapping[ConfigResource, Sequence[AlterConfigOp]]
) -> dict[ConfigResource, bool]:
    found = {}
    for resource, config in described.items():
        if not isinstance(config, KafkaError) and (done := is_done(resource, config, ops[resource])) is not None:
            found[resource] = done
    return found


def _as_ops(values: Mapping[str, str | None]) -> list[tuple[str, AlterConfigOpType, str | None]]:
    return [(name, AlterConfigOpType.SET, value) for name, value in values.items()]


def _checked(result: Config | KafkaError) -> Config:
    if isinstance(result, KafkaError):
        raise result
    return result


def _settings_of(resource: ConfigResource) -> str:
    return f"the change of {resource}"


# --- requests and responses ------------------------------------------------------------------------------------------


async def _each_destination(
    cluster: Cluster,
    resources: Sequence[ConfigResource],
    at_once: int,
    ask: Callable[[Destination, list[ConfigResource]], Awaitable[dict[ConfigResource, T | KafkaError]]],
) -> dict[ConfigResource, T | KafkaError]:
    """Ask all nodes involved and merge the results. The error of an unreachable broker is the result of its resources."""
    found: dict[ConfigResource, T | KafkaError] = {}

    async def ask_node(to: Destination, there: list[ConfigResource]) -> None:
        for some in pieces(there, at_once):
            try:
                found.update(await ask(to, some))
            except (KafkaError, OSError) as error:
                if not isinstance(to, NodeId):
                    raise
                found.update((each, _of_node(to, error)) for each in some)

    places: dict[Destination, list[ConfigResource]] = {}
    for resource in resources:
        places.setdefault(_destination(cluster, resource), []).append(resource)
    done = await asyncio.gather(*starmap(ask_node, places.items()), return_exceptions=True)
    for error in filter(None, done):
        raise error
    missing = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response has no row for this resource")
    return {each: found.get(each, missing) for each in resources}


def _destination(cluster: Cluster, resource: ConfigResource) -> Destination:
    is_of_one = resource.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
    if is_of_one and resource.name.isascii() and resource.name.isdecimal():
        return node(int(resource.name))
    return controller() if cluster.settings.bootstrap_controllers else any_broker()


def _of_node(to: NodeId, error: KafkaError | OSError) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    return KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {to.id} was not reached: {error}")


def _describe_request(
    resources: Iterable[ConfigResource], keys: list[str] | None, include_synonyms: bool, include_documentation: bool
) -> DescribeConfigsRequest:
    rows = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=each.type, resource_name=each.name, configuration_keys=keys
        )
        for each in resources
    ]
    return DescribeConfigsRequest(
        resources=rows, include_synonyms=include_synonyms, include_documentation=include_documentation
    )


async def _describe(
    cluster: Cluster, to: Destination, request: DescribeConfigsRequest, timeout_ms: float | None
) -> dict[ConfigResource, Config | KafkaError]:
    response: DescribeConfigsResponse
    try:
        response = await cluster.call(request, to, timeout_ms=timeout_ms)
    except UnsupportedByNodeError:  # old brokers: synonyms need 1.1, documentation needs 2.6
        if not request.include_documentation and not request.include_synonyms:
            raise
        request.include_synonyms = request.include_synonyms and request.include_documentation
        request.include_documentation = False
        return await _describe(cluster, to, request, timeout_ms)
    found: dict[ConfigResource, Config | KafkaError] = {}
    for result in response.results:
        resource = ConfigResource(ConfigResourceType(result.resource_type), result.resource_name)
        error = failed(result.error_code, result.error_message)
        found[resource] = error or {row.name: _entry(resource, row) for row in result.configs}
    return found


def _entry(resource: ConfigResource, row: DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    source = ConfigSource(row.config_source)
    if row.config_source == _NO_SOURCE:  # version 0 only has a flag for the default
        is_topic = resource.type is ConfigResourceType.TOPIC
        given = ConfigSource.DYNAMIC_TOPIC_CONFIG if is_topic else ConfigSource.STATIC_BROKER_CONFIG
        source = ConfigSource.DEFAULT_CONFIG if row.is_default else given
    known = row.config_type in ConfigType._value2member_map_
    return ConfigEntry(
        name=row.name,
        value=row.value,
        source=source,
        is_sensitive=row.is_sensitive,
        is_read_only=row.read_only,
        synonyms=tuple(ConfigSynonym(each.name, each.value, ConfigSource(each.source)) for each in row.synonyms),
        type=ConfigType(row.config_type) if known else ConfigType.UNKNOWN,
        documentation=row.documentation or None,
    )


def _incremental_request(
    ops: Mapping[ConfigResource, Iterable[AlterConfigOp]], validate_only: bool
) -> IncrementalAlterConfigsRequest:
    config = IncrementalAlterConfigsRequest.AlterableConfig
    rows = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=resource.type,
            resource_name=resource.name,
            configs=[config(name=op.name, config_operation=op.type, value=op.value) for op in some],
        )
        for resource, some in ops.items()
    ]
    return IncrementalAlterConfigsRequest(resources=rows, validate_only=validate_only)


def _results(
    response: IncrementalAlterConfigsResponse | AlterConfigsResponse,
) -> dict[ConfigResource, KafkaError | None]:
    return {
        ConfigResource(ConfigResourceType(row.resource_type), row.resource_name): failed(
            row.error_code, row.error_message
        )
        for row in response.responses
    }


async def _list_old(cluster: Cluster, kind: ConfigResourceType, timeout_ms: float | None) -> list[str]:
    """List resources of a broker that serves ListConfigResources not at all, or only as ListClientMetricsResources."""
    if kind is ConfigResourceType.TOPIC:
        return sorted((await cluster.metadata(None, timeout_ms=timeout_ms)).topics)
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return [str(node_id) for node_id in sorted((await cluster.refresh(timeout_ms=timeout_ms)).nodes)]
    if kind is ConfigResourceType.CLIENT_METRICS:
        request = ListConfigResourcesRequest()
        response: ListConfigResourcesResponse = await cluster.call(
            request, feature="listing client metrics", timeout_ms=timeout_ms
        )
        return [row.resource_name for row in response.config_resources if row.resource_type == kind]
    raise UnsupportedByNodeError(
        "listing groups that have configs needs ListConfigResources in version 1, which came with Kafka 4.1"
    )
