"""Changes of the metadata are attributed to requests by offset and epoch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.operations.audit_trail import AuditTrail, Who, audit_files, find_audit_log, read_trail
from barnabas.operations.errors import OperationError
from barnabas.security.audit_line import AuditLine, MetadataRecords, Outcome, gap_text


def line(principal: str, *records: tuple[int, int, int], cluster: str = "c") -> str:
    metadata = [MetadataRecords(*each) for each in records]
    made = AuditLine(
        0, cluster, 1, principal, "10.0.0.1", "L", "CreateTopics", 7, "x", 1, Outcome.DONE, metadata=metadata
    )
    return made.text().decode()


def who(principal: str) -> Who:
    return Who(principal, "10.0.0.1", "CreateTopics", "x")


def test_a_record_belongs_to_the_request_that_appended_it() -> None:
    trail = AuditTrail([line("a", (1, 10, 14), (1, 20, 20)), line("b", (1, 15, 15)), line("nothing appended")])
    assert [trail.who(offset, 1) for offset in (9, 10, 14, 15, 16, 20, 21)] == [
        *(None, who("a"), who("a"), who("b"), None, who("a"), None),
    ]


def test_records_that_a_leader_lost_do_not_count() -> None:
    trail = AuditTrail([line("lost", (1, 10, 19)), line("kept", (2, 12, 12)), line("before", (1, 5, 5))])
    assert trail.who(12, 2) == who("kept")
    assert trail.who(13, 2) is None
    assert trail.who(11, 1) == who("lost")
    assert trail.who(12, 3) is None


def test_other_clusters_and_unreadable_lines_are_skipped() -> None:
    texts = [line("a", (1, 1, 1), cluster="other"), "half a li", "[]", "{}", gap_text(0, "c", 1, 5).decode()]
    trail = AuditTrail(texts, "c")
    assert len(trail) == 0
    assert trail.unreadable == 3  # a line about a gap is readable


def test_rotated_files_belong_to_the_log_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for name in ("audit.log", "audit.log.1", "audit.log.10", "audit.log.2", "audit.log.gz", "audit.logs"):
        (tmp_path / name).write_text(line(name, (1, len(name), len(name))))
    assert [each.name for each in audit_files(path)] == ["audit.log.10", "audit.log.2", "audit.log.1", "audit.log"]
    assert len(read_trail(path)) == 4
    with pytest.raises(OperationError, match="there is no audit log"):
        read_trail(tmp_path / "none.log")


def test_the_log_is_found_from_the_settings_of_the_node(tmp_path: Path) -> None:
    data = tmp_path / "node" / "data" / "__cluster_metadata-0"
    data.mkdir(parents=True)
    assert find_audit_log(data) is None
    log = tmp_path / "audit.log"
    (tmp_path / "node" / "server.properties").write_text(f"barnabas.audit.log.path={log}\n")
    assert find_audit_log(data) is None  # it has not been written yet
    log.write_text("")
    assert find_audit_log(data) == log
    assert find_audit_log(data.parent) == log


def test_a_line_is_one_line_whatever_a_client_sends(tmp_path: Path) -> None:
    text = line("User:evil\n\u2028\x00{}")
    assert text.count("\n") == 1 and text.isascii()
    assert json.loads(text)["principal"] == "User:evil\n\u2028\x00{}"
