"""The processes of a local cluster: starts, signals and observes them.

Its one rule: a process is known by the lock of its log dir, or where the system cannot tell by its ready file, so that no
other process is ever signalled. Each runs in its own session: it does not end with the command that started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path

from barnabas.config.properties import dumps, loads
from barnabas.operations.errors import OperationError
from barnabas.operations.local_cluster import apache
from barnabas.operations.local_cluster.directory import LocalCluster, follow_move
from barnabas.storage.log_dirs import lock_holder

LOOK_AGAIN_S = 0.05
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
LEAVE_TIMEOUT_S = 12.0
LINES_OF_A_FAILURE = 5


class State(Enum):
    """The state of a node's process."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"


def pid_of(cluster: LocalCluster, node_id: int) -> int | None:
    """Return the process of a node, or None if it is not running."""
    if sys.platform.startswith("linux"):
        return lock_holder(cluster.log_dir(node_id))
    try:
        pid = int(loads(cluster.ready_file(node_id).read_text())["pid"])
        os.kill(pid, 0)  # Apache Kafka leaves its file behind
        return pid
    except (OSError, KeyError, ValueError):
        return None


def state_of(cluster: LocalCluster, node_id: int) -> State:
    pid = pid_of(cluster, node_id)
    if pid is None:
        return State.STOPPED
    if _is_paused(pid):
        return State.PAUSED
    return State.RUNNING if cluster.ready_file(node_id).exists() else State.STARTING


