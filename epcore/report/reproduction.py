"""The reproduction as a document: a template filled with the numbers of a run, and its PDF."""

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.files import atomic, verified, write_text
from epcore.footprint.impact import HOURS
from epcore.report.claim_config import parts_of
from epcore.report.config import ReproductionConfig
from epcore.report.markup import to_tex
from epcore.report.statistics import LEVEL
from epcore.report.text_table import CsvLine, read_cells, read_lines
from epcore.report.writer import fill_file

SUMS = ("hours", "kwh", "kg")
JUDGES = ("printed", "printed_intervals", "this_run")  # columns of claims.csv
PHRASES = {"holds": "holds", "fails": "fails", "open": "is open", "not asked": "is not asked"}
ABSENT = r"\emph{(not at this scale)}"

Tables = Mapping[str, Mapping[tuple[str, str, str], CsvLine]]


def values_of(
    config: ReproductionConfig,
    claims: list[CsvLine],
    tables: Tables,
    footprint: Mapping[str, str] | None,
) -> dict[str, Any]:
    """What the template of the document is filled with.

    Args:
        config: what the scale says of itself.
        claims: the lines of claims.csv.
        tables: the cells of each table.
        footprint: the line of all jobs of co2.csv, if energy is tracked.
    """
    by_id = {claim["id"]: claim for claim in claims}

    return {
        "facts": _facts(config, claims, footprint),
        "cell": _number(tables, "accuracy", "interval", ".2f"),
        "gap": _number(tables, "difference", "difference_interval", "+.2f"),
        "says": lambda claim, judge: PHRASES[by_id[claim][judge]],
        "claims": claims,
        "phrases": PHRASES,
        # The report of CO2 writes its numbers beside its pictures.
        "tables": {
            name: _source(config, f"tables/{name}.tex", "reports" if name == "co2" else "tables")
            for name in config.tables
        },
        "figures": {
            name: _source(config, f"figures/{name}.pdf", "figures") for name in config.figures
        },
    }


def _facts(
    config: ReproductionConfig, claims: list[CsvLine], footprint: Mapping[str, str] | None
) -> dict[str, str]:
    facts = {name: to_tex(value) for name, value in config.facts.items()}
    of_paper = [claim for claim in claims if claim["whose"] != "ours"]
    facts["claims"] = str(len(of_paper))
    for judge in JUDGES:
        counts = Counter(claim[judge] for claim in of_paper)
        facts |= {f"{judge} {word}": str(counts[word]) for word in PHRASES}
    for name in SUMS:
        facts[name] = f"{float(footprint[name]):.3g}" if footprint else "(not tracked)"
    return facts | {"paper hours": str(HOURS), "level": f"{100 * (1 - 2 * LEVEL):g}"}


def _number(tables: Tables, value: str, width: str, form: str) -> Callable[[str], str]:
    """A function of `table/block/row/column`: the number there with its interval, in LaTeX."""

    def number(cell: str) -> str:
        table, block, row, column = parts_of(cell)
        line = tables.get(table, {}).get((block, row, column))
        if line is None or not line[value]:
            return ABSENT
        return rf"${float(line[value]):{form}}\pm{float(line[width]):.2f}$"

    return number


def _source(config: ReproductionConfig, target: str, folder: str) -> dict[str, str]:
    """The command that makes a table or figure, and the file of its numbers."""
    seeds = f" seeds='{list(config.seeds)}'" if len(config.seeds) > 1 else ""
    return {
        "command": f"snakemake --cores 8 {target} --config scale={config.scale}{seeds}",
        "numbers": f"results/{config.scale}/{folder}/{Path(target).stem}.csv",
    }


def compile_pdf(text: str, inputs: list[Path], out: Path) -> None:
    """Typesets a document; `inputs` are the folders of tables and figures.

    Raises:
        UserError: if LaTeX is missing or fails, with the place of its log.
    """
    if shutil.which("latexmk") is None:
        raise UserError(
            "latexmk is missing: install LaTeX (Debian: texlive-latex-recommended and latexmk) and "
            "run the same command again"
        )
    search_path = os.pathsep.join(f"{folder.resolve()}" for folder in inputs)
    variables = {"TEXINPUTS": f".{os.pathsep}{search_path}{os.pathsep}", "SOURCE_DATE_EPOCH": "0"}
    command = ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "reproduction.tex"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_text(folder / "reproduction.tex", text)
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **variables}, capture_output=True, check=False
        )
        log = folder / "reproduction.log"
        if log.exists():
            shutil.copy(log, out.with_suffix(".log"))
        if done.returncode != 0:
            raise UserError(
                "LaTeX could not typeset the document", f"its log is {out.with_suffix('.log')}"
            )
        with atomic(out) as temporary:
            shutil.copy(folder / "reproduction.pdf", temporary)


def run(
    config: ReproductionConfig,
    template: Path,
    claims: Path,
    tables: list[Path],
    out: Path,
    footprint: Path | None = None,
) -> None:
    """The stage `reproduction`: the document (.pdf) and the log of LaTeX beside it.

    Raises:
        UserError: if a file is damaged, or LaTeX is missing or fails.
    """
    for file in (claims, *tables, *([footprint] if footprint else [])):
        verified(file)
    total = None
    if footprint:
        total = {line["level"]: line for line in read_lines(footprint, ("level", *SUMS))}["total"]
    judged = read_lines(claims, JUDGES)
    cells = {table.stem: read_cells(table) for table in tables}
    text = fill_file(template, **values_of(config, judged, cells, total))
    results = claims.parent.parent
    compile_pdf(text, [results / "tables", results / "figures"], out)
