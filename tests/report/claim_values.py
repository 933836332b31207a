"""What the printed cells give for each claim, found by hand and by another program."""

import itertools

BLOCKS, COLUMNS = ("CONV-4", "RESNET-12", "WRN-28-10"), ("mini1", "mini5", "tier1", "tier5")
GROUPS = (1, 5, 9, 13)  # the first experiment of each: none, ROT, EFT, both
# Of each group: what EP adds to prototypes and to LP, what LP adds without EP and with it, both.
GAINS = {
    1: (3.26, 2.35, 3.83, 2.92, 6.18),
    5: (2.80, 2.17, 2.55, 1.92, 4.72),
    9: (2.09, 1.42, 2.64, 1.97, 4.06),
    13: (1.54, 1.50, 2.43, 2.39, 3.93),
}
ROTATION = {1: 1.26, 2: 0.8, 3: -0.02, 4: -0.2, 9: 0.63, 10: 0.08, 11: 0.42, 12: 0.5}
FINETUNING = {1: 4.72, 2: 3.55, 3: 3.53, 4: 2.6, 5: 4.09, 6: 2.83, 7: 3.97, 8: 3.3}
UNLABELED = (5.81, 2.47, 6.66, 1.79, 8.86, 3.01, 5.26, 1.13, 8.48, 3.71, 5.19, 0.98)
AT_TEN = {"RESNET-12 mini": 1.95, "RESNET-12 tier": 0.85, "WRN-28-10 mini": 1.99,
          "WRN-28-10 tier": 0.1}  # fmt: skip
FEW = ("nov1", "nov2", "nov5", "nov10", "nov20", "all1", "all2", "all5", "all10", "all20")
DENOISED = (2.07, 2.46, 2.59, 2.25, 1.68, 1.77, 2.23, 2.36, 2.18, 1.39)
LABELED = {
    "EGNN": (63.62, 64.32, 66.37, 76.37),
    "--Net_SSL": (58.52, 64.46, 67.81, 57.18),
    "EPNet_SSL": (60.66, 67.08, 68.74, 59.32),
}
SHOTS = {
    ("RESNET-12", "mini"): (66.5, 81.06, 85.39),
    ("RESNET-12", "tier"): (76.53, 87.32, 88.39),
    ("WRN-28-10", "mini"): (70.74, 84.34, 87.03),
    ("WRN-28-10", "tier"): (78.5, 88.36, 89.46),
    ("RESNET-12", "cub"): (82.85, 91.32, 92.68),
    ("WRN-28-10", "cub"): (87.75, 94.03, 93.99),
}


def cells(values, of, columns=COLUMNS, blocks=BLOCKS):
    """By block and column, of a row or of one row over another; the last block may be shorter."""
    name = "{} {}: " + of if " over " in of else "{}/" + of + "/{}"
    names = (name.format(*place) for place in itertools.product(blocks, columns))
    names = (name.removeprefix("-/").removeprefix("- ") for name in names)
    return dict(zip(names, values, strict=False))


def gains(measure):
    """Values of the ablation's claims: measure(group, its gains) gives them by the experiments."""
    found = {}
    for group in GROUPS:
        found |= measure(group, GAINS[group])
    return {f"CONV-4 mini1: {name}": value for name, value in found.items()}


def rises():
    """From 1 shot to 5 to 10."""
    found = {}
    for (block, data), (one, five, ten) in SHOTS.items():
        table = "cub" if data == "cub" else "main"
        found[f"{block} EPNet: {data}5 over {data}1"] = five - one
        found[f"{block} EPNet: ten-shot/{data}10 over {table}/{data}5"] = ten - five
    return found


