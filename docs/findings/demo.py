"""Tables of the demo: claims, EPNet beside --Net, and what moved its numbers."""

import itertools
from collections import Counter

import numpy as np
import yaml
from cells import (
    ROOT,
    Line,
    accuracy,
    cells_of,
    gap,
    gap_by_seed,
    lines_of,
    markdown,
    mean_gap,
    rows_of,
    short,
)  # fmt: skip

from epcore.report.printed import read_printed

NETWORKS = {"conv4": "Conv-4", "resnet12": "ResNet-12", "wrn": "WRN-28-10"}
# Data set of the demo's tables -> what its characters are; the row of `placement` that is EPNet.
CHARACTERS = {"mini": "of 100 classes", "tier": "of classes by script"}
EVERYWHERE = "111"
# Column of the verdicts, and how the README and the page call the judge.
JUDGES = (
    ("printed", "by the numbers that it prints", "numbers"),
    ("printed_intervals", "by the intervals that it prints", "intervals"),
    ("this_run", "here, on *mini*ImageNet: three trainings of Conv-4", "here"),
)


def claims() -> str:
    """How many claims of the paper hold, by each judge."""
    words = ("holds", "holds in part", "undecided", "fails", "not asked")
    lines = [line for line in lines_of("mini-cpu/claims") if line["whose"] != "ours"]
    rows = []
    for column, title, _ in JUDGES:
        counts = Counter(_verdict(line, column) for line in lines)
        rows.append([title, *(str(counts[word]) for word in words)])
    return markdown(["of the paper's claims", *words], rows)


def each_claim() -> str:
    """Each claim, and what the judges say of it."""
    rows = [
        [line["id"], line["claim"], *(_verdict(line, column) for column, *_ in JUDGES)]
        for line in lines_of("mini-cpu/claims")
    ]
    return markdown(["", "claim", *(short_name for *_, short_name in JUDGES)], rows)


def _verdict(line: Line, judge: str) -> str:
    """A judge's word; where nothing speaks against an open one, it lacks cells alone."""
    if line[judge] != "open":
        return line[judge]
    return "undecided" if line[f"{judge}_breaks"] else "holds in part"


def epnet_and_net() -> str:
    """EPNet minus --Net on both data sets: of one training, and on the first of three."""
    one = [cells_of("demo-compared/compared", name.upper()) for name in NETWORKS.values()]
    three = cells_of("demo-3-seeds/placement")
    by_seed: dict[str, list[float]] = {}
    for line in lines_of("demo-3-seeds/placement-by-seed"):
        if line["row"] == EVERYWHERE:
            by_seed.setdefault(line["column"], []).append(float(line["difference"]))
    rows = []
    for (dataset, name), shots in itertools.product(CHARACTERS.items(), "15"):
        column = f"{dataset}{shots}"
        shown = [f"{-float(cells['--Net', column]['difference']):+z.1f}" for cells in one]
        if column in by_seed:
            shown.append(gap_by_seed(three[EVERYWHERE, column], by_seed[column]))
        rows.append([name, shots, *shown, *[""] * (column not in by_seed)])
    return markdown(["characters", "shots", *NETWORKS.values(), "Conv-4, three trainings"], rows)


def batch_epochs() -> str:
    """EPNet minus --Net by batch and epochs of pretraining, over three trainings."""
    columns, rows = ("grid1", "grid5"), []
    batches = {name: cells_of("batch-epochs/batch-epochs", name) for name in ("b16", "b128")}
    for block, cells in batches.items():
        for row in rows_of(cells):
            found = [cells[row, column] for column in columns]
            if found[0]["difference"]:
                shown = [f"{block.removeprefix('b')}, {row.removeprefix('EPNet ')}"]
                for cell in found:
                    net = cells[cell["baseline"], cell["column"]]
                    shown += [short(net["accuracy"]), gap_by_seed(cell, _differences(cell))]
                rows.append(shown)
    for row in rows_of(batches["b16"]):
        if row.startswith("EPNet"):
            shown = [f"16 less 128, {row.removeprefix('EPNet ')}"]
            for column in columns:
                small, large = (_differences(cells[row, column]) for cells in batches.values())
                each = ", ".join(f"{value:+z.1f}" for value in small - large)
                shown += ["", f"{mean_gap(small - large)} ({each})"]
            rows.append(shown)
    head = ["batch, epochs", "--Net, 1-shot", "difference", "--Net, 5-shot", "difference"]
    return markdown(head, rows)


def _differences(cell: Line) -> np.ndarray:
    return np.array(cell["differences"].split(), dtype=float)


def half_the_epochs() -> str:
    """Validation accuracy of the last of 7 epochs, beside that of the last of 14, by seed."""
    once, twice = (
        {
            (line["backbone"], line["recipe"], line["seed"]): 100 * float(line["val_accuracy"])
            for line in lines_of(f"{run}/pretraining")  # the last of an epoch stays
        }
        for run in ("demo-7-epochs", "demo-14-epochs")
    )
    seeds, rows = sorted({seed for _, _, seed in twice}), []
    for backbone, name in NETWORKS.items():
        for recipe, label in (("epnet", "EPNet"), ("net", "--Net")):
            short, long = ([run[backbone, recipe, seed] for seed in seeds] for run in (once, twice))
            cells = (", ".join(f"{accuracy:.1f}" for accuracy in run) for run in (short, long))
            rows.append([name, label, *cells, f"{np.mean(short) - np.mean(long):+z.1f}"])
    head = ["network", "recipe", "7 epochs, each seed", "14 epochs", "mean difference"]
    return markdown(head, rows)


