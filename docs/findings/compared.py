"""Tables of the compared methods."""

import itertools
from collections.abc import Iterable

from cells import Line, accuracy, cells_of, gap, lines_of, markdown, short

# A block of the demo's table -> its network.
NETWORKS = {
    "CONV-4": "Conv-4",
    "RESNET-12": "ResNet-12, an eighth as wide",
    "WRN-28-10": "WRN-28-10, a fifth as wide and a quarter as deep",
}


def compared() -> str:
    """The compared methods, trained here, and their differences to EPNet."""
    return _compared("demo-compared", {"mini": "", "tiered": "by script, "})


def photographs() -> str:
    """The same on photographs."""
    return _compared("grocery-equal-time", {"mini": ""})


def _compared(run: str, data: dict[str, str]) -> str:
    cells = {
        (line["block"], line["row"], line["column"]): line for line in lines_of(f"{run}/compared")
    }
    places = list(dict.fromkeys((block, row) for block, row, _ in cells))
    several = len({block for block, _ in places}) > 1
    head, columns = ["method", "assumes"], []
    for dataset, shots in itertools.product(data, (1, 5)):
        columns.append(f"{dataset[:4]}{shots}")
        named = f"{data[dataset]}{shots}-shot"
        head += [named, "to EPNet"] if dataset == "mini" else [named]
    head.append("seconds")
    rows, above = [], ""
    for block, row in places:
        if several and block != above:
            rows.append([f"**{NETWORKS[block]}**", *[""] * (len(head) - 1)])
            above = block
        found = [cells[block, row, column] for column in columns]
        shown = [row, found[0]["assumes"]]
        for column, cell in zip(columns, found, strict=True):
            shown += [accuracy(cell), gap(cell)] if column.startswith("mini") else [accuracy(cell)]
        seconds = sum(float(cell["training_seconds"]) for cell in found) / len(found)
        rows.append([*shown, f"{seconds:.0f}"])
    return markdown(head, rows)


def compared_beside() -> str:
    """Accuracies with episodes that no table of the demo has."""
    of_table = {line["protocol"] for line in lines_of("demo-compared/compared")}
    of_leaks = {line["protocol"] for line in lines_of("demo-compared/leaks")}
    lines = lines_of("demo-compared/episodic")
    return _episodic_tests(line for line in lines if line["protocol"] not in of_table | of_leaks)


def unlabeled() -> str:
    """LST with and without unlabeled images, beside MTL; TransMatch with many of them."""
    return _episodic_tests(lines_of("demo-unlabeled/episodic"))


def photographs_groups() -> str:
    """A method of each other group on the photographs, with narrowed networks."""
    return _episodic_tests(lines_of("grocery-groups/episodic"))


def _episodic_tests(lines: Iterable[Line]) -> str:
    """Tests of compared methods."""
    rows = []
    for line in lines:
        _, backbone, recipe, _ = line["network"].split("/")
        numbers = short(line["accuracy"]), f"{int(line['steps']):,}", line["seconds"]
        rows.append([f"{recipe} ({backbone})", line["protocol"], *numbers])
    return markdown(["method", "episodes", "accuracy", "steps", "seconds of training"], rows)


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
    blocks = dict.fromkeys(line["block"] for line in lines_of(f"demo-compared/{name}"))
    rows = []
    for block in blocks:
        cells = cells_of(f"demo-compared/{name}", block)
        for row in dict.fromkeys(row for row, _ in cells):
            found = [cells[row, column] for column in columns]
            rows.append([block, row, *map(accuracy, found)])
            if found[0]["difference"]:
                rows.append(["", "*difference*", *map(gap, found)])
    return markdown(["", "", *columns.values()], rows)


TABLES = [compared, compared_beside, leaks, maml, photographs, photographs_groups, unlabeled]
