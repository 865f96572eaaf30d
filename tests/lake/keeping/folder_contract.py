"""What a lake relies on of any folder, wherever it is."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from barnabas.lake.keeping.folders import Folder, read_table, rows_in, write_table


def check_folder(folder: Folder) -> None:
    """Use an empty folder as a lake does."""
    assert not (folder.files() or folder.files_here() or folder.folders())
    with pytest.raises(FileNotFoundError):
        folder.read("a")
    folder.write("a", b"one")
    folder.write("below/deep/b", b"two")
    folder.write("below/c", b"three")
    folder.replace("a", b"other")
    assert [(file.name, file.size) for file in folder.files()] == [("a", 5), ("below/c", 5), ("below/deep/b", 3)]
    assert [file.name for file in folder.files("below/deep")] == ["below/deep/b"]
    assert [file.name for file in (folder / "below").files()] == ["c", "deep/b"]
    assert [file.name for file in folder.files_here()] == ["a"]
    assert (folder.folders(), folder.folders("below"), folder.folders("none")) == (["below"], ["deep"], [])
    assert all(file.modified_ms > 1_700_000_000_000 for file in folder.files())
    assert (folder.read("a"), (folder / "below" / "deep").read("b")) == (b"other", b"two")
    check_creation(folder)
    table = pa.table({"number": [*range(1000)], "word": [f"word {number}" for number in range(1000)]})
    write_table(folder, "rows.parquet", table)
    assert rows_in(folder, "rows.parquet") == 1000
    assert read_table(folder, "rows.parquet").equals(table)
    assert read_table(folder, "rows.parquet", ["word"]).column_names == ["word"]
    folder.flush(["a", "below"])
    folder.remove(["a", "never"])
    folder.remove_all("below")
    folder.remove_all("never")
    assert [file.name for file in folder.files()] == ["made/once", "rows.parquet"]


def check_creation(folder: Folder) -> None:
    """Of many that create one file at the same time, one succeeds, and all that read it see what that one wrote."""
    made: list[int] = []

    def create(number: int) -> None:
        try:
            folder.create("made/once", b"%d" % number)
        except FileExistsError as error:
            assert "made/once already exists" in str(error)
        else:
            made.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (number,) = made
    assert folder.read("made/once") == b"%d" % number
    assert [file.name for file in folder.files("made")] == ["made/once"], "nothing else is left"
