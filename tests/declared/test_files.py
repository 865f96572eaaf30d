"""Several files and folders are one declared cluster, and nothing is declared twice."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from barnabas.declared.document import Document
from barnabas.declared.files import load_documents
from barnabas.declared.yaml_nodes import DocumentError


def load(*paths: Path | str, stdin: str = "") -> Document:
    return load_documents(map(str, paths), io.StringIO(stdin))


def problems(*paths: Path | str, stdin: str = "") -> list[str]:
    with pytest.raises(DocumentError) as error:
        load(*paths, stdin=stdin)
    return [str(each) for each in error.value.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "teams" / "deep").mkdir(parents=True)
    (tmp_path / "b.yaml").write_text("topics:\n  b: {}\nbrokers: {<default>: {log.cleaner.threads: 2}}\n")
    (tmp_path / "a.yml").write_text("topics: {a: }\nacls: [{principal: User:a, operation: READ, resource: topic:a}]\n")
    (tmp_path / "teams" / "deep" / "c.json").write_text('{\n\t"topics": {\n\t\t"c": {"partitions": 2}\n\t}\n}\n')
    (tmp_path / "README.md").write_text("not a declaration")
    (tmp_path / ".hidden.yaml").write_text("odd: 1")
    return tmp_path


def test_a_folder_is_all_its_files_also_those_of_subfolders_in_order(folder: Path) -> None:
    found = load(folder)
    assert list(found.topics or ()) == ["a", "b", "c"]
    assert len(found.acls or ()) == 1
    assert list(found.brokers or ()) == ["<default>"]
    assert found.quotas is None
    assert found.file == "3 files"


def test_files_standard_input_and_folders_are_merged(folder: Path) -> None:
    found = load(folder / "b.yaml", "-", folder / "teams", stdin="topics: {z: }")
    assert list(found.topics or ()) == ["b", "z", "c"]


def test_a_file_that_is_named_twice_is_read_once(folder: Path) -> None:
    link = folder / "teams" / "round"
    link.symlink_to(folder)
    assert list(load(folder, folder / "b.yaml", folder, "-", "-", stdin="topics: {z: }").topics or ()) == [
        "a",
        "b",
        "c",
        "z",
    ]


def test_a_folder_that_is_a_link_is_read(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "d.yaml").write_text("topics: {d: }")
    (folder / "linked").symlink_to(other)
    assert list(load(folder).topics or ()) == ["a", "b", "d", "c"]


def test_what_two_files_declare_is_an_error_that_names_both_places(tmp_path: Path) -> None:
    one, two = tmp_path / "1.yaml", tmp_path / "2.yaml"
    one.write_text(
        "topics:\n  t: {partitions: 1}\nacls:\n  - {principal: User:a, operations: [READ, WRITE], resource: topic:t}\n"
        "quotas:\n  - {entity: {user: a}, quotas: {producer_byte_rate: 1}}\n"
        "users:\n  a: {SCRAM-SHA-256: }\nbrokers:\n  1: {log.cleaner.threads: 1}\n"
    )
    two.write_text(
        "topics:\n\n  t: {state: absent}\nacls:\n  - {principal: User:a, operation: WRITE, resource: topic:t}\n"
        "quotas:\n  - {entity: {user: a}, quotas: {consumer_byte_rate: 1}}\n"
        "users:\n  a: {SCRAM-SHA-256: , SCRAM-SHA-512: }\nbrokers:\n  1: {log.cleaner.threads: 1}\n"
    )
    assert problems(one, two) == [
        f"{two}:3:3: topic t: already declared in {one}:2:3",
        f"{two}:5:5: acl ALLOW User:a to WRITE topic:t: already declared in {one}:4:5",
        f"{two}:7:5: quota user a: already declared in {one}:6:5",
        f"{two}:9:22: user a: SCRAM-SHA-256: already declared in {one}:8:22",
        f"{two}:11:3: broker 1: already declared in {one}:10:3",
    ]


def test_problems_of_all_files_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text("topics: {t: {partitions: none}}")
    (tmp_path / "2.yaml").write_text("topic: {}")
    found = problems(tmp_path)
    assert [each.split(": ")[0] for each in found] == [f"{tmp_path}/1.yaml:1:26", f"{tmp_path}/2.yaml:1:1"]


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    assert problems(tmp_path) == [f"{tmp_path}:1:1: this folder has no files *.yaml, *.yml, *.json"]


def test_paths_of_passwords_are_relative_to_their_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "u.yaml").write_text(f"users: {{{name}: {{SCRAM-SHA-256: {{password: {{file: secret}}}}}}}}")
    users = load(tmp_path).users or {}
    folders = [user.password.folder for user in users.values() if user.password is not None]
    assert folders == [str(tmp_path / "one"), str(tmp_path / "two")]
