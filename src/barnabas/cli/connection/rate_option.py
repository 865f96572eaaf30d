"""Options for a rate in bytes per second, such as 50MB."""

from __future__ import annotations

import click

from barnabas.cli.terminal.parsing import parsed_by
from barnabas.operations.quantities import parse_bytes

parse_rate = parsed_by(parse_bytes)
"""Callback for options that take bytes per second."""

throttle_option = click.option(
    "--throttle",
    metavar="RATE",
    callback=parse_rate,
    help="Limit in bytes per second, such as 50MB. With --wait it is cleared at the end.",
)
