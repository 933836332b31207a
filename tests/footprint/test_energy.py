"""What attempts used: rows that are kept whole, and the estimate of what was not measured."""

import pytest

from epcore.errors import UserError
from epcore.footprint.energy import frame_of, gone_on_from, read
from epcore.footprint.rows import file_of, record, rows_of


def test_a_row_takes_the_place_of_what_was_known_of_its_attempt(tmp_path, attempt):
    for name, state in (("a", "started"), ("b", "started"), ("a", "finished")):
        record(tmp_path, attempt(attempt=name, state=state))
    rows = rows_of(file_of(tmp_path, "results/demo/x.pt"))
    assert {row["attempt"]: row["state"] for row in rows} == {"a": "finished", "b": "started"}
    assert len(rows) == 2


def test_each_job_has_a_file_of_its_own_below_the_folder(tmp_path, attempt):
    for job in ("results/demo/x.pt", "results/demo/x.csv", "/elsewhere/x.pt"):
        record(tmp_path, attempt(job=job))
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.csv")}
    assert files == {"results/demo/x.pt.csv", "results/demo/x.csv.csv", "elsewhere/x.pt.csv"}
    assert set(read(tmp_path)["job"]) == {
        "results/demo/x.pt", "results/demo/x.csv", "/elsewhere/x.pt"
    }  # fmt: skip


def test_without_tracked_jobs_the_error_says_what_to_run(tmp_path):
    with pytest.raises(UserError, match=r"none has no energies.*tracking: true.*snakemake"):
        read(tmp_path / "none")


def test_what_was_measured_counts_as_it_is(attempt):
    frame = frame_of([attempt(gpu_kwh=0.5, counters=1)])
    assert frame["kwh"].tolist() == pytest.approx([0.51])
    assert frame["measured_kwh"].tolist() == pytest.approx([0.508])  # not the memory's
    assert frame["kg"].tolist() == pytest.approx([0.051])


def test_what_was_not_measured_costs_as_much_a_second_as_measured_time_on_its_host(attempt):
    """On h a second costs 10 Wh / 3600, on i 20 Wh / 3600, and on a host without any the mean."""
    nothing = {"measured_seconds": 0.0, "cpu_kwh": 0.0, "ram_kwh": 0.0, "cpu_seconds": 360.0}
    frame = frame_of(
        [
            attempt(attempt="a"),
            attempt(attempt="b", host="i", cpu_kwh=0.018),
            attempt(attempt="c", **nothing),
            attempt(attempt="d", host="i", **nothing),
            attempt(attempt="e", host="j", **nothing),
            attempt(attempt="f", cpu_seconds=7200.0),  # an hour before codecarbon was there
            attempt(attempt="g", cpu_seconds=1800.0),  # a killed one, whose children had more
        ]
    )
    kwh = dict(zip(frame["attempt"], frame["kwh"], strict=True))
    # On h: four measured hours in three attempts of 10 Wh each.
    expected = {"a": 0.01, "b": 0.02, "c": 0.001, "d": 0.002, "f": 0.02, "g": 0.01}
    assert {name: kwh[name] for name in expected} == pytest.approx(expected)
    assert kwh["e"] == pytest.approx(0.1 * (3 * 0.01 + 0.02) / 4)


def test_a_gpu_without_a_counter_counts_with_its_power_at_full_load(attempt):
    """Two cards of 250 W for half an hour, and the PUE; another attempt's counter is believed."""
    cards = {"gpu_watts": 500.0, "seconds": 1800.0}
    frame = frame_of([attempt(attempt="a", **cards), attempt(attempt="b", gpu_kwh=0.1, **cards)])
    assert frame["kwh"].tolist() == pytest.approx([0.01 + 0.25 * 1.25, 0.01 + 0.1])
    assert frame["measured_kwh"].tolist() == [0, 0.1]


def test_where_nothing_was_measured_nothing_is_made_up(attempt):
    frame = frame_of([attempt(measured_seconds=0.0, cpu_kwh=0.0, ram_kwh=0.0)])
    assert frame["kwh"].tolist() == [0]


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("first", ""),
        ("second", "first"),
        ("remade", "second first"),  # the second had finished, and its file was lost
        ("changed", "remade"),
        ("again", "changed"),  # what the training before it had used is not its own
        ("unknown", ""),
    ],
)
def test_an_attempt_goes_on_from_those_before_it_that_did_not_finish(
    tmp_path, attempt, name, before
):
    attempts = {
        **{"first": "running", "second": "finished", "remade": "finished"},
        **{"changed": "interrupted", "again": "finished"},
    }
    for hour, (other, state) in enumerate(attempts.items()):
        at = f"2026-01-01T0{hour}:00:00+00:00"
        record(tmp_path, attempt(attempt=other, state=state, at=at))
    found = gone_on_from(tmp_path, "results/demo/x.pt", name)
    assert sorted(found["attempt"]) == sorted(before.split())
