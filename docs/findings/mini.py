"""Tables of mini-ImageNet itself."""

import itertools
import re
from typing import Any

import numpy as np
from cells import (
    ROOT,
    accuracy,
    cells_of,
    gap,
    lines_of,
    markdown,
    mean_gap,
    short,
    unbroken,
)  # fmt: skip

from epcore.report.printed import read_printed

Marks = tuple[bool, bool, bool]  # whether a row of the ablation has EFT, LP and EP
GAINS = ["test", "--Net", "EP at test", "EPNet", "EPNet less EP at test"]


def mini_main() -> str:
    """EPNet and --Net in the paper's main table, and what the paper prints."""
    cells, rows = cells_of("mini-cpu/main", "CONV-4"), []
    for column, name in (("mini1", "1-shot"), ("mini5", "5-shot")):
        net, epnet = (cells[row, column] for row in ("--Net", "EPNet"))
        theirs = [f"{gain:+.1f}" for gain in _printed_gains(column)]
        rows.append([name, accuracy(net), accuracy(epnet), gap(epnet), *theirs])
    head = ["", "--Net", "EPNet", "EPNet minus --Net", "as printed", "with the authors' re-run"]
    return markdown(head, rows)


def answer() -> str:
    """Whether EP helps, in two sentences."""
    main, (one, five) = cells_of("mini-cpu/main", "CONV-4"), ("mini1", "mini5")
    classifiers = cells_of("mini-cpu/classifiers", "--Net")
    at_test = [-float(classifiers["label-propagation", c]["difference"]) for c in (one, five)]
    widths = [classifiers["label-propagation", c]["difference_interval"] for c in (one, five)]
    small = [f"{gain:+.1f} ± {short(width)}" for gain, width in zip(at_test, widths, strict=True)]
    printed, rerun = _printed_gains(one)
    return unbroken(
        f"**With one shot, yes; with five, hardly.** EP at test adds {small[0]} points to label "
        f"propagation with one shot and {small[1]} with five. EPNet, which has EP in training too, "
        f"gains {gap(main['EPNet', one])} and {gap(main['EPNet', five])} over --Net. With one "
        f"shot the paper prints {printed:+.1f}. The authors' repository later gave a lower "
        f"accuracy of EPNet, which leaves {rerun:+.1f}."
    )


def _printed_gains(column: str) -> tuple[float, float]:
    """EPNet minus --Net as printed, and with the authors' re-run, which has EPNet alone."""
    paper = read_printed(ROOT / "config/paper/main.csv")
    rerun = read_printed(ROOT / "config/paper/readme-rerun.csv")
    net, printed = (
        float(str(paper["CONV-4", row, column]["accuracy"])) for row in ("--Net", "EPNet")
    )
    (again,) = (
        float(str(cell["accuracy"]))
        for (block, _, at), cell in rerun.items()
        if (block, at) == ("CONV-4", column)
    )
    return printed - net, again - net


def mini_alpha() -> str:
    """Validation accuracy over both alphas, EP at test, less that of the authors' pair."""
    lines = lines_of("mini-cpu/alpha")
    shown = ("0.1000", "0.2000", "0.5000", "0.8000", "0.9500")
    rows = []
    for alpha in dict.fromkeys(line["embedding_alpha"] for line in lines):
        of_alpha = {line["label_alpha"]: line for line in lines if line["embedding_alpha"] == alpha}
        gaps = [gap(of_alpha[label]) for label in shown]
        rows.append([f"{float(alpha):g}", *gaps])
    heads = [f"LP {float(label):g}" for label in shown]
    return markdown(["alpha of EP", *heads], rows)


def mini_ablation() -> str:
    """The paper's ablation without the rotation loss, beside its numbers."""
    rows = []
    for marks, line in _ablation("ablation").items():
        ticks = ["✓" if on else "" for on in marks]
        rows.append([*ticks, accuracy(line), short(line["paper_accuracy"])])
    return markdown(["EFT", "LP", "EP", "1-shot", "as printed"], rows)


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
    effects: dict[str, list[tuple[Marks, Marks]]] = {
        "EP, without LP and EFT": [((False, False, True), (False, False, False))],
        "EP, with LP": [((False, True, True), (False, True, False))],
        "EP, with EFT": [((True, False, True), (True, False, False))],
        "EP, with LP and EFT": [((True, True, True), (True, True, False))],
        "LP, mean of the four": [((e, True, p), (e, False, p)) for e in both for p in both],
        "EFT, mean of the four": [
            ((True, lp, ep), (False, lp, ep)) for lp, ep in itertools.product(both, both)
        ],
    }
    rows = []
    for name, pairs in effects.items():
        ours = np.mean([by_seed[on] - by_seed[off] for on, off in pairs], axis=0)
        theirs = np.mean([printed[on] - printed[off] for on, off in pairs])
        rows.append([name, mean_gap(ours), f"{theirs:+.1f}"])
    return markdown(["effect of", "here", "as printed"], rows)


