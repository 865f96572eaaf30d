"""Changes of settings: what they do as sentences, which records they delete, and a `Proposal` of them.

Its one rule: secrets are never part of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, Config, ConfigResource
from barnabas.operations.configs.diff import HIDDEN
from barnabas.operations.errors import refused
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

ALL_BROKERS: Final = "brokers"
_VERBS: Final = {
    AlterConfigOpType.SET: "set {name} of {resource} to {value}",
    AlterConfigOpType.DELETE: "unset {name} of {resource}",
    AlterConfigOpType.APPEND: "append {value} to {name} of {resource}",
    AlterConfigOpType.SUBTRACT: "remove {value} from {name} of {resource}",
}


def resource_text(resource: ConfigResource) -> str:
    """Format a resource as `parse_resource` reads it.

    >>> resource_text(ConfigResource.broker(1)), resource_text(ConfigResource.all_brokers())
    ('broker:1', 'brokers')
    """
    if resource == ConfigResource.all_brokers():
        return ALL_BROKERS
    return f"{resource.type.name.lower().replace('_', '-')}:{resource.name}"


def alteration_sentence(resource: ConfigResource, op: AlterConfigOp, before: Config) -> str:
    """Return what a change does, and the present value."""
    entry = before.get(op.name)
    value = HIDDEN if is_secret(resource, op.name, before) else op.value
    text = _VERBS[op.type].format(name=op.name, resource=resource_text(resource), value=value)
    return (
        text
        if entry is None
        else f"{text}; currently {HIDDEN if entry.is_sensitive else entry.value} ({entry.source.name})"
    )


def is_secret(resource: ConfigResource, name: str, config: Config) -> bool:
    from barnabas.operations.configs.history import is_hidden

    entry = config.get(name)
    return entry.is_sensitive if entry is not None else is_hidden(resource.type, name)


async def propose_alteration(
    cluster: Cluster, resource: ConfigResource, ops: Sequence[AlterConfigOp]
) -> Proposal[ConfigResource, KafkaError | None]:
    """Propose to alter settings of a resource. Raises OperationError if it does not exist."""
    from barnabas.client.admin.configs import Configs
    from barnabas.operations.configs.data_loss import losses

    admin = Configs(cluster)
    before = (await admin.describe_configs([resource]))[resource]
    if isinstance(before, KafkaError):
        raise refused(before, resource_text(resource))
    if not ops:
        return Proposal(expected={}, notes=("nothing would change",))
    checks = await admin.incremental_alter_configs({resource: ops}, validate_only=True)
    if checks[resource] is not None:
        return Proposal(expected=checks)
    lost = await losses(cluster, {resource: ops})

    async def carry_out() -> dict[ConfigResource, KafkaError | None]:
        return await admin.incremental_alter_configs({resource: ops})

    return Proposal(
        checks,
        tuple(alteration_sentence(resource, op, before) for op in ops),
        warning=" ".join(lost) or None,
        question="Delete these records?" if lost else None,
        carry_out=carry_out,
    )


async def propose_rollback(
    cluster: Cluster, resource: ConfigResource, offset: int
) -> Proposal[ConfigResource, KafkaError | None]:
    """Propose to restore the settings as of an offset of the metadata log. Raises OperationError."""
    from barnabas.client.admin.configs import Configs
    from barnabas.metadata.as_of import AsOf
    from barnabas.operations.configs.history import (
        own_config,
        read_live_history,
        require_that_it_was_there,
        rollback,
    )
    from barnabas.operations.quorum.controller_client import controllers_of

    async with controllers_of(cluster) as controllers:
        found = await read_live_history(controllers, AsOf(offset=offset))
    require_that_it_was_there(resource, resource_text(resource), found)
    present = (await Configs(cluster).describe_configs([resource]))[resource]
    if isinstance(present, KafkaError):
        raise refused(present, resource_text(resource))
    ops = rollback(resource, own_config(found.then, resource), own_config(found.last, resource), present)
    return await propose_alteration(cluster, resource, ops)
