"""A session with Apache Kafka 4.3.1 about ACLs, quotas, SCRAM credentials, tokens and telemetry, held again with a node.

The requests are those of `data/security_session.jsonl.gz`, in their order, with the time that passed before each. Answers
are the same bytes; where Kafka's order depends on more than the state, only the order may differ.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.broker.context import ClientInformation
from barnabas.broker.dispatch import Refused
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire import APIS, ApiKey
from tests.broker.harness import MemoryNode

DIFFERENCES = {
    "quota value nan": "a limit that is not a number is none, and is refused",
    "quota of a host in hexadecimal": "the resolver of the system takes more texts for addresses than Java does",
}
ORDER_IS_FREE = {"DescribeAcls", "DeleteAcls", "DescribeClientQuotas", "DescribeUserScramCredentials"}


def in_any_order(value: Any) -> Any:
    """A JSON value with all of its lists sorted."""
    if isinstance(value, dict):
        return {key: in_any_order(member) for key, member in value.items()}
    return sorted(map(in_any_order, value), key=repr) if isinstance(value, list) else value


def test_a_node_answers_a_session_as_kafka_did() -> None:
    authorizer = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))
    memory, information = MemoryNode(authorizer=authorizer), ClientInformation()
    with gzip.open(Path(__file__).parent / "data" / "security_session.jsonl.gz", "rt") as lines:
        session = [json.loads(line) for line in lines]
    assert len(session) > 100
    for step in session:
        memory.now_ms += step.get("tick_ms", 0)
        information.software_name = step.get("software_name", information.software_name)
        frame, shown = bytes.fromhex(step["request_hex"]), f"{step['api']} v{step['version']}: {step['case']}"
        if step["response_hex"] is None:
            with pytest.raises(Refused):
                memory.answer(frame, information=information)
            continue
        mine, theirs = memory.answer(frame, information=information), bytes.fromhex(step["response_hex"])
        assert mine is not None
        if step["case"] in DIFFERENCES:
            continue
        if step["api"] in ORDER_IS_FREE:
            assert in_any_order(decoded(step, mine)) == in_any_order(decoded(step, theirs)), shown
        else:
            assert mine == theirs, shown


def decoded(step: dict[str, Any], answer: bytes) -> Any:
    name, version = step["api"], step["version"]
    key = ApiKey["".join(f"_{c}" if c.isupper() and n else c.upper() for n, c in enumerate(name))]
    header = 4 + APIS[key].response_header_version(version)
    return wire.decode(f"{name}Response", version, answer[header:]).to_json(version)
