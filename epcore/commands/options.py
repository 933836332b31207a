"""The options of the commands that a person types."""

import argparse
from collections.abc import Callable
from pathlib import Path

from epcore import __version__
from epcore.commands.arguments import number, output_file, setting
from epcore.commands.stages import COMPUTE
from epcore.config.load import DEFAULTS

BATCH = 64  # images that a network sees at once, unless told

FETCH = """\
Gets the files that data sets are built from, and checks that they are the published ones.

A file that is already below the data root, or below the folder that the environment variable
EPCORE_MIRROR names, is used from there and not changed. What is missing is downloaded from the
first address that gives it; a download that was interrupted starts again. What may not be
downloaded by a program (ILSVRC2012) is asked for, with the steps to get it.

  epcore fetch                  what there is, how large, and what is already here
  epcore fetch cub              all files of the data set cub
  EPCORE_MIRROR=/datasets epcore fetch cifar-fs fc100
"""


def parser() -> argparse.ArgumentParser:
    """The commands for people as sub-commands; the chosen one is `command`."""
    root = argparse.ArgumentParser(
        prog="epcore",
        description="What a person types beside snakemake.",
        epilog="For the workflow (`snakemake -n -p TARGET` prints the exact commands): "
        + ", ".join(COMPUTE),
    )
    root.add_argument("--version", action="version", version=__version__)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str, description: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=description or summary,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    _add_fetch(command)
    _add_classify(command)
    _add_weights(command)
    _add_others(command)
    return root


Command = Callable[..., argparse.ArgumentParser]


def _add_fetch(command: Command) -> None:
    sub = command("fetch", "download or find the files of data sets, and verify them", FETCH)
    sub.add_argument(
        "names", nargs="*", metavar="NAME",
        help="a data set or a source of datasets.yaml; without any, what there is",
    )  # fmt: skip
    _add_settings(sub, "folder of datasets.yaml", anywhere=True)
    sub.add_argument(
        "--root", type=Path, metavar="FOLDER",
        help="where files are looked for and downloaded to (default: config.yaml's data_root)",
    )  # fmt: skip
    sub.add_argument(
        "--receipt", type=output_file(".json"), metavar="FILE",
        help="write where the files of one source are, which `epcore data` reads",
    )  # fmt: skip


CLASSIFY = """\
Classify episodes of anyone's features with any classifier, and print a table.

FEATURES.npz has the arrays `features` (n, D) and `labels` (n,) of images of novel classes; for
methods that take them also `base_mean` (D,), the mean feature of the images that the network was
trained on, and `base_weights` (C, D), the weights of its last layer. Episodes are drawn once and
kept in EPISODES.npz; where that file is, its episodes are classified and no others are drawn.
Classifiers are entries of config/classifiers.yaml, or such entries with settings of your own:
  epcore classify --features mine.npz --classifier simpleshot-l2n tim '{name: tim, scale: 5}'
`ep+` before one, as in ep+label-propagation (the paper's), puts embedding propagation in front.
What the workflow would choose on validation episodes is not chosen here: give it, or the default
counts."""


def _add_classify(command: Command) -> None:
    sub = command("classify", "classify episodes of anyone's features, and print a table", CLASSIFY)
    sub.add_argument("--features", required=True, type=Path, metavar="FEATURES.npz")
    sub.add_argument(
        "--classifier", nargs="+", default=[], metavar="NAME",
        help="which; others are compared with the first (default: ep+label-propagation, then all "
        "that can do with these features)",
    )  # fmt: skip
    _add_settings(sub, "folder of classifiers.yaml", anywhere=True)
    drawn = sub.add_argument_group("episodes")
    drawn.add_argument(
        "--episodes", type=output_file(".npz"), metavar="EPISODES.npz",
        help="file that they are read from, or drawn into (default: beside the features)",
    )  # fmt: skip
    numbers = {
        "way": (5, 2, "classes"),
        "shot": (1, 1, "support images a class"),
        "queries": (15, 1, "query images a class"),
        "unlabeled": (0, 0, "unlabeled images a class"),
        "count": (1000, 2, "how many episodes, as an interval takes two"),
        "seed": (0, 0, "of their draw"),
    }
    for name, (default, least, text) in numbers.items():
        drawn.add_argument(
            f"--{name}", type=number(least), default=default, metavar="N",
            help=f"{text} (default: {default})",
        )  # fmt: skip
    drawn.add_argument(
        "--dirichlet", type=float, metavar="A",
        help="queries are not spread evenly: shares of classes are drawn from Dir(A)",
    )  # fmt: skip
    drawn.add_argument("--open-set", type=number(0), default=0, metavar="N",
        help="queries of N more classes, of which the classifier knows nothing, are among the "
        "others: how well does its confidence tell them apart? (default: 0)",
    )  # fmt: skip


