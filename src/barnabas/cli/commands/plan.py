"""`barnabas plan`: show how a cluster differs from what a file declares. Nothing is changed.

`declared.document` reads the file, `declared.difference` finds the difference; the help has an example of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.declared_plan import delete_option, file_option, judge, load
from barnabas.cli.terminal.failures import JudgingCommand
from barnabas.cli.terminal.output import Output

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.declared.difference import Plan


@click.command("plan", cls=JudgingCommand, short_help="Show how a cluster differs from what a file declares.")
@file_option
@delete_option
@common_options
def plan(connection: Connection, output: Output, files: tuple[str, ...], delete: bool) -> None:
    """Show the changes that `apply` would make, value by value and in its order. Nothing is changed.

    Exits with 0 if the cluster matches the file, with 2 if it differs, with 1 if the comparison failed or the plan cannot
    be carried out. What the file does not mention is ignored.

    \b
    A file:
      topics:
        orders:
          partitions: 12
          replicationFactor: 3
          configs: {retention.ms: 604800000}
      acls:
        - principal: User:billing
          operations: [READ, DESCRIBE]
          resource: topic:orders
          description: Invoices are made of orders.
      quotas:
        - entity: {user: billing}
          quotas: {producer_byte_rate: 1048576}
      users:
        billing:
          SCRAM-SHA-512: {iterations: 8192, password: {env: BILLING_PASSWORD}}
      brokers:
        <default>: {log.cleaner.threads: 2}
      manages:
        topics: [billing-*]                  with --delete, only these are deleted if they are not declared

    \b
    Examples:
      barnabas plan -f cluster.yaml
      barnabas plan -f topics.yaml -f teams/           several files, and all files of a folder
      barnabas plan -f cluster.yaml --delete           also report what is not declared
      barnabas export | barnabas plan -f - -b other:9092
    """
    from barnabas.operations.declared import compare, losses_of

    document = load(files)

    async def look(cluster: Cluster) -> tuple[Plan, list[str]]:
        found = await compare(cluster, document, delete=delete)
        return found, await losses_of(cluster, found)

    found, losses = run(connection, look)
    judge(output, found, f"no drift: the cluster matches {document.file}", losses)
