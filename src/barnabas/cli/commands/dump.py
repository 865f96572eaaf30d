"""`barnabas dump`: the contents of log files, for people and programs.

Parses arguments and prints rows; the work is in `cli/files`. Exit code 1: a file is damaged; standard error says which and
where, and everything intact was shown. Exit code 2: wrong usage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.files.forked import Made, in_order, processes
from barnabas.cli.files.log_checks import check
from barnabas.cli.files.log_files import Chunk, Item, Problem, Section, Wanted, file_kind, open_as_log, sections
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure, failures
from barnabas.cli.terminal.output import Column, Format, Output, Progress, Rows, columns, note
from barnabas.operations.records.log_records import LogKind
from barnabas.storage.errors import StorageError
from barnabas.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX

_KINDS = {
    "data": LogKind.DATA,
    "metadata": LogKind.METADATA,
    "offsets": LogKind.OFFSETS,
    "transactions": LogKind.TRANSACTIONS,
    "share-groups": LogKind.SHARE_GROUPS,
    "remote-logs": LogKind.REMOTE_LOGS,
}
_CHECKED_COLUMNS = columns(
    "file", Column("status", style=lambda value: "green" if value == "ok" else "red"), "where", "problem"
)


@click.command(short_help="Show segments, indexes, snapshots and checkpoints of logs.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(exists=True, path_type=Path))
@click.option("--offsets", metavar="START[:END]", help="Only records from offset START (inclusive) to END (exclusive).")
@click.option("--max-records", "-n", type=click.IntRange(1), help="Maximum number of rows per file or log.")
@click.option("--batches", is_flag=True, help="Show batch headers only, without decoding records.")
@click.option("--keys", "keys_only", is_flag=True, help="Omit values and headers of records.")
@click.option(
    "--secrets", is_flag=True, help="Show passwords in settings and keys of users, which are hidden otherwise."
)
@click.option("--kind", type=click.Choice(list(_KINDS)), help="Type of the records, if the path does not tell.")
@click.option("--verify", is_flag=True, help="Check all files. Show the damage, its place, and a summary.")
@click.option("--verbose", is_flag=True, help="With --verify: show all damage of each file, and files without damage.")
@output_options
def dump(
    paths: tuple[Path, ...],
    offsets: str | None,
    max_records: int | None,
    batches: bool,
    keys_only: bool,
    secrets: bool,
    kind: str | None,
    verify: bool,
    verbose: bool,
    output: Output,
) -> None:
    """Show the contents of files written by Kafka or barnabas: segments, metadata snapshots, indexes, checkpoints,
    producer snapshots, meta.properties, partition.metadata, quorum-state.

    PATH is such a file, a partition's directory, which is read as one log, or a log dir. Records of internal topics
    (metadata, __consumer_offsets, __transaction_state, __share_group_state) are decoded. Nothing is written or locked.
    Passwords in settings and keys of users are hidden.

    \b
    Examples:
      barnabas dump data/__cluster_metadata-0 --offsets 100:200
      barnabas dump data/__consumer_offsets-12/00000000000000000000.log --output json
      barnabas dump --batches data/orders-0
      barnabas dump --verify data
    """
    if verify:
        given = [
            name
            for name, value in (
                ("--offsets", offsets),
                ("--batches", batches),
                ("--keys", keys_only),
                ("--secrets", secrets),
            )
            if value
        ]
        if given:
            raise click.UsageError(f"{given[0]} and --verify cannot both be given.")
        _verify(paths, output, shows_all=verbose or not output.is_for_people)
        return
    if verbose:
        raise click.UsageError("--verbose can only be used with --verify.")
    start, end = _range(offsets)
    wanted = Wanted(start, end, batches, keys_only, None if kind is None else _KINDS[kind], secrets)
    damaged = 0
    rows: Rows | None = None
    for path in paths:
        with failures():
            for section in _open(path, wanted):
                # JSON and YAML are one list of all rows; tables and TSV are one list per file.
                if rows is None or output.format in (Format.TABLE, Format.TSV):
                    rows = output.table(section.columns)
                output.title(f"{section.path} ({section.kind})")
                damaged += _show(section, rows, output, max_records)
                if output.format in (Format.TABLE, Format.TSV):
                    rows.close()
    if rows is not None and output.format not in (Format.TABLE, Format.TSV):
        rows.close()
    if damaged:
        raise SystemExit(EXIT_FAILED)


_CHUNKS_ALONE = 4


def _open(path: Path, wanted: Wanted) -> Iterator[Section]:
    if wanted.kind is not None and path.is_file() and file_kind(path) is None:
        yield open_as_log(path, wanted)
    else:
        yield from sections(path, wanted)


def _show(section: Section, rows: Rows, output: Output, max_records: int | None) -> int:
    """Show the section and return the number of problems found."""
    if max_records is not None:
        return _show_items(section, _first(_with_damage(section, section.items), max_records), rows, output)
    if section.chunks is None or (count := processes()) < 2:
        return _show_items(section, _with_damage(section, section.items), rows, output)
    # The first chunks determine the column widths; only a log with more chunks is worth several processes.
    damaged = 0
    chunks = _chunks_with_damage(section, section.chunks)
    for number, chunk in enumerate(chunks, 1):
        damaged += _show_items(section, _with_damage(section, chunk()), rows, output)
        if rows.count and number >= _CHUNKS_ALONE:
            break
    following = next(chunks, None)
    if following is None:
        return damaged
    rows.flush()
    for chunk, made in in_order(
        chain((following,), chunks), lambda chunk: _text_of(section, chunk, rows, output), count
    ):
        if made is None:
            damaged += _show_items(section, _with_damage(section, chunk()), rows, output)
        else:
            output.write(made[0], end="")
            rows.count += made[1]
    return damaged


def _show_items(section: Section, items: Iterator[Item], rows: Rows, output: Output) -> int:
    damaged = 0
    name = str(section.path)
    is_for_programs = output.format not in (Format.TABLE, Format.TSV)
    for item in items:
        if isinstance(item, Problem):
            damaged += 1
            rows.flush()
            note(f"Error: {item}")
            if is_for_programs:
                rows.add({"file": str(item.path), "kind": "problem", "where": item.where, "error": item.what})
        else:
            rows.add({"file": name, "kind": section.kind, **item} if is_for_programs else item)
    return damaged


def _text_of(section: Section, chunk: Chunk, rows: Rows, output: Output) -> Made:
    """Return the text and row count of a chunk, or None if it has problems."""
    before = rows.count
    with output.captured() as text:
        items = list(_with_damage(section, chunk()))
        if any(isinstance(item, Problem) for item in items):
            return None
        _show_items(section, iter(items), rows, output)
    made, rows.count = rows.count - before, before
    return text.getvalue(), made


def _chunks_with_damage(section: Section, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    try:
        yield from chunks
    except StorageError as error:
        problem = _problem(section, error)
        yield lambda: iter((problem,))


def _with_damage(section: Section, items: Iterator[Item]) -> Iterator[Item]:
    try:
        yield from items
    except StorageError as error:
        yield _problem(section, error)


def _problem(section: Section, error: StorageError) -> Problem:
    return Problem(section.path, "", str(error).removeprefix(f"{section.path} "))


def _first(items: Iterator[Item], count: int) -> Iterator[Item]:
    for item in items:
        yield item
        if not isinstance(item, Problem):
            count -= 1
            if not count:
                yield from islice((item for item in islice(items, 1) if isinstance(item, Problem)), 1)
                return


def _range(text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    start, colon, end = text.partition(":")
    if not (start or "0").isdecimal() or not (end or "0").isdecimal() or not (start or end):
        raise click.UsageError(f"--offsets {text}: must be START, START:END or :END.")
    return int(start or 0), int(end) if colon and end else None


_PROBLEMS_OF_A_FILE = 3
"""Problems of one file that are shown without --verbose; the others are counted."""


def _verify(paths: tuple[Path, ...], output: Output, *, shows_all: bool) -> None:
    files = [file for path in paths for file in _files_under(path)]
    if not files:
        raise Failure("no log files found", resource=", ".join(map(str, paths)))
    total, before = sum(file.stat().st_size for file in files), 0
    segments = {file for file in files if file.suffix == LOG_SUFFIX}
    bad: Counter[Path] = Counter()
    with ExitStack() as stack, failures():
        progress = stack.enter_context(Progress("checking", total, "bytes"))
        table: Rows | None = None

        def show(file: Path, status: str, where: str | None = None, problem: str | None = None) -> None:
            nonlocal table
            table = table or stack.enter_context(output.table(_CHECKED_COLUMNS))
            table.add({"file": str(file), "status": status, "where": where, "problem": problem})

        for file in files:
            if file.suffix in INDEX_SUFFIXES and file.with_suffix(LOG_SUFFIX) in segments:
                continue  # it was, or will be, checked with its log
            checked = [file, *(file.with_suffix(suffix) for suffix in INDEX_SUFFIXES)] if file in segments else [file]
            for problem in check(file, lambda done, before=before: progress.update(before + done)):  # type: ignore[misc]
                bad[problem.path] += 1
                if shows_all or bad[problem.path] <= _PROBLEMS_OF_A_FILE:
                    show(problem.path, "damaged", problem.where or None, problem.what)
            for each in checked:
                if shows_all and not bad[each] and each.exists():
                    show(each, "ok")
                elif not shows_all and (more := bad[each] - _PROBLEMS_OF_A_FILE) > 0:
                    show(each, "damaged", None, f"{more:,} more problem{'s' * (more != 1)}; --verbose shows all")
            before += file.stat().st_size
    wrong = bad.total()
    if output.is_for_people:
        damaged = sum(count > 0 for count in bad.values())
        counts = f"{damaged:,} damaged, problems: {wrong:,}" if wrong else "no problems"
        note(f"{len(files):,} files, {total:,} bytes: {counts}")
    if wrong:
        raise SystemExit(EXIT_FAILED)


def _files_under(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(each for each in path.rglob("*") if each.is_file() and file_kind(each) is not None)