IMPORT = """\
Make a checkpoint of weights that were trained elsewhere.

FILE is a state_dict that torch.save wrote, a .safetensors file, or a file that has one somewhere
inside; if it has several, --key says which, such as model.state. Where weights are missing or have
another shape, the first are named and nothing is written; those that the network has no place for
are listed and left out. --map replaces beginnings of names:
  epcore import-weights theirs.pt --backbone resnet12 --scale paper --map encoder.= --out mine.pt
  epcore embed-folder photos --weights mine.pt --backbone resnet12 --scale paper --out mine.npz
  epcore classify --features mine.npz"""
NETWORK = """\
The network is of a checkpoint of this program, which sees images as the recipe does, resized to
--size pixels:
  --backbone conv4 --weights mine.pt
or one of timm, with its own view of images, and its weights from timm's hub or, with --weights,
from a file (pip install ".[timm]" in a checkout):
  --backbone timm:vit_small_patch14_dinov2"""
PREDICT = f"""\
Say which class each image of a folder is of, from a few labeled images of each class.

A network turns images into features, and a classifier of config/classifiers.yaml learns the
classes from those of --support, one or more images each. Written are a CSV with the columns file,
class and probability, and a page with the images it is most and least certain of:
  epcore predict --support labeled --queries new --backbone timm:vit_small_patch14_dinov2
Methods that classify all queries together, as the default does, give other answers with other
queries beside.

{NETWORK}

Where images are embedded already, --features FILE.npz takes their place: its `features` (n, D) and
`labels` (n,), which are '' or, in numbers, -1 where the class is asked for. The CSV has the
columns row, class and probability then."""
EMBED_FOLDER = f"""\
Compute the features of images in FOLDER/<class>/<file> with a trained network.

The .npz that is written holds `features` and `labels`; `epcore classify --features` draws episodes
from it and prints the accuracies of all classifiers that need nothing else. The classes should be
none that the network was trained on.

{NETWORK}"""


def _add_weights(command: Command) -> None:
    sub = command("import-weights", "make a checkpoint of weights from elsewhere", IMPORT)
    sub.add_argument("weights", type=Path, metavar="FILE")
    sub.add_argument("--backbone", required=True, metavar="NAME", help="backbone (backbones.yaml)")
    sub.add_argument("--key", metavar="KEYS",
        help="where the weights are in a file that has several: its keys, joined by dots",
    )  # fmt: skip
    sub.add_argument("--map", dest="changes", nargs="+", default=[], metavar="OLD=NEW",
        help="replace beginnings of names; NEW may be empty",
    )  # fmt: skip
    sub.add_argument(
        "--out", required=True, type=output_file(".pt"), help="checkpoint to write (.pt)"
    )
    _of_scale(sub, anywhere=True)

    sub = command("embed-folder", "features of a folder of images, for classify", EMBED_FOLDER)
    sub.add_argument("images", type=Path, metavar="FOLDER")
    _of_network(sub, required=True)
    sub.add_argument(
        "--out", required=True, type=output_file(".npz"), help="features to write (.npz)"
    )
    _of_scale(sub, anywhere=True)

    sub = command("predict", "classes of images, from a few labeled ones", PREDICT)
    sub.add_argument("--support", type=Path, metavar="FOLDER",
        help="labeled images, FOLDER/<class>/<file>",
    )  # fmt: skip
    sub.add_argument("--queries", type=Path, metavar="FOLDER",
        help="images without a class, FOLDER/<file>",
    )  # fmt: skip
    sub.add_argument("--features", type=Path, metavar="FILE.npz",
        help="features of images, in place of both folders and the network",
    )  # fmt: skip
    sub.add_argument("--classifier", default="ep+label-propagation", metavar="NAME",
        help="as for classify (default: ep+label-propagation, the paper's)",
    )  # fmt: skip
    _of_network(sub, required=False)
    sub.add_argument("--out", type=output_file(".csv"), default=Path("predictions.csv"),
        help="file to write, with a page (.html) beside it (default: predictions.csv)",
    )  # fmt: skip
    _of_scale(sub, anywhere=True)


