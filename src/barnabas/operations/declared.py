"""Comparison of a declared cluster with a live one."""

from __future__ import annotations

from barnabas.client.cluster import Cluster
from barnabas.declared.difference import Plan, difference
from barnabas.declared.document import Document
from barnabas.declared.observe import observe
from barnabas.operations.errors import OperationError


async def compare(cluster: Cluster, document: Document, *, delete: bool) -> Plan:
    """Plan the changes that make the cluster match the document. Raises OperationError if only controllers were given."""
    if cluster.settings.bootstrap_controllers:
        raise OperationError("controllers do not list topics and users", advice="use --bootstrap-server")
    observed = await observe(cluster, document.sections(), declared=document)
    return difference(document, observed, prune=delete)
