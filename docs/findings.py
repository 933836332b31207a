"""Writes the tables of results in README.md and docs/ from the snapshots in docs/results.

    python docs/findings.py                           rewrites them, as `make findings` does
    python docs/findings.py take demo --as NAME       takes results/demo into a snapshot first

A table stands between <!-- findings: NAME --> and <!-- end -->; the functions below make them.
Prose has no number of ours: it points at a table. tests/test_findings.py holds pages to both.
The file source.json of a snapshot says by which command, code and machine it was made.
"""

import argparse
import csv
import itertools
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from epcore.commands.classify import methods_of
from epcore.report.printed import read_printed
from epcore.report.statistics import mean_with_interval

ROOT = Path(__file__).parents[1]
SNAPSHOT = ROOT / "docs/results"
PAGES = (
    "README.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")),
)
BLOCK = re.compile(r"(<!-- findings: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = ("mini1", "mini1-dirichlet", "mini5", "mini5-dirichlet")
SHORT = (
    *("EP", "label-propagation", "nearest-mean", "simpleshot", "logistic-regression"),
    *("soft-k-means", "laplacian-shot", "tim", "alpha-tim", "pt-map", "ilpc"),
)
HEAD = "| 1-shot | 1-shot, Dirichlet | 5-shot | 5-shot, Dirichlet |"


def take(scale: str, name: str, command: str) -> None:
    """Copies tables, numbers of figures, curves of pretrainings, tests of compared methods.

    And where they come from.
    """
    results, folder = ROOT / "results" / scale, SNAPSHOT / name
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("tables/*.csv", "figures/*-numbers.csv"):
        for file in sorted(results.glob(pattern)):
            shutil.copy(file, folder)
    with (folder / "pretraining.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["dataset", "backbone", "recipe", "seed", "epoch", "val_accuracy"])
        for file in sorted((results / "models").glob("*/*/*/s*/pretrain.csv")):
            names = file.relative_to(results / "models").parts[:4]
            with file.open(encoding="utf-8", newline="") as curve:
                for line in csv.DictReader(curve):
                    table.writerow([*names, line["epoch"], line["val_accuracy"]])
    with (folder / "episodic.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["network", "protocol", "accuracy", "steps", "seconds", "revision"])
        for file in sorted((results / "scores").glob("*/*/*/s*/*.csv")):
            if meta := _episodic(file, results):
                with file.open(encoding="utf-8", newline="") as scores:
                    accuracy = np.mean([float(line["accuracy"]) for line in csv.DictReader(scores)])
                training = meta["config"]["training"]
                network = file.parent.relative_to(results / "scores").as_posix()
                steps = training["epochs"] * training["steps"]
                numbers = (f"{100 * accuracy:.4f}", steps, f"{meta['seconds']:.0f}")
                table.writerow([network, file.stem, *numbers, meta["git_revision"]])
    made = next(
        found
        for part in ("scores", "tables", "models")
        if (found := sorted((results / part).rglob("*.meta.json")))
    )
    metas = [json.loads(file.read_text(encoding="utf-8")) for file in made]
    facts = {
        "scale": scale,
        "command": command,
        f"{made[0].relative_to(results).parts[0]} by revision": dict(
            sorted(Counter(str(m["git_revision"]) for m in metas).items())
        ),
        "torch": sorted({m["packages"]["torch"] for m in metas}),
        "machine": machine(),
    }
    (folder / "source.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _episodic(scores: Path, results: Path) -> dict[str, Any] | None:
    """The meta of the training of a compared method that a file of scores is of, if it is."""
    shots = re.search(r"(\d+)shot", scores.stem)
    folder = results / "models" / scores.parent.relative_to(results / "scores")
    metas = sorted(folder.glob(f"meta-{shots[1] if shots else ''}shot.meta.json"))
    return json.loads(metas[0].read_text(encoding="utf-8")) if metas else None


def machine() -> str:
    """The processor, as far as Linux tells, and how many cores it has."""
    cpus = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpus.read_text("utf-8") if cpus.exists() else "")
    return f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} cores"


def lines_of(name: str) -> list[dict[str, str]]:
    """The lines of docs/results/<name>.csv."""
    with (SNAPSHOT / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def claims() -> str:
    """How many claims of the paper hold, by each judge."""
    words = ("holds", "fails", "open", "not asked")
    text = [
        "| of the paper's claims | hold | fail | are open | are not asked |",
        "|---|---|---|---|---|",
    ]
    for title, run, column in (
        ("by the numbers that it prints", "demo-3-seeds", "printed"),
        ("by the intervals that it prints", "demo-3-seeds", "printed_intervals"),
        (
            "by the demo, on stand-in data: three trainings of Conv-4",
            "demo-3-seeds",
            "this_run",
        ),
    ):
        theirs = [line for line in lines_of(f"{run}/claims") if line["whose"] != "ours"]
        counts = Counter(line[column] for line in theirs)
        text.append(f"| {title} | {' | '.join(str(counts[word]) for word in words)} |")
    return "\n".join(text)


def each_claim() -> str:
    """Each claim, and what the three judges say of it."""
    text = ["| | claim | numbers | intervals | demo |", "|---|---|---|---|---|"]
    for line in lines_of("demo-3-seeds/claims"):
        names = ("id", "claim", "printed", "printed_intervals", "this_run")
        text.append(f"| {' | '.join(line[name] for name in names)} |")
    return "\n".join(text)


def epnet_and_net() -> str:
    """EPNet minus --Net in the main table: of one training, and of three."""
    text = [
        "| data | shots | Conv-4 | ResNet-12 | WRN-28-10 | Conv-4, three trainings |",
        "|---|---|---|---|---|---|",
    ]
    one, three = (
        {(c["block"], c["column"]): c for c in lines_of(f"{run}/main") if c["row"] == "EPNet"}
        for run in ("demo-main", "demo-3-seeds")
    )
    for column, said in (
        ("mini1", "mini | 1"),
        ("mini5", "mini | 5"),
        ("tier1", "tiered | 1"),
        ("tier5", "tiered | 5"),
    ):
        found = [one[block, column] for block in ("CONV-4", "RESNET-12", "WRN-28-10")]
        shown = [f"{float(c['difference']):+.1f}" for c in found]
        shown.append(_with_seeds(three["CONV-4", column]))
        text.append(f"| {said} | {' | '.join(shown)} |")
    return "\n".join(text)


def batch_epochs() -> str:
    """EPNet minus --Net by batch and epochs of pretraining, over three trainings."""
    text = [
        "| batch, epochs | --Net, 1-shot | difference | --Net, 5-shot | difference |",
        "|---|---|---|---|---|",
    ]
    lines = lines_of("batch-epochs/batch-epochs")
    cells = {(line["block"], line["row"], line["column"]): line for line in lines}
    for block, row in dict.fromkeys((block, row) for block, row, _ in cells):
        if not cells[block, row, "grid1"]["difference"]:
            continue
        shown = []
        for column in ("grid1", "grid5"):
            cell = cells[block, row, column]
            shown.append(f"{float(cells[block, cell['baseline'], column]['accuracy']):.1f}")
            shown.append(_with_seeds(cell))
        batch, epochs = block.removeprefix("b"), row.removeprefix("EPNet ")
        text.append(f"| {batch}, {epochs} | {' | '.join(shown)} |")
    for row in dict.fromkeys(row for _, row, _ in cells if row.startswith("EPNet")):
        shown = []
        for column in ("grid1", "grid5"):
            small, large = (
                np.array(cells[block, row, column]["differences"].split(), dtype=float)
                for block in ("b16", "b128")
            )
            mean, each = mean_with_interval(small - large), " ".join(map(str, small - large))
            pair = {"difference": str(mean.value), "difference_interval": str(mean.interval)}
            shown.append(f" | {_with_seeds(pair | {'differences': each})}")
        text.append(f"| 16 less 128, {row.removeprefix('EPNet ')} | {' | '.join(shown)} |")
    return "\n".join(text)


def mini_ablation() -> str:
    """The paper's ablation on mini-ImageNet without the rotation loss, beside its numbers."""
    text = ["| EFT | LP | EP | 1-shot | as printed |", "|---|---|---|---|---|"]
    for marks, line in _ablation("ablation").items():
        own = f"{float(line['accuracy']):.1f} ± {float(line['interval']):.1f}"
        ticks = " | ".join("✓" if on else "" for on in marks)
        text.append(f"| {ticks} | {own} | {float(line['paper_accuracy']):.1f} |")
    return "\n".join(text)


def mini_effects() -> str:
    """What EP, LP and EFT are worth in that ablation, paired by seed, and as printed."""
    printed = {
        marks: float(line["paper_accuracy"]) for marks, line in _ablation("ablation").items()
    }
    by_seed = {
        marks: np.array([float(test["accuracy"]) for test in tests])
        for marks, tests in _ablation("ablation-by-seed", several=True).items()
    }
    both = (False, True)
    effects = {
        "EP, without LP and EFT": [((False, False, True), (False, False, False))],
        "EP, with LP": [((False, True, True), (False, True, False))],
        "EP, with EFT": [((True, False, True), (True, False, False))],
        "EP, with LP and EFT": [((True, True, True), (True, True, False))],
        "LP, mean of the four": [((e, True, p), (e, False, p)) for e in both for p in both],
        "EFT, mean of the four": [((True, *x), (False, *x)) for x in itertools.product(both, both)],
    }
    text = ["| effect of | here | as printed |", "|---|---|---|"]
    for name, pairs in effects.items():
        own = mean_with_interval(np.mean([by_seed[on] - by_seed[off] for on, off in pairs], axis=0))
        theirs = np.mean([printed[on] - printed[off] for on, off in pairs])
        text.append(f"| {name} | {own.value:+.1f} ± {own.interval:.1f} | {theirs:+.1f} |")
    return "\n".join(text)


def _ablation(name: str, several: bool = False) -> dict[tuple[bool, bool, bool], Any]:
    """Whether a row has EFT, LP and EP -> its line, or its lines."""
    lines: dict[tuple[bool, bool, bool], Any] = {}
    for line in lines_of(f"mini-cpu/{name}"):
        number = int(line["row"].removeprefix("exp")) - 1  # EP + 2 LP + 4 ROT + 8 EFT
        marks = bool(number & 8), bool(number & 2), bool(number & 1)
        if line["accuracy"]:
            lines[marks] = [*lines.get(marks, []), line] if several else line
    return lines


def mini_pretraining() -> str:
    """Validation accuracy on mini-ImageNet with EP less without it, epoch by epoch."""
    accuracies = {
        (line["recipe"], line["seed"], int(line["epoch"])): 100 * float(line["val_accuracy"])
        for line in lines_of("mini-gpu/pretraining")
    }
    seeds = sorted({seed for _, seed, _ in accuracies})
    heads = ("after epoch", "--Net", "EPNet minus --Net", "no rotation loss: --Net", "difference")
    text = [f"| {' | '.join(heads)} |"]
    text.append("|---|---|---|---|---|")
    for epoch in (0, 1, 3, 5, 7):
        shown = []
        for without, with_ep in (("net", "epnet"), ("none", "ep")):
            base = np.array([accuracies[without, seed, epoch] for seed in seeds])
            other = np.array([accuracies[with_ep, seed, epoch] for seed in seeds])
            gap = mean_with_interval(other - base)
            shown += [f"{base.mean():.1f}", f"{gap.value:+.1f} ± {gap.interval:.1f}"]
        text.append(f"| {epoch + 1} | {' | '.join(shown)} |")
    return "\n".join(text)


def half_the_epochs() -> str:
    """Validation accuracy of the last of 7 epochs, beside that of the last of 14, by seed."""
    text = [
        "| network | recipe | 7 epochs, each seed | 14 epochs | mean difference |",
        "|---|---|---|---|---|",
    ]
    once, twice = (
        {
            tuple(names): 100 * float([*curve][-1]["val_accuracy"])
            for names, curve in itertools.groupby(
                lines_of(f"{run}/pretraining"),
                lambda line: (line["backbone"], line["recipe"], line["seed"]),
            )
        }
        for run in ("demo-7-epochs", "demo-14-epochs")
    )
    seeds = sorted({seed for _, _, seed in twice})
    for backbone, name in (("conv4", "Conv-4"), ("resnet12", "ResNet-12"), ("wrn", "WRN-28-10")):
        for recipe, label in (("epnet", "EPNet"), ("net", "--Net")):
            short, long = ([run[backbone, recipe, seed] for seed in seeds] for run in (once, twice))
            cells = (", ".join(f"{accuracy:.1f}" for accuracy in run) for run in (short, long))
            difference = np.mean(short) - np.mean(long)
            text.append(f"| {name} | {label} | {' | '.join(cells)} | {difference:+.1f} |")
    return "\n".join(text)


def rounding() -> str:
    """What another order of rounding did to the main table: same data, seeds and settings."""
    before, after = (
        {(c["block"], c["row"], c["column"]): c["accuracy"] for c in lines_of(f"{run}/main")}
        for run in ("demo-earlier", "demo-rounding")
    )
    text = [
        "| network | its accuracies moved by, mean | at most |",
        "|---|---|---|",
    ]
    for block, name in (("CONV-4", "Conv-4"), ("RESNET-12", "ResNet-12"), ("WRN-28-10", "WRN")):
        moves = [
            abs(float(after[place]) - float(accuracy))
            for place, accuracy in before.items()
            if place[0] == block and accuracy
        ]
        text.append(f"| {name} | {sum(moves) / len(moves):.1f} | {max(moves):.1f} |")
    return "\n".join(text)


def _with_seeds(cell: dict[str, str]) -> str:
    """A mean difference, its interval over trainings, and that of each training."""
    each = ", ".join(f"{float(value):+.1f}" for value in cell["differences"].split())
    return f"{_gap(cell)} ({each})"


def classifiers() -> str:
    """Accuracy of each classifier on the features of --Net, the best of each column in bold."""
    return _table("demo-3-seeds/classifiers", _accuracy)


def with_ep() -> str:
    """What embedding propagation in front adds to each classifier on the features of --Net."""
    return _table("demo-3-seeds/with-ep", _gap)


def picks() -> str:
    """Fewer classifiers still, on mini-ImageNet and photographs: differences to EP + LP."""
    names = {
        "EP": "**EP + label propagation**",
        "label-propagation": "label propagation without EP",
        "nearest-mean": "nearest class mean",
        "logistic-regression": "logistic regression",
        "soft-k-means": "soft k-means",
        "alpha-tim": "alpha-TIM",
        "pt-map": "PT-MAP",
    }
    columns = {"mini1": "1-shot", "mini1-dirichlet": "Dirichlet", "mini5": "5-shot"}
    runs = {"mini-gpu": "*mini*ImageNet", "grocery": "photographs"}
    heads = [
        f"{data}, {said}" if said == "1-shot" else said
        for data in runs.values()
        for said in columns.values()
    ]
    text = [f"| classifier | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    cells = {
        (run, line["row"], line["column"]): line
        for run in runs
        for line in lines_of(f"{run}/classifiers")
        if line["block"] == "--Net"
    }
    for row, name in names.items():
        found = [cells[run, row, column] for run in runs for column in columns]
        shown = [_gap(c) if c["difference"] else f"{float(c['accuracy']):.1f}" for c in found]
        text.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(text)


def mini_classifiers() -> str:
    """Classifiers on mini-ImageNet, over three trainings."""
    return _table("mini-gpu/classifiers", _accuracy_and_gap)


def mini_with_ep() -> str:
    """What embedding propagation in front adds there, over three trainings."""
    return _table("mini-gpu/with-ep", _gap)


def photographs_classifiers() -> str:
    """The same on photographs, of one training."""
    return _table("grocery/classifiers", _accuracy_and_gap, SHORT)


def _accuracy(cell: dict[str, str]) -> str:
    return f"{float(cell['accuracy']):.1f} ± {float(cell['interval']):.1f}"


def _accuracy_and_gap(cell: dict[str, str]) -> str:
    """The first row is the one that others are compared with."""
    return f"{float(cell['accuracy']):.1f}" + (f" ({_gap(cell)})" if cell["difference"] else "")


def _table(name: str, form: Callable[[dict[str, str]], str], only: tuple[str, ...] = ()) -> str:
    """A row for each classifier; where accuracies are shown, the best of a column in bold."""
    ep, lines = form is _gap, [line for line in lines_of(name) if line["block"] == "--Net"]
    cells = {(line["row"], line["column"]): line for line in lines}
    rows = list(dict.fromkeys(row for row, _ in cells))
    best = {c: max(float(cells[row, c]["accuracy"]) for row in rows) for c in COLUMNS}
    text = [f"| classifier | assumes {HEAD}", "|---|---|---|---|---|---|"]
    entries = {row: row if row != "EP" else "ep+label-propagation" for row in rows}
    if ep:
        entries = {row: f"ep+{row}" for row in rows}
    methods = methods_of(list(entries.values()), ROOT / "config")
    for row in only or rows:
        shown = []
        for column in COLUMNS:
            cell = cells[row, column]
            top = not ep and float(cell["accuracy"]) == best[column]
            shown.append(f"**{form(cell)}**" if top else form(cell))
        label = "EP + label propagation" if row == "EP" else row
        assumed = methods[entries[row]].assumptions(unlabeled=False)
        text.append(f"| {label} | {assumed} | {' | '.join(shown)} |")
    return "\n".join(text)


def placement() -> str:
    """Embedding propagation on or off in each phase, minus --Net."""
    return _placement("demo-3-seeds")


def photographs_placement() -> str:
    """The same on photographs, of one training."""
    return _placement("grocery")


def mini_placement() -> str:
    """Embedding propagation in each phase, on mini-ImageNet."""
    return _placement("mini-cpu")


def mini_placement_pretrained() -> str:
    """Embedding propagation in pretraining and at test, without fine-tuning, on mini-ImageNet."""
    return _placement("mini-cpu", "placement-pretrained", ("pretraining", "test"))


def _placement(
    run: str,
    table: str = "placement",
    phases: tuple[str, ...] = ("pretraining", "fine-tuning", "test"),
) -> str:
    text = ["| EP in | 1-shot | difference | 5-shot | difference |", "|---|---|---|---|---|"]
    cells = {(line["row"], line["column"]): line for line in lines_of(f"{run}/{table}")}
    for row in dict.fromkeys(row for row, _ in cells):
        named = [phase for phase, on in zip(phases, row, strict=True) if on == "1"]
        shown = []
        for column in ("mini1", "mini5"):
            cell = cells[row, column]
            shown.append(f"{float(cell['accuracy']):.1f}")
            shown.append(_gap(cell) if cell["difference"] else "")
        text.append(f"| {', '.join(named) or 'nothing'} | {' | '.join(shown)} |")
    return "\n".join(text)


def mini_ways() -> str:
    """EP at test with more ways on mini-ImageNet, minus --Net."""
    text = ["| test | --Net | EP at test |", "|---|---|---|"]
    return "\n".join(
        [*text, *(f"| {' | '.join(row)} |" for row in _gains_at_test("more-ways").values())]
    )


def mini_images() -> str:
    """The same with ten shots and unlabeled images, beside what the paper prints of EPNet."""
    paper = read_printed(ROOT / "config/paper/ssl100.csv")
    text = ["| test | --Net | EP at test | EPNet as printed |", "|---|---|---|---|"]
    for column, row in _gains_at_test("more-images").items():
        shots = re.match(r"5w(\d+)-u", column)
        theirs = "-"
        if shots:
            ours, without = (
                float(str(paper["CONV-4", name, f"mini{shots[1]}"]["accuracy"]))
                for name in ("EPNet_SSL", "--Net_SSL")
            )
            theirs = f"{ours - without:+.1f}"
        text.append(f"| {' | '.join(row)} | {theirs} |")
    return "\n".join(text)


def _gains_at_test(table: str) -> dict[str, list[str]]:
    """A column of more-ways or more-images -> its name, --Net, and what EP at test adds."""
    cells = {(line["row"], line["column"]): line for line in lines_of(f"mini-cpu-net/{table}")}
    rows = {}
    for column in dict.fromkeys(column for _, column in cells):
        ways, shots, unlabeled = re.fullmatch(r"(\d+)w(\d+)(?:-u(\d+))?", column).groups()
        name = f"{ways}-way {shots}-shot" + (f", {unlabeled} unlabeled" if unlabeled else "")
        accuracy = f"{float(cells['--Net', column]['accuracy']):.1f}"
        rows[column] = [name, accuracy, _gap(cells["EP at test", column])]
    return rows


def imagenetfs() -> str:
    """What EP adds to the generated weights, by the number of exemplars: here and as printed."""
    cells = {
        line["column"]: line
        for line in lines_of("demo-3-seeds/imagenetfs")
        if line["row"] == "wdae-gnn-ep" and line["difference"]
    }
    printed = {
        place[1:]: float(str(cell["accuracy"]))
        for place, cell in read_printed(ROOT / "config/paper/imfs.csv").items()
    }
    shots = [column.removeprefix("nov") for column in cells if column.startswith("nov")]
    text = [f"| classes | {' | '.join(f'K = {shot}' for shot in shots)} |"]
    text.append("|---" * (1 + len(shots)) + "|")
    for name, column in (("novel", "nov"), ("all", "all")):
        places = [f"{column}{shot}" for shot in shots]
        shown = [_gap(cells[place], 2) for place in places]
        text.append(f"| {name} | {' | '.join(shown)} |")
        theirs = [printed["wDAE-GNN+EP", place] - printed["wDAE-GNN", place] for place in places]
        text.append(f"| {name}, as the paper prints | {' | '.join(f'{x:+.2f}' for x in theirs)} |")
    return "\n".join(text)


def _gap(cell: dict[str, str], digits: int = 1) -> str:
    """A difference and its interval."""
    gap, width = float(cell["difference"]), float(cell["difference_interval"])
    return f"{gap:+.{digits}f} ± {width:.{digits}f}"


# Figure, measure, what it is after, and words.
MOONS, BOUNDARY = "two-moons", "decision-boundary"
MEASURES = (
    (MOONS, "total-variance", "propagated", "two moons: variance of all points"),
    (MOONS, "total-variance", "row-normalized", "the same, with normalized rows"),
    (
        MOONS,
        "relative-nearest",
        "propagated",
        "two moons: distance to the nearest point, in standard deviations",
    ),
    (BOUNDARY, "nearest-length", "propagated", "boundary of the nearest point: length"),
    (BOUNDARY, "nearest-curvature", "propagated", "curvature"),
    (BOUNDARY, "labels-length", "propagated", "boundary of label propagation: length"),
    (BOUNDARY, "labels-curvature", "propagated", "curvature"),
    (BOUNDARY, "prototypes-curvature", "propagated", "boundary between prototypes: curvature"),
)


def smoothness() -> str:
    """The numbers of the paper's figures of smoothness, before and after propagation."""
    text = ["| measure | before | after | difference |", "|---|---|---|---|"]
    for figure, measure, after, said in MEASURES:
        numbers = {line["name"]: line for line in lines_of(f"demo-main/{figure}-numbers")}
        two = (float(numbers[f"{measure}-{each}"]["value"]) for each in ("original", after))
        middle = f"{measure}-{after}-difference"
        gap = numbers[middle if middle in numbers else f"{measure}-difference"]
        width = (float(gap["high"]) - float(gap["low"])) / 2
        shown = " | ".join(f"{value:.3f}" for value in two)
        text.append(f"| {said} | {shown} | {float(gap['value']):+.3f} ± {width:.3f} |")
    return "\n".join(text)


def compared() -> str:
    """The compared methods, trained here, and their differences to EPNet."""
    return _compared("demo-compared", ("mini", "tiered"))


def compared_beside() -> str:
    """What that table has not: other episodes, and training images that are augmented."""
    others = (line for line in lines_of("demo-newer/episodic") if line["protocol"] != "5way-1shot")
    lines = [
        *(("", line) for line in others),
        *((", augmented", line) for line in lines_of("demo-augmented/episodic")),
    ]
    return _episodic_tests(sorted(lines, key=lambda pair: -float(pair[1]["accuracy"])))


def _episodic_tests(lines: Iterable[tuple[str, dict[str, str]]]) -> str:
    """Tests of compared methods, each with a note on its training."""
    text = [
        "| method | episodes | accuracy | steps | seconds of training |",
        "|---|---|---|---|---|",
    ]
    for note, line in lines:
        _, backbone, recipe, _ = line["network"].split("/")
        place = f"{recipe} ({backbone}){note} | {line['protocol']}"
        numbers = f"{float(line['accuracy']):.1f} | {int(line['steps']):,} | {line['seconds']}"
        text.append(f"| {place} | {numbers} |")
    return "\n".join(text)


def photographs_groups() -> str:
    """A method of each other group on the photographs, with narrowed networks."""
    return _episodic_tests(("", line) for line in lines_of("grocery-groups/episodic"))


def photographs() -> str:
    """The same on photographs."""
    return _compared("grocery-equal-time", ("mini",))


def _compared(run: str, data: tuple[str, ...]) -> str:
    cells = {
        (line["block"], line["row"], line["column"]): line for line in lines_of(f"{run}/compared")
    }
    rows = list(dict.fromkeys((block, row) for block, row, _ in cells))
    several = len({block for block, _ in rows}) > 1
    head, columns = ["network"] * several + ["method", "assumes", "parameters"], []
    for dataset, shots in itertools.product(data, (1, 5)):
        columns.append(f"{dataset[:4]}{shots}")
        named = f"{dataset}, {shots}-shot" if len(data) > 1 else f"{shots}-shot"
        head += [named, "to EPNet"] if dataset == "mini" else [named]
    head.append("seconds of training")
    text = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for block, row in rows:
        found = [cells[block, row, column] for column in columns]
        shown = [block] * several
        shown += [row, found[0]["assumes"], f"{int(found[0]['parameters']):,}"]
        for column, cell in zip(columns, found, strict=True):
            shown.append(f"{float(cell['accuracy']):.1f} ± {float(cell['interval']):.1f}")
            if column.startswith("mini"):
                shown.append(_gap(cell) if cell["difference"] else "")
        seconds = sum(float(cell["training_seconds"]) for cell in found) / len(found)
        text.append(f"| {' | '.join(shown)} | {seconds:.0f} |")
    return "\n".join(text)


def times() -> str:
    """How long commands took, from docs/results/times/times.csv."""
    text = ["| command | what | jobs | time | processor time | on | version |", "|---" * 7 + "|"]
    for line in lines_of("times/times"):
        wall, processor = (_minutes(line[name]) for name in ("seconds", "processor_seconds"))
        command = f"`{line['command']}`"
        where = f"{line['machine']} | {line['revision']}"
        text.append(
            f"| {command} | {line['what']} | {line['jobs']} | {wall} | {processor} | {where} |"
        )
    return "\n".join(text)


def _minutes(seconds: str) -> str:
    minutes, rest = divmod(round(float(seconds)), 60)
    return f"{minutes} min {rest} s"


def leaks() -> str:
    """What habits of official protocols are worth."""
    columns = {
        "mini1": "1-shot", "mini5": "5-shot",
        "mini1-one": "1-shot, one query", "mini5-one": "5-shot, one query",
    }  # fmt: skip
    return _differences("leaks", columns)


def maml() -> str:
    """MAML through its steps, in first order, and ANIL."""
    return _differences("maml", {"mini1": "1-shot", "mini5": "5-shot"})


def _differences(name: str, columns: dict[str, str]) -> str:
    """Each row's accuracies, and below them their differences to the first row of its block."""
    cells = {
        (line["block"], line["row"], line["column"]): line
        for line in lines_of(f"demo-leaks/{name}")
    }
    text = [f"| | | {' | '.join(columns.values())} |", "|---" * (2 + len(columns)) + "|"]
    for block, row in dict.fromkeys((block, row) for block, row, _ in cells):
        found = [cells[block, row, column] for column in columns]
        shown = [f"{float(c['accuracy']):.1f} ± {float(c['interval']):.1f}" for c in found]
        text.append(f"| {block} | {row} | {' | '.join(shown)} |")
        if found[0]["difference"]:
            gaps = [_gap(c).replace("-0.0", "+0.0") for c in found]
            text.append(f"| | *difference* | {' | '.join(gaps)} |")
    return "\n".join(text)


def readings() -> str:
    """What four readings of the text say of one network while it trains."""
    epochs = ("1", "2", "5", "10")
    after = f"after epoch {', '.join(epochs)}"
    text = [
        f"| kernel width | query logits | validation loss {after} | accuracy after these, % "
        "| gradient of L_p, times the norm of the features |",
        "|---|---|---|---|---|",
    ]
    protocols = {("deviation", "log-scores"): "`official`, `paper`"}
    protocols["variance", "scores"] = "`paper-literal`"
    judged: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for line in lines_of("readings/judged"):
        judged.setdefault((line["kernel_width"], line["query_logits"]), {})[line["epoch"]] = line
    for (width, logits), lines in judged.items():
        known = protocols.get((width, logits))
        losses = ", ".join(f"{float(lines[epoch]['loss']):.4f}" for epoch in epochs)
        accuracies = ", ".join(f"{float(lines[epoch]['accuracy']):.0f}" for epoch in epochs)
        gradients = sorted(float(line["gradient"]) for line in lines.values())
        span = f"{gradients[0]:.2g} to {gradients[-1]:.2g}"
        named = f"{logits} ({known})" if known else logits
        text.append(f"| {width} | {named} | {losses} | {accuracies} | {span} |")
    return "\n".join(text)


def readings_trained() -> str:
    """How trainings by three protocols went, and when their rate fell."""
    text = [
        "| recipe | rate first fell after epoch | best validation accuracy, % |",
        "|---|---|---|",
    ]
    for line in lines_of("readings/trained"):
        changed = line["recipe"] == "epnet-paper" and line["bandwidth"] == "var"
        named = f"`{line['recipe']}`" + (" with the variance" if changed else "")
        text.append(f"| {named} | {line['rate_fell']} | {float(line['accuracy']):.1f} |")
    return "\n".join(text)


MAKERS: dict[str, Callable[[], str]] = {
    "batch-epochs": batch_epochs,
    "claims": claims,
    "classifiers": classifiers,
    "compared": compared,
    "compared-beside": compared_beside,
    "each-claim": each_claim,
    "epnet-and-net": epnet_and_net,
    "half-the-epochs": half_the_epochs,
    "imagenetfs": imagenetfs,
    "leaks": leaks,
    "maml": maml,
    "mini-ablation": mini_ablation,
    "mini-classifiers": mini_classifiers,
    "mini-effects": mini_effects,
    "mini-images": mini_images,
    "mini-placement": mini_placement,
    "mini-placement-pretrained": mini_placement_pretrained,
    "mini-pretraining": mini_pretraining,
    "mini-ways": mini_ways,
    "mini-with-ep": mini_with_ep,
    "photographs": photographs,
    "photographs-classifiers": photographs_classifiers,
    "photographs-groups": photographs_groups,
    "photographs-placement": photographs_placement,
    "picks": picks,
    "placement": placement,
    "readings": readings,
    "readings-trained": readings_trained,
    "rounding": rounding,
    "smoothness": smoothness,
    "times": times,
    "with-ep": with_ep,
}


def rewritten(page: str) -> str:
    """A page with its tables made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{MAKERS[found[2]]()}\n{found[3]}", page)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", nargs="?", choices=["take"])
    parser.add_argument("scale", nargs="?", default="demo")
    parser.add_argument("--as", dest="name", help="its name in docs/results, if it has another")
    parser.add_argument("--command", default="snakemake --cores 2 all", help="what made it")
    asked = parser.parse_args()
    if asked.action == "take":
        take(asked.scale, asked.name or asked.scale, asked.command)
    for name in PAGES:
        page = ROOT / name
        page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
