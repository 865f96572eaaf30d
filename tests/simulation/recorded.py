"""The clients and the checker of the simulation on real nodes, of barnabas or Apache Kafka, and histories as files.

`python -m tests.simulation.recorded --bootstrap-server HOST:PORT --seconds 60 --history FILE` lets the clients work on a
running cluster, whatever is done to it meanwhile, and judges what they were told. `--judge FILE` judges a history again. The
cluster needs an authorizer that allows everything to its clients, because they create ACLs.

A history is a file of JSON lines: what each client did or was told, in order, and at the end what is there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.clients import Clients
from tests.simulation.history import Final, History, Outcome, Place, Record
from tests.simulation.loop import Process

TOLD = (
    *("sending", "acknowledged", "ended", "copied", "received", "offset_committed", "offset_found"),
    *("topic_created", "topic_deleting", "topic_deleted", "was_set"),
)
FINAL = "final"


class Recorder(History):
    """A history that is also written down."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._write = write
        for name in TOLD:
            setattr(self, name, self._noting(name, getattr(self, name)))

    def _noting(self, name: str, tell: Callable[..., None]) -> Callable[..., None]:
        def noted(*arguments: Any, **more: Any) -> None:
            self._line(name, [_to_json(each) for each in arguments], more)
            tell(*arguments, **more)

        return noted

    def found(self, final: Final) -> None:
        self._line(FINAL, _final_to_json(final), {})

    def _line(self, name: str, arguments: object, more: dict[str, Any]) -> None:
        self._write(json.dumps([name, arguments, more]) + "\n")


def judge(lines: Iterable[str]) -> tuple[History, list[str]]:
    """Return the history of these lines, and what is wrong with it. Raises ValueError if it has no end."""
    history = History()
    for line in lines:
        name, arguments, more = json.loads(line)
        if name == FINAL:
            return history, list(history.check(_final_from_json(arguments)))
        if name not in TOLD:
            raise ValueError(f"{name} is not known")
        getattr(history, name)(*map(_from_json, arguments), **more)
    raise ValueError("the history has no end: nobody looked at what is there")


def _to_json(value: Any) -> Any:
    match value:
        case bytes():
            return {"bytes": value.decode("latin-1")}
        case Place():
            return {"place": list(value)}
        case Outcome():
            return {"outcome": value.value}
    return value


def _from_json(value: Any) -> Any:
    match value:
        case {"bytes": text}:
            return text.encode("latin-1")
        case {"place": place}:
            return Place(*place)
        case {"outcome": name}:
            return Outcome(name)
    return value


def _final_to_json(final: Final) -> list[Any]:
    def logs(found: Any) -> list[Any]:
        return [
            [*place, [[offset, value.decode("latin-1")] for offset, value in rows]] for place, rows in found.items()
        ]

    offsets = [[group, *place, offset] for (group, place), offset in final.offsets.items()]
    return [logs(final.committed), logs(final.all_records), dict(final.topics), offsets, dict(final.settings)]


def _final_from_json(found: list[Any]) -> Final:
    def logs(rows: list[Any]) -> dict[Place, list[Record]]:
        return {
            Place(topic, partition): [Record(offset, value.encode("latin-1")) for offset, value in records]
            for topic, partition, records in rows
        }

    committed, all_records, topics, offsets, settings = found
    places = {(group, Place(topic, partition)): offset for group, topic, partition, offset in offsets}
    return Final(logs(committed), logs(all_records), topics, places, settings)


class RealWorld:
    """What clients need, in reality. It must be made within an event loop."""

    def __init__(self, seed: int, say: Callable[[str], object] = lambda text: None) -> None:
        self.processes: dict[str, Process] = {}
        self.violations: list[str] = []
        self._seed = seed
        self._say = say

    def random_for(self, purpose: str) -> Random:
        return Random(f"{self._seed}/{purpose}")

    def start(self, machine: str) -> Process:
        process = self.processes[machine] = Process(machine, 1)
        return process

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work)

    def say(self, *event: object) -> None:
        self._say(" ".join(map(str, event)))

    def violated(self, what: str) -> None:
        self.violations.append(what)


async def work(
    bootstrap: str,
    history: Recorder,
    during: Coroutine[Any, Any, None],
    *,
    seed: int = 1,
    replicas: int = 1,
    say: Callable[[str], object] = lambda text: None,
) -> list[str]:
    """Let clients work while something goes on, and return what is wrong with what they were told."""
    world = RealWorld(seed, say)
    clients = Clients(world, history, bootstrap, replicas)
    clients.start_process()
    with contextlib.closing(during):
        await clients.make_topics()
        clients.start()
        await during
    await clients.stop()
    final = await clients.look()
    history.found(final)
    return [*world.violations, *history.check(final)]


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    if options.judge is not None:
        with options.judge.open() as lines:
            history, wrong = judge(lines)
    else:
        with options.history.open("w") as file:
            recorder = Recorder(file.write)
            wrong = asyncio.run(
                work(
                    options.bootstrap_server,
                    recorder,
                    asyncio.sleep(options.seconds),
                    seed=options.seed,
                    replicas=options.replicas,
                    say=lambda text: print(text, file=sys.stderr),
                )
            )
        history = recorder
    for what in wrong:
        print(what)
    print(f"{len(wrong)} violated: {', '.join(_counts(history))}")
    return 1 if wrong else 0


def _counts(history: History) -> Iterator[str]:
    return (f"{count} {name}" for name, count in sorted(history.counts.items()))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.recorded",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--bootstrap-server", help="a running cluster")
    what.add_argument("--judge", type=Path, help="a history, to be judged again")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long clients work (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of what clients do (default: 1)")
    parser.add_argument("--replicas", type=int, default=1, help="replicas of each partition (default: 1)")
    parser.add_argument("--history", type=Path, default=Path("history.jsonl"), help="where to write the history")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
