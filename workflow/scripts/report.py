"""Runs a report stage, whose config may be too long for a command line."""

import contextlib
import sys
from pathlib import Path

from epcore.commands.cli import exit_code
from epcore.commands.stages import run_report

job = snakemake  # noqa: F821 - Snakemake puts it before this file
asked = (job.params.stage, job.params.config, dict(job.input.items()), Path(job.output[0]))
with (
    Path(job.log[0]).open("w", encoding="utf-8") as log,
    contextlib.redirect_stdout(log),
    contextlib.redirect_stderr(log),
):
    code = exit_code(lambda: run_report(*asked))
if code:
    sys.exit(code)