def _ablation(name: str, several: bool = False) -> dict[Marks, Any]:
    """What a row has -> its line, or its lines."""
    lines: dict[Marks, Any] = {}
    for line in lines_of(f"mini-cpu/{name}"):
        number = int(line["row"].removeprefix("exp")) - 1  # EP + 2 LP + 4 ROT + 8 EFT
        marks = bool(number & 8), bool(number & 2), bool(number & 1)
        if line["accuracy"]:
            lines[marks] = [*lines.get(marks, []), line] if several else line
    return lines


def mini_ways() -> str:
    """EP at test, and everywhere, with more ways, minus --Net."""
    return markdown(GAINS, _gains("more-ways").values())


def mini_images() -> str:
    """The same with ten shots and unlabeled images, beside what the paper prints of EPNet."""
    paper = read_printed(ROOT / "config/paper/ssl100.csv")
    rows = []
    for column, row in _gains("more-images").items():
        theirs = "-"
        if shots := re.match(r"5w(\d+)-u", column):
            ours, without = (
                float(str(paper["CONV-4", name, f"mini{shots[1]}"]["accuracy"]))
                for name in ("EPNet_SSL", "--Net_SSL")
            )
            theirs = f"{ours - without:+.1f}"
        rows.append([*row, theirs])
    return markdown([*GAINS, "EPNet as printed"], rows)


def _gains(table: str) -> dict[str, list[str]]:
    """A column of more-ways or more-images -> its name, --Net, and what EP adds."""
    cells = cells_of(f"mini-cpu/{table}")
    by_seed: dict[tuple[str, str], list[float]] = {}
    for line in lines_of(f"mini-cpu/{table}-by-seed"):
        by_seed.setdefault((line["row"], line["column"]), []).append(float(line["accuracy"]))
    rows = {}
    for column in dict.fromkeys(column for _, column in cells):
        ways, shots, unlabeled = re.fullmatch(r"(\d+)w(\d+)(?:-u(\d+))?", column).groups()
        name = f"{ways}-way {shots}-shot" + (f", {unlabeled} unlabeled" if unlabeled else "")
        gains = [gap(cells[row, column]) for row in ("EP at test", "EPNet")]
        everywhere, at_test = (np.array(by_seed[row, column]) for row in ("EPNet", "EP at test"))
        net = short(cells["--Net", column]["accuracy"])
        rows[column] = [name, net, *gains, mean_gap(everywhere - at_test)]
    return rows


def mini_interpolation() -> str:
    """How steep class probabilities between two images are, over three trainings of each."""
    runs = [
        {line["name"]: float(line["value"]) for line in lines_of(f"{run}/interpolation")}
        for run in ("mini-cpu", "mini-cpu-seed-1", "mini-cpu-seed-2")
    ]
    names = {"steepest-slope": "steepest slope", "slope-variation": "variation of the slope"}
    rows = []
    for reading, measure in itertools.product(("features", "embeddings"), names):
        epnet, net, differences = (
            np.array([run[f"{reading}-{measure}-{what}"] for run in runs])
            for what in ("epnet", "net", "difference")
        )
        means = [f"{values.mean():.2f}" for values in (epnet, net)]
        rows.append([f"between {reading}", names[measure], *means, mean_gap(differences, digits=2)])
    return markdown(["line", "mean over 200 pairs", "EPNet", "--Net", "difference"], rows)


def mini_pretraining() -> str:
    """Validation accuracy with EP less without it, epoch by epoch."""
    accuracies = {
        (line["recipe"], line["seed"], int(line["epoch"])): 100 * float(line["val_accuracy"])
        for line in lines_of("mini-gpu/pretraining")
    }
    seeds = sorted({seed for _, seed, _ in accuracies})
    rows = []
    for epoch in (0, 1, 3, 5, 7):
        row = [str(epoch + 1)]
        for without, with_ep in (("net", "epnet"), ("none", "ep")):
            base = np.array([accuracies[without, seed, epoch] for seed in seeds])
            other = np.array([accuracies[with_ep, seed, epoch] for seed in seeds])
            row += [f"{base.mean():.1f}", mean_gap(other - base)]
        rows.append(row)
    head = ["after epoch", "--Net", "EPNet minus --Net", "no rotation loss: --Net", "difference"]
    return markdown(head, rows)


TABLES = [
    answer,
    mini_ablation,
    mini_alpha,
    mini_effects,
    mini_images,
    mini_interpolation,
    mini_main,
    mini_pretraining,
    mini_ways,
]
