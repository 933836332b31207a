"""Every stage, declared once: the command line, the workflow and the tracker read it.

A stage is a sub-command `epcore <name>`, and a rule of the workflow runs it. Its config is a model
in a file of `epcore.plan.stages`, which has its version. Nothing heavy is imported here: the module
with the stage's `run()` is loaded when it runs.
"""

import re
from dataclasses import dataclass
from typing import Literal

from epcore.plan import paths
from epcore.plan.imagenet_fs import queries_of


@dataclass(frozen=True)
class Option:
    """A file or folder that a stage reads or writes, or `many` of them.

    pattern: where it lies, in the grammar of `epcore.plan.paths`. Of inputs without one, and of
    `many`, `epcore.plan.files` asks the plan.
    """

    name: str
    help: str
    pattern: str = ""
    required: bool = True
    many: bool = False

    @property
    def endings(self) -> tuple[str, ...]:
        """Endings of the file and of those beside it, which the help names; none of a folder."""
        if self.help.startswith("folder"):
            return ()
        return tuple(re.findall(r"(?<!\w)(?:-\w+)?(?:\.\w+)+", self.help))


@dataclass(frozen=True)
class Figure(Option):
    """A figure, which not every scale has the runs of."""


def files(name: str, text: str, pattern: str = "", required: bool = True) -> Option:
    """One file or more."""
    return Option(name, text, pattern, required, many=True)


def new_checkpoint(pattern: str) -> Option:
    """What a training writes."""
    text = "checkpoint to write (.pt); curve (.csv) and .meta.json go beside it"
    return Option("out", text, pattern)


def figure(name: str, beside: str = ".png and .csv") -> Figure:
    """What draws a figure of this name writes."""
    text = f"figure to write (.pdf); {beside} go beside it"
    return Figure("out", text, paths.FIGURE.replace("{figure}", name))