def start(cluster: LocalCluster, node_id: int) -> subprocess.Popen[bytes]:
    """Start the process of a node. Raises OperationError if it runs."""
    cluster.node(node_id)
    if (pid := pid_of(cluster, node_id)) is not None:
        raise OperationError(f"node {node_id} is already running, as process {pid}")
    follow_move(cluster, node_id)
    ready = cluster.ready_file(node_id)
    ready.unlink(missing_ok=True)
    environment: dict[str, str] | None = None
    if cluster.node(node_id).is_apache:
        home = apache.find_home(cluster.kafka_home, os.environ)
        command = apache.start_command(home, cluster.properties(node_id))
        environment = apache.start_environment(cluster.directory(node_id), os.environ)
    else:
        properties = str(cluster.properties(node_id))
        command = [sys.executable, "-m", "barnabas", "serve", properties, "--ready-file", str(ready)]
    with cluster.log_file(node_id).open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def wait_ready(cluster: LocalCluster, started: dict[int, subprocess.Popen[bytes]]) -> None:
    """Wait until all these nodes are ready. Raises OperationError if one ends, or takes too long."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    waiting = dict(started)
    while waiting:
        for node_id, process in list(waiting.items()):
            if process.poll() is not None:
                raise OperationError(f"node {node_id} did not start: {_last_lines(cluster.log_file(node_id))}")
            if _is_ready(cluster, node_id, process.pid):
                del waiting[node_id]
        if waiting and time.monotonic() > deadline_s:
            names = ", ".join(map(str, waiting))
            raise OperationError(f"the nodes {names} were not ready within {START_TIMEOUT_S:g} s")
        if waiting:
            time.sleep(LOOK_AGAIN_S)


def _is_ready(cluster: LocalCluster, node_id: int, pid: int) -> bool:
    """Return whether a node has its ready file. That of Apache Kafka is written here, when the node answers."""
    node, ready = cluster.node(node_id), cluster.ready_file(node_id)
    if node.is_apache and pid_of(cluster, node_id) is not None and not ready.exists() and apache.answers(node):
        ready.write_text(dumps({"cluster.id": cluster.cluster_id, "node.id": str(node_id), "pid": str(pid)}))
    return ready.exists()


def send(cluster: LocalCluster, node_id: int, number: signal.Signals) -> int:
    """Send a signal to a node and return its process. Raises OperationError if it is not running."""
    cluster.node(node_id)
    pid = pid_of(cluster, node_id)
    if pid is None:
        raise OperationError(f"node {node_id} is not running")
    os.kill(pid, number)
    return pid


def stop(cluster: LocalCluster, node_ids: Iterable[int]) -> list[int]:
    """Stop nodes cleanly and wait until they have ended. Return those that had to be killed.

    A broker asks the active controller for its shutdown. So nodes that are only brokers stop first, then those that are both,
    whose brokers leave before the nodes stop, and last those that are only controllers.
    Among them, nodes of Apache Kafka are stopped first and one after another: each waits long if there is no active controller.
    """
    wanted = list(node_ids)
    return [
        killed
        for is_broker, is_controller in ((True, False), (True, True), (False, True))
        for some in _turns(cluster, [each for each in wanted if _roles(cluster, each) == (is_broker, is_controller)])
        if some
        for killed in _stop_at_once(cluster, some)
    ]


def stop_started(
    cluster: LocalCluster, node_ids: Iterable[int], started: Mapping[int, subprocess.Popen[bytes]]
) -> list[int]:
    """Like `stop`, for nodes of which some were started here, so early perhaps that no lock tells of them yet."""
    for node_id, process in started.items():
        if process.poll() is None and pid_of(cluster, node_id) is None:
            process.terminate()
    killed = stop(cluster, node_ids)
    for process in started.values():
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return killed


def _roles(cluster: LocalCluster, node_id: int) -> tuple[bool, bool]:
    """Return whether a node is a broker and a controller; nothing is known of one that is not in the cluster."""
    node = cluster.nodes.get(node_id)
    return (True, False) if node is None else (node.is_broker, node.is_controller)


def _turns(cluster: LocalCluster, node_ids: list[int]) -> list[list[int]]:
    """Return which nodes are stopped together, in order."""
    alone = [[each] for each in node_ids if each in cluster.nodes and cluster.nodes[each].is_apache]
    return [*alone, [each for each in node_ids if [each] not in alone]]


def _stop_at_once(cluster: LocalCluster, node_ids: Iterable[int]) -> list[int]:
    running = {node_id: pid for node_id in node_ids if (pid := pid_of(cluster, node_id)) is not None}
    for pid in running.values():
        os.kill(pid, signal.SIGCONT)  # a paused process would not hear the next one
    _let_leave(cluster, running)
    for pid in running.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    left = _until_stopped(cluster, running, STOP_TIMEOUT_S)
    for node_id in left:
        os.kill(running[node_id], signal.SIGKILL)
    return _until_stopped(cluster, {node_id: running[node_id] for node_id in left}, STOP_TIMEOUT_S) or list(left)


def _let_leave(cluster: LocalCluster, running: Mapping[int, int]) -> None:
    """If nothing else of the cluster runs: let these brokers leave while all controllers run, which then wait for nobody."""
    nodes = {each: cluster.nodes[each] for each in running}
    leaving = [each for each, node in nodes.items() if node.is_controller and not node.is_apache]
    leaving = [each for each in leaving if cluster.ready_file(each).exists()]  # it listens for the signal
    if any(pid_of(cluster, each) is not None for each in cluster.nodes if each not in running):
        return
    for node_id in leaving:
        os.kill(running[node_id], signal.SIGUSR1)
    deadline_s = time.monotonic() + LEAVE_TIMEOUT_S
    while any(cluster.ready_file(each).exists() and _is_alive(running[each]) for each in leaving):
        if time.monotonic() > deadline_s:
            return
        time.sleep(LOOK_AGAIN_S)


def wait_stopped(cluster: LocalCluster, node_id: int, pid: int) -> None:
    """Wait until a node that was killed is gone."""
    _until_stopped(cluster, {node_id: pid}, STOP_TIMEOUT_S)


def _until_stopped(cluster: LocalCluster, running: Mapping[int, int], timeout_s: float) -> list[int]:
    """Wait until these nodes have released their locks and their processes have ended. Return those that have not."""
    deadline_s = time.monotonic() + timeout_s
    while left := [each for each, pid in running.items() if pid_of(cluster, each) is not None or _is_alive(pid)]:
        if time.monotonic() > deadline_s:
            break
        time.sleep(LOOK_AGAIN_S)
    return left


def _is_alive(pid: int) -> bool:
    """Return whether a process has not ended. Apache Kafka releases its lock long before."""
    return _state(pid) not in (None, "Z", "X")


def _is_paused(pid: int) -> bool:
    return _state(pid) == "T"


def _state(pid: int) -> str | None:
    """Return the state of a process as Linux has it, or None if it is gone or this is another system."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def _last_lines(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines()[-LINES_OF_A_FAILURE:]
    errors = [line for line in lines if line.startswith("Error: ")]
    return (errors or lines or ["it ended without a message"])[-1].removeprefix("Error: ") + f"; see {path}"
