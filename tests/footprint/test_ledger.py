"""The ledger: whole lines whoever writes, and the last line of an attempt counts."""

import errno
import fcntl
import json
import math
import multiprocessing
import os

import pytest

from epcore.errors import UserError
from epcore.footprint.ledger import append, gone_on_from, read

WRITERS, LINES = 8, 40


def write_many(path, entry, writer):
    for number in range(LINES):
        method = "x" * (number * 500)  # far more than a pipe or page holds
        append(path, entry.model_copy(update={"attempt": f"{writer}-{number}", "method": method}))


def test_lines_of_parallel_writers_are_whole_and_all_there(tmp_path, entry):
    path = tmp_path / "results" / "ledger.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=write_many, args=(path, entry(), writer))
        for writer in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    names = {f"{writer}-{number}" for writer in range(WRITERS) for number in range(LINES)}
    assert {line["attempt"] for line in lines} == names
    assert len(lines) == WRITERS * LINES
    assert all(len(line["method"]) == 500 * int(line["attempt"].split("-")[1]) for line in lines)
    assert {found.attempt for found in read(path)} == names


def test_the_last_line_of_an_attempt_counts(tmp_path, entry):
    path = tmp_path / "ledger.jsonl"
    for attempt, state, kwh in (
        ("a", "started", 0.0), ("b", "started", 0.0), ("a", "running", 0.1), ("b", "failed", 0.2),
        ("a", "running", 0.3),
    ):  # fmt: skip
        append(path, entry(attempt=attempt, state=state, kwh=kwh))
    assert [(found.attempt, found.state, found.kwh) for found in read(path)] == [
        ("a", "running", 0.3),
        ("b", "failed", 0.2),
    ]


def test_a_torn_line_spoils_nothing_but_itself(tmp_path, entry):
    path = tmp_path / "ledger.jsonl"
    append(path, entry(attempt="a"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert [found.attempt for found in read(path)] == ["a"]
    append(path, entry(attempt="b"))
    assert [found.attempt for found in read(path)] == ["a", "b"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("quantity", ["seconds", "cpu_seconds", "kwh", "tdp_kwh", "kg", "factor"])
def test_a_number_that_no_job_can_have_used_spoils_nothing_but_its_line(
    tmp_path, entry, quantity, number
):
    path = tmp_path / "ledger.jsonl"
    append(path, entry(attempt="a", state="running"))
    for attempt in ("a", "b"):
        odd = json.dumps(entry(attempt=attempt).model_dump() | {quantity: number})
        path.write_text(path.read_text() + odd + "\n")
    assert [(found.attempt, found.state) for found in read(path)] == [("a", "running")]


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_does(tmp_path, entry, monkeypatch, error):
    def refuse(*_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", refuse)
    append(tmp_path / "ledger.jsonl", entry(attempt="a"))
    assert [found.attempt for found in read(tmp_path / "ledger.jsonl")] == ["a"]


def test_without_a_ledger_the_error_says_what_to_run(tmp_path):
    with pytest.raises(UserError, match=r"none\.jsonl.*tracking: true.*snakemake"):
        read(tmp_path / "none.jsonl")


def test_lines_of_a_later_version_may_say_more(tmp_path, entry):
    path = tmp_path / "ledger.jsonl"
    path.write_text(json.dumps(entry().model_dump() | {"water": 3}) + "\n")
    assert len(read(path)) == 1


@pytest.mark.parametrize(
    ("attempt", "before"),
    [
        ("first", ""),
        ("second", "first"),
        ("remade", "second first"),  # the second had finished, and its file was lost
        ("changed", "remade"),
        ("again", "changed"),  # what the training before it had used is not its own
        ("other", ""),
        ("unknown", ""),
    ],
)
def test_an_attempt_goes_on_from_those_before_it_that_did_not_finish(entry, attempt, before):
    attempts = {
        **{"first": "running", "other": "failed", "second": "finished", "remade": "finished"},
        **{"changed": "interrupted", "again": "finished"},
    }
    entries = [
        entry(attempt=name, state=state, job="b.pt" if name == "other" else "a.pt")
        for name, state in attempts.items()
    ]
    assert [each.attempt for each in gone_on_from(attempt, entries)] == before.split()