@dataclass(frozen=True)
class Stage:
    """A stage.

    summary: what it does, for people. module: has its `run()`. files: what it reads and, last of
    them, what it writes. config: the model of its config. plan: the method of the plan that makes
    it, whose parameters are some of `names`. of_seeds: whether its config has the results of all
    seeds of the run, or of the first.

    device: None if it computes on the CPU alone; it may `use` a GPU or, where a scale says so,
    `require` one. measured: by codecarbon, because it may last longer than a second; the energy of
    others is estimated. makes: in the folder `out`, the file that the job is named after.
    writes_meta: whether it writes one beside what it makes.
    """

    summary: str
    module: str
    files: tuple[Option, ...] = ()
    config: str | None = None
    plan: str = ""
    of_seeds: Literal["all", "first", None] = None
    device: Literal["use", "require", None] = None
    measured: bool = False
    makes: str = ""
    writes_meta: bool = True

    @property
    def out(self) -> Option:
        """What it writes."""
        return self.files[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """What says which job of a scale it is: the wildcards of what it writes."""
        return tuple(re.findall(r"{(\w+)}", self.out.pattern.replace("{scale}", "")))


NUMBERS = ("seed", "shot")  # the other names are words

DATA = Option("data", "folder of the packed data set", paths.DATA)
QUERIES = Option(
    "queries",
    "folder of the packed data set of its queries",
    paths.DATA.replace("{dataset}", queries_of("{dataset}")),
)
EPISODES = "episode file (.npz)"
VALIDATION = "validation episodes (.npz)"
NEW_TABLE = "table to write (.csv); LaTeX (.tex) and a page (.html) go beside it"
NUMBERED = ".png, .csv and -numbers.csv"
COSINE = Option("checkpoint", "checkpoint of imagenet-fs-classifier (.pt)", paths.CLASSIFIER)
WEIGHING = (
    *(DATA, QUERIES),
    Option("features", "folder of images.npy and queries.npy", paths.FEATURE_FOLDER),
    COSINE,
    files("exemplars", "exemplar files, one for each K (.npz)"),
)

STAGES = {
    "data": Stage(
        "build a data set into a packed store",
        "epcore.data.build",
        (
            files("sources", "receipts of `epcore fetch` for its sources (.json)", required=False),
            Option("out", "folder to write", paths.DATA),
        ),
        config="data.DataStage",
        plan="data.build",
        measured=True,
        makes="store.json",
    ),
    "contact-sheet": Stage(
        "draw a picture of a data set",
        "epcore.data.contact_sheet",
        (DATA, Option("out", "picture to write (.png)", paths.CONTACT_SHEET)),
        writes_meta=False,
    ),
    "episodes": Stage(
        "sample and freeze episodes",
        "epcore.data.episodes",
        (DATA, Option("out", "episode file to write (.npz)", paths.EPISODES)),
        config="data.EpisodesStage",
        plan="data.episodes",
    ),
    "pretrain": Stage(
        "train a network on base classes and rotations",
        "epcore.training.pretrain",
        (
            DATA,
            Option("episodes", VALIDATION, paths.EPISODES.replace("{protocol}", "val-5way-5shot")),
            new_checkpoint(paths.PRETRAIN),
        ),
        config="training.PretrainStage",
        plan="runs.pretrain",
        device="require",
        measured=True,
    ),
    "finetune": Stage(
        "fine-tune a pretrained network on episodes of base classes",
        "epcore.training.finetune",
        (
            DATA,
            Option(
                "episodes", VALIDATION, paths.EPISODES.replace("{protocol}", "val-5way-{shot}shot")
            ),
            Option("checkpoint", "pretrained checkpoint (.pt)"),
            new_checkpoint(paths.FINETUNE),
        ),
        config="training.FinetuneStage",
        plan="runs.finetune",
        device="require",
        measured=True,
    ),
    "select": Stage(
        "take the best of several checkpoints on validation",
        "epcore.training.select",
        (
            files("checkpoints", "those of the candidates, in their order (.pt)"),
            new_checkpoint(paths.CHECKPOINT),
        ),
        config="training.SelectStage",
        plan="runs.select",
    ),
    "embed": Stage(
        "compute the features of validation and test images, once per checkpoint",
        "epcore.evaluation.embed",
        (
            DATA,
            Option("weights", "checkpoint (.pt)", paths.CHECKPOINT),
            Option("out", "feature file to write (.npz)", paths.FEATURES),
        ),
        config="testing.EmbedStage",
        plan="runs.embed",
        device="use",
        measured=True,
    ),
    "base-classes": Stage(
        "mean feature of the base images and weights of the base classes, once per checkpoint",
        "epcore.evaluation.base_classes",
        (
            DATA,
            Option("weights", "checkpoint (.pt)", paths.CHECKPOINT),
            Option("out", "file to write (.npz)", paths.BASE_CLASSES),
        ),
        config="testing.BaseClassesStage",
        plan="runs.base_classes",
        device="use",
        measured=True,
    ),
    "evaluate": Stage(
        "classify the queries of frozen episodes",
        "epcore.evaluation.evaluate",
        (
            files("features", "feature file (.npz), one for all episodes or one for each file"),
            files("episodes", "episode files (.npz)"),
            files(
                "base",
                "what base-classes made of the same, if the classifier takes it",
                required=False,
            ),
            files(
                "validation",
                "episodes that settings are chosen on, one for each file",
                required=False,
            ),
            files("out", "per-episode accuracies to write (.csv), one for each file", paths.SCORES),
        ),
        config="testing.EvaluateStage",
        plan="runs.evaluate",
        measured=True,
    ),
    "meta-train": Stage(
        "train a compared method on episodes of base classes",
        "epcore.training.episodic",
        (DATA, Option("episodes", VALIDATION), new_checkpoint(paths.META_TRAINED)),
        config="training.MetaTrainStage",
        plan="compared.meta_train",
        device="require",
        measured=True,
    ),
    "meta-test": Stage(
        "test a compared method on frozen episodes",
        "epcore.evaluation.meta_test",
        (
            DATA,
            Option("weights", "checkpoint of meta-train (.pt)"),
            Option("episodes", EPISODES, paths.EPISODES),
            Option("out", "per-episode accuracies to write (.csv)", paths.SCORES),
        ),
        config="testing.MetaTestStage",
        plan="compared.meta_test",
        device="use",
        measured=True,
    ),
    "table": Stage(
        "means and intervals of a table's cells beside the paper's, typeset",
        "epcore.report.table",
        (
            Option("paper", "what the paper prints, if it does (.csv)", required=False),
            Option("rerun", "what its authors print of a re-run (.csv)", required=False),
            Option("out", NEW_TABLE, paths.TABLE_CSV),
        ),
        config="tables.TableStage",
        plan="tables.stage",
        of_seeds="all",
    ),
    "claims": Stage(
        "judge the claims by what is printed and by this run",
        "epcore.report.claims",
        (Option("out", NEW_TABLE, paths.CLAIMS),),
        config="claims.ClaimsStage",
        plan="claims.stage",
        of_seeds="all",
    ),
    "reproduction": Stage(
        "typeset the reproduction as a document",
        "epcore.report.reproduction",
        (
            Option("template", "its text (.tex)"),
            Option("claims", "the judged claims (.csv)", paths.CLAIMS),
            files("tables", "tables (.csv)"),
            Option("footprint", "the CO2 report, if energy is tracked (.csv)", required=False),
            Option(
                "out", "document to write (.pdf); LaTeX's .log goes beside it", paths.REPRODUCTION
            ),
        ),
        config="reports.ReproductionStage",
        plan="reproduction",
        of_seeds="all",
        writes_meta=False,
    ),
    "ablation": Stage(
        "draw what an ablation's factors are worth",
        "epcore.report.ablation",
        (Option("paper", "what the paper prints (.csv)"), figure("ablation")),
        config="figures.AblationStage",
        plan="figures.ablation",
        of_seeds="all",
    ),
    "alpha": Stage(
        "choose both alphas on validation classes",
        "epcore.report.alpha",
        (Option("episodes", EPISODES), figure("alpha")),
        config="figures.AlphaStage",
        plan="figures.alpha",
        of_seeds="first",
        measured=True,
    ),
    "two-moons": Stage(
        "propagate two moons, in random batches and all together",
        "epcore.analysis.two_moons",
        (figure("two-moons", NUMBERED),),
        config="figures.TwoMoonsStage",
        plan="figures.two_moons",
    ),
    "decision-boundary": Stage(
        "draw decision boundaries before and after propagation",
        "epcore.analysis.decision_boundary",
        (figure("decision-boundary", NUMBERED),),
        config="figures.DecisionBoundaryStage",
        plan="figures.decision_boundary",
    ),
    "interpolation": Stage(
        "class probabilities between pairs of embeddings",
        "epcore.analysis.interpolation",
        (Option("episodes", EPISODES), figure("interpolation", NUMBERED)),
        config="figures.InterpolationStage",
        plan="figures.interpolation",
        of_seeds="first",
        measured=True,
    ),
    "plot": Stage(
        "draw accuracy over shots, classes or unlabeled images",
        "epcore.report.plot",
        (files("tables", "tables (.csv)"), figure("{plot}")),
        config="figures.PlotStage",
        plan="plots.plot",
        of_seeds="all",
    ),
    "curves": Stage(
        "draw the curves of trainings",
        "epcore.report.curves",
        (figure("{curves}"),),
        config="figures.CurvesStage",
        plan="curves.stage",
        of_seeds="all",
    ),
    "gap": Stage(
        "draw how far apart two recipes are while they train",
        "epcore.report.gap",
        (figure("gap"),),
        config="figures.GapStage",
        plan="curves.gap",
        of_seeds="all",
    ),
    "speed": Stage(
        "draw the accuracy of classifiers over the time that they take",
        "epcore.report.speed",
        (figure("speed"),),
        config="figures.SpeedStage",
        plan="figures.speed",
        of_seeds="all",
    ),
    "per-episode": Stage(
        "draw how the accuracies of single episodes are distributed",
        "epcore.report.per_episode",
        (figure("per-episode"),),
        config="figures.PerEpisodeStage",
        plan="figures.per_episode",
        of_seeds="all",
    ),
    "environment": Stage(
        "say where jobs ran and with what",
        "epcore.report.environment",
        (Option("out", "page to write (.html)", paths.ENVIRONMENT),),
        config="reports.EnvironmentStage",
        plan="environment",
        of_seeds="all",
        writes_meta=False,
    ),
    "imagenet-fs-exemplars": Stage(
        "draw and freeze the exemplars of ImageNet-FS",
        "epcore.imagenet_fs.exemplars",
        (
            *(DATA, QUERIES),
            Option(
                "out", "folder to write, a file for each split and K (.npz)", paths.EXEMPLAR_FOLDER
            ),
        ),
        config="imagenet_fs.ExemplarsStage",
        plan="with_imagenet_fs.exemplars",
    ),
    "imagenet-fs-classifier": Stage(
        "train the cosine classifier of base classes",
        "epcore.imagenet_fs.classifier",
        (DATA, QUERIES, new_checkpoint(paths.CLASSIFIER)),
        config="imagenet_fs.ClassifierStage",
        plan="with_imagenet_fs.classifier",
        device="require",
        measured=True,
    ),
    "imagenet-fs-features": Stage(
        "compute the features of all images of both data sets",
        "epcore.imagenet_fs.features",
        (
            *(DATA, QUERIES, COSINE),
            Option(
                "out",
                "folder to write: images.npy, queries.npy, a .meta.json of each",
                paths.FEATURE_FOLDER,
            ),
        ),
        config="imagenet_fs.ImageFeaturesStage",
        plan="with_imagenet_fs.features",
        device="use",
        measured=True,
        makes="queries.npy",
    ),
    "imagenet-fs-generator": Stage(
        "train a generator of class weights",
        "epcore.imagenet_fs.train_generator",
        (
            *WEIGHING,
            Option(
                "out",
                "generators to write (.pt); curves (.csv) and .meta.json beside them",
                paths.GENERATOR,
            ),
        ),
        config="imagenet_fs.GeneratorStage",
        plan="with_imagenet_fs.generator",
        device="use",
        measured=True,
    ),
    "imagenet-fs-evaluate": Stage(
        "test a generator of class weights on frozen exemplars",
        "epcore.imagenet_fs.evaluate",
        (
            *(*WEIGHING, Option("generator", "trained generators (.pt)")),
            Option(
                "out", "folder to write, a file for each measure and K (.csv)", paths.TRIAL_FOLDER
            ),
        ),
        config="imagenet_fs.TrialsStage",
        plan="with_imagenet_fs.evaluate",
        measured=True,
    ),
}
