"""Changes of ACLs: create and delete entries. Each is checked first and returned as a `Proposal`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.client.admin.acls import Acls, only
from barnabas.client.cluster import Cluster
from barnabas.operations.proposal import Proposal
from barnabas.security import acl_text
from barnabas.security.acl import AclEntry
from barnabas.wire.errors import KafkaError


async def propose_acl_creation(cluster: Cluster, entries: Iterable[AclEntry]) -> Proposal[AclEntry, KafkaError | None]:
    """Propose to create entries; those that exist already are left out with a note."""
    acls = Acls(cluster)
    present, once = set(await acls.describe_acls()), dict.fromkeys(entries)
    wanted = [entry for entry in once if entry not in present]

    async def carry_out() -> dict[AclEntry, KafkaError | None]:
        return await acls.create_acls(wanted)

    return Proposal(
        dict.fromkeys(wanted),
        tuple(f"create: {acl_text.entry_text(entry)}" for entry in wanted),
        tuple(f"exists already: {acl_text.entry_text(entry)}" for entry in once if entry in present),
        carry_out=carry_out,
    )


def propose_acl_deletion(
    cluster: Cluster, entries: Sequence[AclEntry]
) -> Proposal[AclEntry, list[AclEntry] | KafkaError]:
    """Propose to delete exactly these entries."""

    async def carry_out() -> dict[AclEntry, list[AclEntry] | KafkaError]:
        deleted = await Acls(cluster).delete_acls([only(entry) for entry in entries])  # only what was shown
        return dict(zip(entries, deleted.values(), strict=True))

    return Proposal(
        {entry: [entry] for entry in entries},
        tuple(f"delete: {acl_text.entry_text(entry)}" for entry in entries),
        question=f"Delete {'this ACL' if len(entries) == 1 else f'these {len(entries)} ACLs'}?",
        carry_out=carry_out,
    )


def grouped(entries: Iterable[AclEntry]) -> dict[AclEntry, list[str]]:
    """Merge entries that differ only in their operation: one of them, with operation ANY, and the names of all operations."""
    from barnabas.security.acl import AclOperation

    rows: dict[AclEntry, list[str]] = {}
    for entry in entries:
        rows.setdefault(entry._replace(operation=AclOperation.ANY), []).append(entry.operation.name)
    return rows
