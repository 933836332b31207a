"""The logger of `make` in a terminal: that of snakemake-logger-plugin-rich, and the time left.

Snakemake finds it by its name where PYTHONPATH has this folder: `snakemake --logger epnet`.
"""

import contextlib
import logging
import sys
from pathlib import Path

from rich.progress import ProgressColumn, Task
from rich.text import Text
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_rich import LogHandler as RichLogHandler

from epcore.errors import UserError
from epcore.footprint.time_left import TimeLeft, said, seconds_by_rule, seconds_by_stage
from epcore.plan.load import read_yaml

CONFIG = Path("config")


class _Left(ProgressColumn):
    """The time that is left, in the line of all jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.left: TimeLeft | None = None

    def render(self, task: Task) -> Text:
        whole = self.left and task.description == "Total Progress" and not task.finished
        return Text(said(self.left.seconds()) if self.left and whole else "", style="cyan")


class LogHandler(RichLogHandler):
    """Writes to the terminal."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._column = _Left()
        self.progress.columns = (*self.progress.columns, self._column)

    def emit(self, record: logging.LogRecord) -> None:
        event, left = getattr(record, "event", None), self._column.left
        if event == LogEvent.RUN_INFO:
            counts = {rule: n for rule, n in record.stats.items() if rule != "total"}
            # Without a readable ledger the run goes on, and says nothing of the time.
            with contextlib.suppress(UserError):
                seconds = seconds_by_rule(counts, seconds_by_stage(CONFIG, _scale()))
                self._column.left = TimeLeft(seconds)
                self._column.left.plan(counts)
        elif event == LogEvent.JOB_INFO and left:
            left.begin(record.jobid, record.rule_name)
        elif event == LogEvent.JOB_FINISHED and left:
            left.end(record.job_id)
        super().emit(record)


def _scale() -> str:
    given = [word.removeprefix("scale=") for word in sys.argv if word.startswith("scale=")]
    return given[-1] if given else str(read_yaml(CONFIG / "config.yaml")["scale"])
