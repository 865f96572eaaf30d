"""Which epoch wrote which offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import LeaderEpochs


def epochs(path: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    found = LeaderEpochs(path)
    for entry in entries:
        found.assign(*entry)
    return found


def listed(path: Path) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in LeaderEpochs(path).entries]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leader-epoch-checkpoint"


def test_epochs_are_on_disk_when_they_are_assigned(path: Path) -> None:
    epochs(path, (1, 0), (4, 7))
    assert path.read_text() == "0\n2\n1 0\n4 7\n"
    assert listed(path) == [(1, 0), (4, 7)]


def test_what_is_known_changes_nothing(path: Path) -> None:
    found = epochs(path, (1, 0), (4, 7))
    path.unlink()
    found.assign(4, 7)
    found.assign(4, 9)
    assert not path.exists()


def test_what_is_assigned_later_is_right(path: Path) -> None:
    assert epochs(path, (1, 0), (4, 7), (5, 7)).entries == ((1, 0), (5, 7))
    assert epochs(path, (6, 3)).entries == ((1, 0), (6, 3))
    assert epochs(path, (8, 20), (7, 30)).entries == ((1, 0), (6, 3), (7, 30))
    assert epochs(path, (7, 10)).entries == ((1, 0), (6, 3), (7, 10))
    with pytest.raises(ValueError, match="epoch -1"):
        epochs(path, (-1, 40))


def test_an_epoch_ends_where_the_next_begins(path: Path) -> None:
    found = epochs(path, (2, 10), (4, 20), (5, 30))
    for epoch, expected in {
        -1: (-1, -1),
        0: (0, 10),
        1: (1, 10),
        2: (2, 20),
        3: (2, 20),
        4: (4, 30),
        5: (5, 99),
    }.items():
        assert found.end_offset_for(epoch, 99) == expected
    assert found.end_offset_for(6, 99) == (-1, -1)
    assert epochs(path.with_name("none")).end_offset_for(0, 99) == (-1, -1)


def test_the_epoch_of_an_offset(path: Path) -> None:
    found = epochs(path, (2, 10), (4, 20))
    assert [found.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 1000)] == [None, 2, 2, 4, 4]


def test_truncation_from_the_end(path: Path) -> None:
    epochs(path, (2, 10), (4, 20), (5, 30)).truncate_from_end(21)
    assert listed(path) == [(2, 10), (4, 20)]
    epochs(path).truncate_from_end(20)
    assert listed(path) == [(2, 10)]
    epochs(path).truncate_from_end(0)
    assert listed(path) == []


def test_truncation_from_the_start(path: Path) -> None:
    epochs(path, (2, 10), (4, 20), (5, 30)).truncate_from_start(9)
    assert listed(path) == [(2, 10), (4, 20), (5, 30)]
    epochs(path).truncate_from_start(19)
    assert listed(path) == [(2, 19), (4, 20), (5, 30)]
    epochs(path).truncate_from_start(20)
    assert listed(path) == [(4, 20), (5, 30)]
    epochs(path).truncate_from_start(50)
    assert listed(path) == [(5, 50)]
