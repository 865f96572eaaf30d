"""`barnabas plan`: what would change to make a cluster as a file declares it. Nothing is changed.

The file is read by `declared.document`, the difference found by `declared.difference`; what to declare is in its help.
"""

from __future__ import annotations

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.declared_plan import delete_option, file_option, judge, load
from barnabas.cli.terminal.failures import JudgingCommand
from barnabas.cli.terminal.output import Output


@click.command("plan", cls=JudgingCommand, short_help="What would change to make the cluster as a file declares it.")
@file_option
@delete_option
@common_options
def plan(connection: Connection, output: Output, file: str, delete: bool) -> None:
    """Show what would change to make the cluster as a file declares it, value by value, in the order of `apply`.

    Ends with 0 if nothing would, with 2 if the cluster has drifted from the file, with 1 if that could not be found out
    or cannot be done. What the file does not name is left alone.

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

    \b
    Examples:
      barnabas plan -f cluster.yaml
      barnabas plan -f cluster.yaml --delete           count what is not declared as drift
      barnabas export | barnabas plan -f - -b other:9092
    """
    from barnabas.operations.declared import compare

    document = load(file)
    found = run(connection, lambda cluster: compare(cluster, document, delete=delete))
    judge(output, found, f"no drift: the cluster is as {document.file} declares it")
