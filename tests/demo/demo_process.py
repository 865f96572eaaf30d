"""`barnabas demo` as a process, line by line."""

from __future__ import annotations

import signal

from tests.command_line import Process

READY = "reach it with bootstrap.servers="


class Demo(Process):
    """What it writes to either output is in `lines`. A free port, unless the arguments name one."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        port = () if "--port" in arguments else ("--port", "0")
        super().__init__("demo", *port, *arguments, env=environment, merged=True)

    @property
    def servers(self) -> str:
        line = next(line for line in self.lines if line.startswith(READY))
        return line.removeprefix(READY).partition(";")[0]

    @property
    def metrics_url(self) -> str:
        return next(line for line in self.lines if line.startswith("  metrics ")).split()[1]

    def interrupt(self) -> int:
        """Stop it as Ctrl-C does; its exit code."""
        return self.stop(signal.SIGINT).exit_code