def _of_network(sub: argparse.ArgumentParser, required: bool) -> None:
    sub.add_argument("--backbone", required=required, metavar="NAME",
        help="of backbones.yaml, or timm:NAME",
    )  # fmt: skip
    sub.add_argument("--weights", "--checkpoint", type=Path, metavar="FILE",
        help="checkpoint (.pt), or weights of timm (default: from its hub)",
    )  # fmt: skip
    sub.add_argument("--recipe", default="epnet", metavar="NAME",
        help="whose view of images it is (default: epnet)",
    )  # fmt: skip
    sub.add_argument("--size", type=number(1), metavar="PIXELS",
        help="height and width that images are resized to first, but for timm (default: those of "
        "its training, as the meta beside a checkpoint says, or 84)",
    )  # fmt: skip
    sub.add_argument("--batch", type=number(1), default=BATCH, metavar="N",
        help=f"images at a time (default: {BATCH})",
    )  # fmt: skip


def _add_others(command: Command) -> None:
    sub = command("forecast", "say what is left to run for a target, and what it costs")
    _of_scale(sub)
    sub.add_argument("targets", nargs="*", default=["all"], metavar="TARGET",
        help="what Snakemake would be asked for, e.g. tables/main.tex (default: all)",
    )  # fmt: skip
    sub.add_argument("--device", choices=("cpu", "gpu"),
        help="what trains (default: a GPU if there is one here, or the scale requires one)",
    )  # fmt: skip
    sub.add_argument("--medians", dest="medians_alone", action="store_true",
        help="print what the jobs of the scale took here, as config/measured.csv has it",
    )  # fmt: skip

    sub = command("status", "how far the running trainings are")
    sub.add_argument("--scale", metavar="NAME", help="of this scale alone (default: of all)")
    sub.add_argument(
        "--results", type=Path, default=Path("results"), metavar="FOLDER",
        help="results folder, here or on a shared disk (default: results)",
    )  # fmt: skip

    sub = command("doctor", "what a target needs and is not there, with the remedy")
    sub.add_argument(
        "targets", nargs="*", metavar="TARGET", default=["all"],
        help="what Snakemake would be asked for, e.g. tables/main.tex (default: all)",
    )  # fmt: skip
    _of_scale(sub)
    sub.add_argument(
        "--root", type=Path, metavar="FOLDER",
        help="data root (default: data_root of config.yaml)",
    )  # fmt: skip

    sub = command("show", "print a table of this run in the terminal, and where it lies")
    sub.add_argument("table", nargs="?", metavar="TABLE",
        help="its name or file, tables/main.tex (default: own, or main, as the scale has it)",
    )  # fmt: skip
    _of_scale(sub)
    sub.add_argument(
        "--open", dest="open_page", action="store_true", help="open it in a browser too"
    )

    sub = command("schema", "write the JSON schemas that editors check the config files with")
    _add_settings(sub, "config folder, whose schemas/ is written")


def _add_settings(
    sub: argparse.ArgumentParser, what: str = "config folder", anywhere: bool = False
) -> None:
    """Adds --settings. anywhere: whether the command also runs where no checkout is."""
    checkout = Path("config")
    installed = anywhere and not (checkout / "config.yaml").is_file()
    sub.add_argument(
        "--settings", type=Path, default=DEFAULTS if installed else checkout, metavar="FOLDER",
        help=f"{what} (default: config{', or that of the package' * anywhere})",
    )  # fmt: skip


def _of_scale(sub: argparse.ArgumentParser, anywhere: bool = False) -> None:
    sub.add_argument("--scale", metavar="NAME", help="short for --config scale=NAME")
    sub.add_argument(
        "--config", dest="overrides", type=setting, nargs="+", default=[], metavar="KEY=VALUE",
        help="as for snakemake: scale=paper, seeds=3 (default: what config.yaml says)",
    )  # fmt: skip
    _add_settings(sub, anywhere=anywhere)
