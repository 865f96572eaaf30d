"""DescribeClientQuotas (48), versions 0 and 1.

Needs DESCRIBE_CONFIGS on the cluster. A component of the filter matches one name of an entity type, its default, or any
name. All components must match, and with `strict` the entity must have no other type. A duplicate type, an unknown
match type, or IP addresses together with users or client ids are INVALID_REQUEST. An unknown entity type is
UNSUPPORTED_VERSION. Entities, and the quotas of each, are sorted (in Kafka the order depends on earlier changes).
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.context import Context
from barnabas.broker.errors import shown_message
from barnabas.controller.quotas import CLIENT_ID, ENTITY_TYPES, IP, USER, in_order
from barnabas.metadata.quotas import QuotaEntity
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices, mapped, stepwise
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

Entry = DescribeClientQuotasResponse.EntryData
Entity = DescribeClientQuotasResponse.EntityData
Value = DescribeClientQuotasResponse.ValueData

_EXACT, _DEFAULT, _ANY = range(3)


def handle(context: Context, request: DescribeClientQuotasRequest) -> Slices[DescribeClientQuotasResponse]:
    try:
        if not context.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        exact, any_name = _read_filter(request.components)
    except KafkaError as error:
        message = shown_message(error.code, error.message)
        return DescribeClientQuotasResponse(error_code=error.code, error_message=message, entries=None)

    def fits(entity: QuotaEntity) -> bool:
        parts = dict(entity)
        if request.strict and len(parts) != len(exact) + len(any_name):
            return False
        return exact.items() <= parts.items() and any_name <= parts.keys()

    found = context.image.quotas
    shown: dict[str, QuotaEntity] = {}
    for some in stepwise(found):
        shown.update((repr(entity), entity) for entity in some if fits(entity))
        yield
    entities = (shown[text] for text in sorted(shown))  # not by the entities: a name may be None
    entries = yield from mapped(lambda entity: _entry(entity, found[entity]), entities)
    return DescribeClientQuotasResponse(entries=entries)


def _read_filter(
    components: list[DescribeClientQuotasRequest.ComponentData],
) -> tuple[dict[str, str | None], set[str]]:
    """Return the requested names by type, and the types for which any name matches."""
    exact: dict[str, str | None] = {}
    any_name: set[str] = set()
    for each in components:
        kind = each.entity_type
        if not kind:
            raise _refused("Invalid empty entity type.")
        if kind in exact or kind in any_name:
            raise _refused(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if each.match_type == _EXACT:
            if each.match is None:
                raise _refused("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            exact[kind] = each.match
        elif each.match_type == _DEFAULT:
            if each.match is not None:
                raise _refused("Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
            exact[kind] = None
        elif each.match_type == _ANY:
            if each.match is not None:
                raise _refused("Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.")
            any_name.add(kind)
        else:
            raise _refused(f"Unknown match type {each.match_type}")
    asked = {*exact, *any_name}
    if IP in asked and asked & {USER, CLIENT_ID}:
        raise _refused(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    return exact, any_name


def _refused(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def _entry(entity: QuotaEntity, values: Mapping[str, float]) -> Entry:
    parts = [Entity(entity_type=kind, entity_name=name) for kind, name in in_order(dict(entity))]
    return Entry(entity=parts, values=[Value(key=key, value=values[key]) for key in sorted(values)])