def rounding() -> str:
    """What another order of rounding did to the main table: same data, seeds and settings."""
    rows = []
    for name in ("Conv-4", "ResNet-12", "WRN"):
        block = "WRN-28-10" if name == "WRN" else name.upper()
        before, after = (
            cells_of(f"{run}/main", block) for run in ("demo-earlier", "demo-rounding")
        )
        moves = [
            abs(float(after[place]["accuracy"]) - float(cell["accuracy"]))
            for place, cell in before.items()
            if cell["accuracy"]
        ]
        rows.append([name, f"{sum(moves) / len(moves):.1f}", f"{max(moves):.1f}"])
    return markdown(["network", "its accuracies moved by, mean", "at most"], rows)


def imagenetfs_methods() -> str:
    """Top-5 accuracies of every method that was run."""
    cells = cells_of("demo-3-seeds/imagenetfs")
    places = {
        f"{classes}, K = {shot}": f"{column}{shot}"
        for classes, column in (("novel", "nov"), ("all", "all"))
        for shot in (1, 5, 20)
    }
    labels = {row["name"]: row.get("label", row["name"]) for row in _rows_of_imagenetfs()}
    rows = []
    for row in dict.fromkeys(row for (row, _), cell in cells.items() if cell["accuracy"]):
        shown = [cells[row, place] for place in places.values()]
        rows.append([labels[row], *map(accuracy, shown)])
        if baseline := shown[0]["baseline"]:
            rows.append([f"*less {labels[baseline]}*", *(gap(cell, 2) for cell in shown)])
    return markdown(["method", *places], rows)


def _rows_of_imagenetfs() -> list[dict[str, str]]:
    """The rows of our blocks of the table."""
    table = yaml.safe_load((ROOT / "config/tables/imagenetfs.yaml").read_text(encoding="utf-8"))
    rows: list[dict[str, str]] = table["imagenet_fs"]["rows"]
    return rows


def imagenetfs() -> str:
    """What EP adds to the generated weights, by the number of exemplars: here and as printed."""
    cells = cells_of("demo-3-seeds/imagenetfs")
    printed = {
        place[1:]: float(str(cell["accuracy"]))
        for place, cell in read_printed(ROOT / "config/paper/imfs.csv").items()
    }
    ours = {
        column: cell
        for (row, column), cell in cells.items()
        if row == "wdae-gnn-ep" and cell["difference"]
    }
    shots = [column.removeprefix("nov") for column in ours if column.startswith("nov")]
    rows = []
    for name, column in (("novel", "nov"), ("all", "all")):
        places = [f"{column}{shot}" for shot in shots]
        rows.append([name, *(gap(ours[place], 2) for place in places)])
        theirs = [printed["wDAE-GNN+EP", place] - printed["wDAE-GNN", place] for place in places]
        rows.append([f"{name}, as the paper prints", *(f"{value:+.2f}" for value in theirs)])
    return markdown(["classes", *(f"K = {shot}" for shot in shots)], rows)


# Figure, measure, what it is after, and words.
MEASURES = (
    ("two-moons", "total-variance", "propagated", "two moons: variance of all points"),
    ("two-moons", "total-variance", "row-normalized", "the same, with normalized rows"),
    ("two-moons", "relative-nearest", "propagated",
     "two moons: distance to the nearest point, in standard deviations"),
    ("decision-boundary", "nearest-length", "propagated", "boundary of the nearest point: length"),
    ("decision-boundary", "nearest-curvature", "propagated",
     "boundary of the nearest point: curvature"),
    ("decision-boundary", "labels-length", "propagated", "boundary of label propagation: length"),
    ("decision-boundary", "labels-curvature", "propagated",
     "boundary of label propagation: curvature"),
    ("decision-boundary", "prototypes-curvature", "propagated",
     "boundary between prototypes: curvature"),
)  # fmt: skip


def smoothness() -> str:
    """The numbers of the paper's figures of smoothness, before and after propagation."""
    rows = []
    for figure, measure, after, said in MEASURES:
        numbers = {line["name"]: line for line in lines_of(f"demo/{figure}")}
        two = (float(numbers[f"{measure}-{each}"]["value"]) for each in ("original", after))
        middle = f"{measure}-{after}-difference"
        difference = numbers[middle if middle in numbers else f"{measure}-difference"]
        width = (float(difference["high"]) - float(difference["low"])) / 2
        rows.append(
            [said, *(f"{v:.3f}" for v in two), f"{float(difference['value']):+z.3f} ± {width:.3f}"]
        )
    return markdown(["measure", "before", "after", "difference"], rows)


def times() -> str:
    """How long commands took, from docs/results/times/times.csv."""
    rows = []
    for line in lines_of("times/times"):
        spans = (_minutes(line[name]) for name in ("seconds", "processor_seconds"))
        facts = line["what"], line["jobs"], *spans, line["machine"], line["revision"]
        rows.append([f"`{line['command']}`", *facts])
    return markdown(["command", "what", "jobs", "time", "processor time", "on", "version"], rows)


def _minutes(seconds: str) -> str:
    minutes, rest = divmod(round(float(seconds)), 60)
    return f"{minutes} min {rest} s"


TABLES = [
    batch_epochs,
    claims,
    each_claim,
    epnet_and_net,
    half_the_epochs,
    imagenetfs,
    imagenetfs_methods,
    rounding,
    smoothness,
    times,
]
