"""The last words of failed jobs, from a log of Snakemake's that names theirs."""

from epcore.failures import failures

RUN = """\
rule data:
    output: results/demo/data/mine/store.json
    log: logs/data.log
Error in rule data:
    message: None
    log: logs/data.log (check log file(s) for error details)
Error in rule embed:
    log: logs/a b.log (check log file(s) for error details)
Error in rule episodes:
    log: logs/none.log (check log file(s) for error details)
Error in rule embed:
    log: logs/a b.log (check log file(s) for error details)
"""


def test_each_failed_job_is_said_once_by_its_last_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/data.log").write_text("begun\nepcore: x.png cannot be read\n\n")
    (tmp_path / "logs/a b.log").write_bytes(b"epcore: \xff is damaged")
    (tmp_path / "run.log").write_text(RUN)
    assert failures(tmp_path / "run.log").splitlines() == [
        "logs/data.log: epcore: x.png cannot be read",
        "logs/a b.log: epcore: \ufffd is damaged",
    ]


def test_a_run_without_failures_says_nothing(tmp_path):
    (tmp_path / "run.log").write_text("rule data:\n    log: logs/data.log\n")
    assert failures(tmp_path / "run.log") == ""
