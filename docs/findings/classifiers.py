"""Tables of classifiers on frozen features, and of where embedding propagation stands."""

from collections.abc import Callable

from cells import ROOT, Line, accuracy, cells_of, gap, markdown, rows_of, short

from epcore.commands.classify import methods_of

COLUMNS = {
    "mini1": "1-shot",
    "mini1-dirichlet": "1-shot, Dirichlet",
    "mini5": "5-shot",
    "mini5-dirichlet": "5-shot, Dirichlet",
}
SHORT = (
    *("EP", "label-propagation", "nearest-mean", "simpleshot", "logistic-regression"),
    *("soft-k-means", "laplacian-shot", "tim", "alpha-tim", "pt-map", "ilpc"),
)
PICKS = {
    "EP": "**EP + label propagation**",
    "label-propagation": "label propagation without EP",
    "nearest-mean": "nearest class mean",
    "logistic-regression": "logistic regression",
    "soft-k-means": "soft k-means",
    "alpha-tim": "alpha-TIM",
    "tim": "TIM",
    "pt-map": "PT-MAP",
}


def picks() -> str:
    """Fewer classifiers, on mini-ImageNet and photographs: differences to EP + LP."""
    columns = {"mini1": "1-shot", "mini1-dirichlet": "Dirichlet", "mini5": "5-shot"}
    head, runs = ["classifier"], []
    for run, data in {"mini-cpu": "*mini*", "grocery": "photos"}.items():
        head += [f"{data}, {column}" for column in columns.values()]
        runs.append(cells_of(f"{run}/classifiers", "--Net"))
    rows = []
    for row, name in PICKS.items():
        found = [cells[row, column] for cells in runs for column in columns]
        rows.append([name, *(gap(cell) or short(cell["accuracy"]) for cell in found)])
    return markdown(head, rows)


def classifiers() -> str:
    """Accuracy of each classifier on the features of --Net, the best of each column in bold."""
    return _accuracies("mini-cpu", accuracy)


def mini_classifiers() -> str:
    """The same of some, with their differences to EP + LP."""
    return _accuracies("mini-cpu", _accuracy_and_gap, SHORT)


def photographs_classifiers() -> str:
    """The same on photographs, of one training."""
    return _accuracies("grocery", _accuracy_and_gap, SHORT)


def with_ep() -> str:
    """What embedding propagation in front adds to each classifier on the features of --Net."""
    return _gains("mini-cpu")


def mini_with_ep() -> str:
    """The same of some."""
    return _gains("mini-cpu", SHORT[1:])


def _accuracy_and_gap(cell: Line) -> str:
    """The first row is the one that others are compared with."""
    return short(cell["accuracy"]) + (f" ({gap(cell)})" if cell["difference"] else "")


def _accuracies(run: str, form: Callable[[Line], str], only: tuple[str, ...] = ()) -> str:
    cells = cells_of(f"{run}/classifiers", "--Net")
    shown_rows = only or rows_of(cells)
    best = {c: max(float(cells[row, c]["accuracy"]) for row in shown_rows) for c in COLUMNS}
    rows = []
    for row in shown_rows:
        entry, label = (
            ("ep+label-propagation", "EP + label propagation") if row == "EP" else (row, row)
        )
        shown = [label, _assumes(entry)]
        for column in COLUMNS:
            cell = cells[row, column]
            top = float(cell["accuracy"]) == best[column]
            shown.append(f"**{form(cell)}**" if top else form(cell))
        rows.append(shown)
    return markdown(["classifier", "assumes", *COLUMNS.values()], rows)


def _gains(run: str, only: tuple[str, ...] = ()) -> str:
    cells = cells_of(f"{run}/with-ep", "--Net")
    rows = [
        [row, _assumes(f"ep+{row}"), *(gap(cells[row, column]) for column in COLUMNS)]
        for row in only or rows_of(cells)
    ]
    return markdown(["classifier", "assumes", *COLUMNS.values()], rows)


def _assumes(entry: str) -> str:
    return methods_of([entry], ROOT / "config")[entry].assumptions(unlabeled=False)


def placement() -> str:
    """Embedding propagation on or off in each phase, minus --Net."""
    return _placement("demo-3-seeds")


def photographs_placement() -> str:
    """The same on photographs, of one training."""
    return _placement("grocery")


def mini_placement() -> str:
    """The same on mini-ImageNet."""
    return _placement("mini-cpu")


def mini_placement_pretrained() -> str:
    """Embedding propagation in pretraining and at test, without fine-tuning, on mini-ImageNet."""
    return _placement("mini-cpu", "placement-pretrained", ("pretraining", "test"))


def _placement(
    run: str,
    table: str = "placement",
    phases: tuple[str, ...] = ("pretraining", "fine-tuning", "test"),
) -> str:
    cells, rows = cells_of(f"{run}/{table}"), []
    for row in rows_of(cells):
        named = [phase for phase, on in zip(phases, row, strict=True) if on == "1"]
        shown = [", ".join(named) or "nothing"]
        for column in ("mini1", "mini5"):
            shown += [short(cells[row, column]["accuracy"]), gap(cells[row, column])]
        rows.append(shown)
    return markdown(["EP in", "1-shot", "difference", "5-shot", "difference"], rows)


TABLES = [
    classifiers,
    mini_classifiers,
    mini_placement,
    mini_placement_pretrained,
    mini_with_ep,
    photographs_classifiers,
    photographs_placement,
    picks,
    placement,
    with_ep,
]