EP_OVER_NONE = "wDAE-GNN+EP over wDAE-GNN"
VALUES = {
    "C01": cells([4.49, -3.42, 2.44, -6.24, -0.69, 0.42, 3.32, 1.89, 5.81, 1.16, 7.97, 3.38],
                 "EPNet"),
    "C01b": cells([3.55, 1.16, 5.29, 2.93], "EPNet", blocks=["WRN-28-10"]),
    "C02": {
        "cub1: RESNET-12/EPNet over RESNET-18/Robust-20++": 14.17,
        "cub5: RESNET-12/EPNet over RESNET-18/Robust-20++": 8.11,
        "WRN-28-10/EPNet/cub1": 7.07, "WRN-28-10/EPNet/cub5": 3.18,
    },
    "C03": cells([2.14, 0.38, 2.37, 0.61, 0.84, -0.22, 3.93, 1.63, 4.76, 2.12, 4.46, 2.33],
                 "EPNet over --Net"),
    "C04": {"WRN-28-10 mini1: EPNet over --Net": 4.76},
    "C05": cells(DENOISED, EP_OVER_NONE, FEW, "-") | {"mean": 2.098},
    "C06": cells(DENOISED, EP_OVER_NONE, FEW, "-"),
    "C07": cells([2.07, 2.46, 2.59, 2.25, 1.38, 1.77, 2.23, 2.36, 1.78, 0.19],
                 "wDAE-GNN+EP", FEW, "-"),
    "C08": cells(UNLABELED, "EPNet_SSL 100 over EPNet"),
    "C09": cells([12.35, 9.0, 10.89, 4.69, 5.26, 5.37, 4.09, 3.25, 16.2, 6.86], "EPNet_SSL 100"),
    "C10": cells([1.39, 0.12, 1.62, 1.46, 1.94, 0.9, 1.53, 0.39, 1.52, 1.75, 1.66, 1.14],
                 "EPNet_SSL 100 over --Net_SSL 100"),
    "C12": {"CONV-4 40: EPNet_SSL over EGNN": 2.76},
    "C13": {"CONV-4 40: EPNet_SSL over EGNN": 2.76, "CONV-4 60: EPNet_SSL over EGNN": 2.37},
    "C14": {
        "CONV-4: ssl-partial/--Net_SSL/100 over main/--Net/mini5": 57.18 - 72.57,
        "CONV-4: ssl-partial/EPNet_SSL/100 over main/EPNet/mini5": 59.32 - 72.95,
    },
    "C14b": {
        f"CONV-4 {row}: {more} over {less}": after - before
        for row, values in LABELED.items()
        for (less, before), (more, after) in itertools.pairwise(
            zip((20, 40, 60, 100), values, strict=True)
        )
    },
    "C15a": gains(
        lambda n, of: {f"exp{n + 3} over exp{n + 1}": of[3], f"exp{n + 3} over exp{n + 2}": of[1]}
    ),
    "C15b": gains(
        lambda n, of: {f"(exp{n + 3} over exp{n + 2}) over (exp{n + 1} over exp{n})": of[1] - of[0]}
    ),
    "C16": gains(
        lambda n, of: {
            f"(exp{n + 3} over exp{n}) over (exp{first + 4} over exp{first})": of[4] - rotation
            for first, rotation in ROTATION.items()
        }
    ),
    "C17": {f"CONV-4 mini1: exp{n + 8} over exp{n}": v for n, v in FINETUNING.items()},
    "C18": {
        "CONV-4 mini1: ablation/exp16 over main/EPNet": 58.85 - 59.32,
        "CONV-4 mini1: ablation/exp15 over main/--Net": 57.35 - 57.18,
    },
    "C19": {
        "RESNET-12 mini10: EPNet over TADAM": 4.59,
        "RESNET-12 mini10: EPNet over Discriminative": 6.89,
    },
    "C20": {
        f"{block}: (ssl-large/EPNet_SSL 100/{data}1 over ssl-large/EPNet/{data}1) over "
        f"(ten-shot/EPNet_SSL 100/{data}10 over ten-shot/EPNet/{data}10)":
        cells(UNLABELED, "x")[f"{block}/x/{data}1"] - gain
        for place, gain in AT_TEN.items()
        for block, data in [place.split()]
    },
    "C21": rises(),
    "C22": cells([3.3, 1.24, 2.9, 1.12, 2.05, 0.65], "EPNet",
                 ["10w1", "10w5", "15w1", "15w5", "20w1", "20w5"], ["WRN-28-10"]),
    "C23": {"WRN-28-10/ManifoldMixup/20w1": 36.5, "WRN-28-10/EPNet/20w1": 38.55},
    "C24": {"RESNET-12 mini5: full over offdiag": 75.95 - 74.66,
            "RESNET-12 mini5: offdiag over diag": 74.66 - 73.8},
    "C25": cells([5.81, 1.16, 7.07, 3.18], "EPNet over ManifoldMixup",
                 ["mini1", "mini5", "cub1", "cub5"], ["WRN-28-10"]),
    "C26": {"": 45.25},
    "C29": cells([12.35, 10.89, 5.26, 4.09, 16.2], "EPNet_SSL 100", ["mini1", "tier1"]),
    "C30": {"": 122.4},
    "C31": {"": 680.83},
    "C32": {f"{block} EPNet {column}: ssl-large over main": 0
            for block in BLOCKS for column in COLUMNS},
}  # fmt: skip
VALUES["C11"] = VALUES["C10"]  # both are of EPNet_SSL over --Net_SSL
