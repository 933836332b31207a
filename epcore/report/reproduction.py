"""The reproduction as a document: numbers of a run as LaTeX macros, and the PDF they make."""

import csv
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from epcore.errors import UserError
from epcore.files import atomic, reading, write_text
from epcore.footprint.impact import HOURS
from epcore.report.config import ReproductionConfig
from epcore.report.evidence import LEVEL
from epcore.report.markup import to_tex
from epcore.report.text_table import CsvLine, read_cells
from epcore.report.writer import plain_tex

SUMS = ("hours", "kwh", "kg")
VERDICTS = ("printed", "intervals", "run")
WORDS = ("holds", "fails", "open", "not asked")
SAID = {"holds": "holds", "fails": "fails", "open": "is open", "not asked": "is not asked"}


def numbers(
    config: ReproductionConfig,
    claims: list[dict[str, str]],
    tables: Mapping[str, Mapping[tuple[str, str, str], CsvLine]],
    footprint: Mapping[str, str] | None,
) -> str:
    """All macros.

    Args:
        config: what the scale says of itself.
        claims: the lines of claims.csv.
        tables: the cells of each table.
        footprint: the line of all jobs of co2.csv, if energy is tracked.
    """
    lines = [_set(f"fact {name}", value) for name, value in _facts(config, claims, footprint)]
    for name, cells in tables.items():
        for (block, row, column), cell in cells.items():
            key = f"{name}/{block}/{row}/{column}"
            for kind, value, width in (
                ("cell", cell["accuracy"], cell["interval"]),
                ("gap", cell["difference"], cell["difference_interval"]),
            ):
                if value:
                    lines.append(_set(f"{kind} {key}", _number(kind, value, width)))
    for claim in claims:
        for verdict, word in zip(VERDICTS, _words(claim), strict=True):
            lines.append(_set(f"word {claim['id']} {verdict}", word))
            lines.append(_set(f"says {claim['id']} {verdict}", SAID[word]))
    for name in config.tables:
        # The report of CO2 writes its numbers beside its pictures.
        numbers_of = f"reports/{name}" if name == "co2" else f"tables/{name}"
        lines.append(_set(f"made {name}", _source(config, f"tables/{name}.tex", numbers_of)))
    for name in config.figures:
        made = _source(config, f"figures/{name}.pdf", f"figures/{name}")
        lines.append(_set(f"made figure {name}", made))
    return "\n".join([*lines, r"\newcommand{\claims}{%", *map(_claim, claims), "}", ""])


def _set(name: str, value: str) -> str:
    return rf"\expandafter\gdef\csname {name}\endcsname{{{value}}}"


def _facts(
    config: ReproductionConfig, claims: list[dict[str, str]], footprint: Mapping[str, str] | None
) -> Iterable[tuple[str, str]]:
    yield from ((name, to_tex(value)) for name, value in config.facts.items())
    theirs = [claim for claim in claims if claim["whose"] != "ours"]
    yield "claims", str(len(theirs))
    for place, verdict in enumerate(VERDICTS):
        counts = Counter(_words(claim)[place] for claim in theirs)
        yield from ((f"{verdict} {word}", str(counts[word])) for word in WORDS)
    for name in SUMS:
        yield name, f"{float(footprint[name]):.3g}" if footprint else r"(not tracked)"
    yield "paper hours", str(HOURS)
    yield "level", f"{100 * (1 - 2 * LEVEL):g}"


def _words(claim: Mapping[str, str]) -> tuple[str, str, str]:
    return claim["printed"], claim["printed_intervals"], claim["this_run"]


def _number(kind: str, value: str, width: str) -> str:
    shown = f"{float(value):+.2f}" if kind == "gap" else f"{float(value):.2f}"
    return rf"${shown}\pm{float(width):.2f}$"


def _source(config: ReproductionConfig, target: str, stem: str) -> str:
    seeds = f" seeds='{list(config.seeds)}'" if len(config.seeds) > 1 else ""
    command = f"snakemake --cores 8 {target} --config scale={config.scale}{seeds}"
    folder, name = stem.split("/")
    file = f"results/{config.scale}/{folder}/{name}.csv"
    return rf"\source{{{plain_tex(command)}}}{{{plain_tex(file)}}}"


def _claim(claim: Mapping[str, str]) -> str:
    """A paragraph: what is claimed, then what breaks it by each judge."""
    sentences = [
        rf"\paragraph{{{claim['id']}.}} {plain_tex(claim['claim'])} ({plain_tex(claim['where'])})"
    ]
    judges = (
        ("printed", "By printed numbers it", "printed_breaks"),
        ("printed_intervals", "By printed intervals it", "printed_intervals_breaks"),
        ("this_run", "In this run it", "this_run_breaks"),
    )
    for column, begin, why in judges:
        word = claim[column]
        if word == "not asked" and column != "this_run":
            continue
        counts = ""
        if column == "this_run" and word in ("holds", "open", "fails"):
            counts = f" ({_counts(claim)})"
        breaks = f": {plain_tex(_short(claim[why]))}" if claim[why] else ""
        if word == "not asked":
            sentences.append(f"In this run: {plain_tex(claim[why])}")
            continue
        sentences.append(rf"{begin} \textbf{{{SAID[word]}}}{counts}{breaks}.".replace("..", "."))
    return " ".join(sentences) + "%"


def _counts(claim: Mapping[str, str]) -> str:
    """What its cells say: "3 hold, 1 fails, 7 are open, 2 are missing"."""
    words = {"holds": ("holds", "hold"), "fails": ("fails", "fail")}
    words |= {word: (f"is {word}", f"are {word}") for word in ("open", "missing")}
    counts = {forms: int(claim[f"this_run_{word}"]) for word, forms in words.items()}
    return ", ".join(f"{n} {forms[n != 1]}" for forms, n in counts.items() if n)


def _short(breaks: str, most: int = 4) -> str:
    """The first `most` reasons, and how many more there are."""
    parts = breaks.split("; ")
    rest = len(parts) - most
    return breaks if rest <= 0 else f"{'; '.join(parts[:most])}; and {rest} more"


def _read_lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file, strict=True))
    if not lines or any(None in line or None in line.values() for line in lines):
        raise ValueError("there is no line, or one has too few or too many cells")
    return lines


def compile_pdf(template: Path, macros: str, inputs: list[Path], out: Path) -> None:
    """Typesets `template` beside numbers.tex; `inputs` are the folders of tables and figures.

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
        shutil.copy(template, folder / "reproduction.tex")
        write_text(folder / "numbers.tex", macros)
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **variables}, capture_output=True, check=False
        )
        log = folder / "reproduction.log"
        if log.exists():
            shutil.copy(log, out.with_suffix(".log"))
        if done.returncode != 0:
            raise UserError(
                f"LaTeX could not typeset {template}; its log is {out.with_suffix('.log')}"
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
        UserError: if a file is missing or damaged, or LaTeX is missing or fails.
    """
    total = None
    if footprint is not None:
        with reading(f"{footprint} is damaged", "delete it"):
            total = {line["level"]: line for line in _read_lines(footprint)}["total"]
            for name in SUMS:
                float(total[name])
    with reading(f"{claims} is damaged", "delete it"):
        judged = _read_lines(claims)
        for claim in judged:
            claim["whose"], _claim(claim)
    cells = {table.stem: read_cells(table) for table in tables}
    macros = numbers(config, judged, cells, total)
    results = claims.parent.parent
    compile_pdf(template, macros, [results / "tables", results / "figures"], out)
