"""Who made a change: the audit log of a node beside its metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.sync import Admin
from barnabas.testing import Broker
from tests.console.running_console import NAME, RunningConsole, entry


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[tuple[Broker, Path]]:
    """A broker that writes an audit log, and a setting that was changed on it."""
    path = tmp_path / "audit.log"
    with Broker(topics={"orders": 1}, config={"barnabas.audit.log.path": str(path)}) as broker:
        with Admin({"bootstrap.servers": broker.bootstrap_servers, "client.id": "pipeline"}) as admin:
            op = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1234567")
            admin.incremental_alter_configs({ConfigResource.topic("orders"): [op]})
        yield broker, path


def row_of(page: str, text: str) -> str:
    """The row of a table that has a text."""
    return next(row for row in page.split("<tr>") if text in row)


def test_changes_have_the_name_of_who_made_them(audited: tuple[Broker, Path]) -> None:
    broker, path = audited
    with RunningConsole(replace(entry(broker), audit_logs=(path,))) as console:
        page = console.enter().get(f"/c/{NAME}/history").text
        assert "User:ANONYMOUS" in row_of(page, "1234567")
        assert "IncrementalAlterConfigs" in row_of(page, "1234567")
        settings = console.get(f"/c/{NAME}/topics/orders?tab=settings&history=1").text
        assert "User:ANONYMOUS" in row_of(settings.partition('id="history"')[2], "1234567")


def test_without_an_audit_log_nobody_is_named_and_the_page_says_how(audited: tuple[Broker, Path]) -> None:
    broker, _ = audited
    with RunningConsole(entry(broker)) as console:
        page = console.enter().get(f"/c/{NAME}/history").text
        assert "ANONYMOUS" not in page
        assert "--audit-log" in page


def test_an_audit_log_that_is_not_there_is_said_and_the_changes_are_shown(audited: tuple[Broker, Path]) -> None:
    broker, path = audited
    with RunningConsole(replace(entry(broker), audit_logs=(path.with_name("another.log"),))) as console:
        page = console.enter().get(f"/c/{NAME}/history")
        assert page.status == 200
        assert "there is no audit log" in page.text
        assert "1234567" in page.text


def test_an_audit_log_of_another_cluster_names_nobody(audited: tuple[Broker, Path]) -> None:
    _, path = audited
    with Broker(topics={"orders": 1}) as other:
        with Admin({"bootstrap.servers": other.bootstrap_servers}) as admin:
            op = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1234567")
            admin.incremental_alter_configs({ConfigResource.topic("orders"): [op]})
        with RunningConsole(replace(entry(other), audit_logs=(path,))) as console:
            assert "ANONYMOUS" not in row_of(console.enter().get(f"/c/{NAME}/history").text, "1234567")
