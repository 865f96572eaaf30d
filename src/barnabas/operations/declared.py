"""Comparison of a declared cluster with a live one."""

from __future__ import annotations

from barnabas.client.cluster import Cluster
from barnabas.declared.difference import DeleteTopic, Plan, difference
from barnabas.declared.document import Document
from barnabas.declared.execute import config_alterations
from barnabas.declared.observe import observe
from barnabas.operations.configs.data_loss import deletion_loss, losses
from barnabas.operations.errors import OperationError


async def losses_of(cluster: Cluster, plan: Plan) -> list[str]:
    """Return sentences about the records that a plan deletes."""
    topics = [change.topic for change in plan.changes if isinstance(change, DeleteTopic)]
    deleted = await deletion_loss(cluster, topics) if topics else None
    return [*await losses(cluster, config_alterations(plan.changes)), *([] if deleted is None else [deleted])]


async def compare(cluster: Cluster, document: Document, *, delete: bool) -> Plan:
    """Plan the changes that make the cluster match the document. Raises OperationError if only controllers were given."""
    if cluster.settings.bootstrap_controllers:
        raise OperationError("controllers do not list topics and users", advice="use --bootstrap-server")
    observed = await observe(cluster, document.sections(), declared=document)
    return difference(document, observed, prune=delete)
