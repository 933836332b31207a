"""What the files of figures, tables and documents hold."""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def lines_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words_of(pdf):
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed")
    done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, check=True)
    return " ".join(done.stdout.decode("utf-8").split())


def fonts_of(pdf):
    """Type and `emb` of every font of a PDF."""
    if shutil.which("pdffonts") is None:
        pytest.skip("pdffonts is not installed")
    done = subprocess.run(["pdffonts", pdf], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    start = {name: lines[0].index(name) for name in ("type", "encoding", "emb", "sub")}
    return [
        (line[start["type"] : start["encoding"]].strip(), line[start["emb"] : start["sub"]].strip())
        for line in lines[2:]
    ]


def same_files(stem, other):
    for ending in (".pdf", ".png", ".csv"):
        one = Path(stem).with_suffix(ending).read_bytes()
        assert Path(other).with_suffix(ending).read_bytes() == one, ending


def draw_in_another_process(stage, config, out, **inputs):
    """Runs a report stage as workflow/scripts/report.py does, in a process of its own."""
    script = "import json, sys; from pathlib import Path; from epcore.commands import stages; "
    script += "name, config, inputs, out = json.load(sys.stdin); "
    script += "stages.run_report(name, config, inputs, Path(out))"
    told = json.dumps([stage, config.model_dump_json(), inputs, str(out)])
    subprocess.run([sys.executable, "-c", script], input=told, text=True, check=True)


def compiled(file):
    """The text of a LaTeX file's PDF."""
    for program in ("latexmk", "pdftotext"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    done = subprocess.run(
        ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", file],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    command = ["pdftotext", "-layout", Path(file).with_suffix(".pdf"), "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def overfull(log):
    """By how many points lines of a log are too wide."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    return [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", text)]
