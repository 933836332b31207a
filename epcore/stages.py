"""Every stage, declared once: the command line, the workflow and the tracker read it.

A stage is a sub-command `epcore <name>`, and a rule of the workflow runs it. Its config is a model
of `epcore.plan.stages`, which has its version; `epcore.plan.files` knows its files. Nothing heavy
is imported here: the module with the stage's `run()` is loaded when it runs.
"""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Option:
    """A file or folder that a stage reads or writes, or `many` of them."""

    name: str
    help: str
    required: bool = True
    many: bool = False

    @property
    def endings(self) -> tuple[str, ...]:
        """Of the file and those that go beside it, which the help names; a folder has none."""
        if self.help.startswith("folder"):
            return ()
        return tuple(re.findall(r"(?<!\w)(?:-\w+)?(?:\.\w+)+", self.help))


def files(name: str, text: str, required: bool = True) -> Option:
    """One file or more."""
    return Option(name, text, required, many=True)


@dataclass(frozen=True)
class Stage:
    """A stage.

    summary: what it does, for people. module: has its `run()`. files: what it reads and writes.
    config: the model of its config. plan: the method of the plan that makes it. names: what says
    which job it is, wildcards of its rule. plan_names: those of them that the method takes.
    of_seeds: whether its config has the results of all seeds of the run, or of the first.

    device: None if it computes on the CPU alone; it may `use` a GPU or, where a scale says so,
    `require` one. measured: by codecarbon, because it may last longer than a second; the energy of
    others is estimated. makes: in the folder `out`, the file that the job is named after. figure:
    whether it draws the figure of its name, which not every scale has the runs of. writes_meta:
    whether it writes one beside what it makes.
    """

    summary: str
    module: str
    files: tuple[Option, ...] = ()
    config: str | None = None
    plan: str = ""
    names: tuple[str, ...] = ()
    plan_names: tuple[str, ...] = ()
    of_seeds: Literal["all", "first", None] = None
    device: Literal["use", "require", None] = None
    measured: bool = False
    makes: str = ""
    figure: bool = False
    writes_meta: bool = True


NUMBERS = ("seed", "shot")  # the other names are words
RUN = ("dataset", "backbone", "recipe", "seed")
FS_RUN = ("dataset", "network", "seed")

DATA = Option("data", "folder of the packed data set")
QUERIES = Option("queries", "folder of the packed data set of its queries")
EPISODES = Option("episodes", "episode file (.npz)")
NEW_CHECKPOINT = Option(
    "out", "checkpoint to write (.pt); curve (.csv) and .meta.json go beside it"
)
FIGURE = Option("out", "figure to write (.pdf); .png and .csv go beside it")
NUMBERED_FIGURE = Option("out", "figure to write (.pdf); .png, .csv and -numbers.csv go beside it")
PAPER = Option("paper", "what the paper prints (.csv)")
COSINE = Option("checkpoint", "checkpoint of imagenet-fs-classifier (.pt)")
WEIGHING = (
    *(DATA, QUERIES, Option("features", "folder of images.npy and queries.npy"), COSINE),
    files("exemplars", "exemplar files, one for each K (.npz)"),
)

STAGES = {
    "data": Stage(
        "build a data set into a packed store",
        "epcore.data.build",
        (
            files("sources", "receipts of `epcore fetch` for its sources (.json)", False),
            Option("out", "folder to write"),
        ),
        config="DataStage",
        plan="data.build",
        names=("dataset",),
        plan_names=("dataset",),
        measured=True,
        makes="store.json",
    ),
    "contact-sheet": Stage(
        "draw a picture of a data set",
        "epcore.data.contact_sheet",
        (DATA, Option("out", "picture to write (.png)")),
        names=("dataset",),
        writes_meta=False,
    ),
    "episodes": Stage(
        "sample and freeze episodes",
        "epcore.data.episodes",
        (DATA, Option("out", "episode file to write (.npz)")),
        config="EpisodesStage",
        plan="data.episodes",
        names=("dataset", "protocol"),
        plan_names=("protocol",),
    ),
    "pretrain": Stage(
        "train a network on base classes and rotations",
        "epcore.training.pretrain",
        (DATA, Option("episodes", "validation episodes (.npz)"), NEW_CHECKPOINT),
        config="PretrainStage",
        plan="runs.pretrain",
        names=RUN,
        plan_names=RUN,
        device="require",
        measured=True,
    ),
    "finetune": Stage(
        "fine-tune a pretrained network on episodes of base classes",
        "epcore.training.finetune",
        (
            *(DATA, Option("episodes", "validation episodes (.npz)")),
            *(Option("checkpoint", "pretrained checkpoint (.pt)"), NEW_CHECKPOINT),
        ),
        config="FinetuneStage",
        plan="runs.finetune",
        names=(*RUN, "shot"),
        plan_names=("backbone", "recipe", "seed", "shot"),
        device="require",
        measured=True,
    ),
    "select": Stage(
        "take the best of several checkpoints on validation",
        "epcore.training.select",
        (
            files("checkpoints", "those of the candidates, in their order (.pt)"),
            NEW_CHECKPOINT,
        ),
        config="SelectStage",
        plan="runs.select",
        names=(*RUN, "checkpoint"),
        plan_names=("recipe", "checkpoint"),
    ),
    "embed": Stage(
        "compute the features of validation and test images, once per checkpoint",
        "epcore.evaluation.embed",
        (
            DATA,
            Option("weights", "checkpoint (.pt)"),
            Option("out", "feature file to write (.npz)"),
        ),
        config="EmbedStage",
        plan="runs.embed",
        names=(*RUN, "checkpoint"),
        plan_names=("backbone", "recipe"),
        device="use",
        measured=True,
    ),
    "base-classes": Stage(
        "mean feature of the base images and weights of the base classes, once per checkpoint",
        "epcore.evaluation.base_classes",
        (DATA, Option("weights", "checkpoint (.pt)"), Option("out", "file to write (.npz)")),
        config="BaseClassesStage",
        plan="runs.base_classes",
        names=(*RUN, "checkpoint"),
        plan_names=("backbone", "recipe"),
        device="use",
        measured=True,
    ),
    "evaluate": Stage(
        "classify the queries of frozen episodes",
        "epcore.evaluation.evaluate",
        (
            files("features", "feature file (.npz), one for all episodes or one for each file"),
            files("episodes", "episode files (.npz)"),
            files("base", "what base-classes made of the same, if the classifier takes it", False),
            files("validation", "episodes that settings are chosen on, one for each file", False),
            files("out", "per-episode accuracies to write (.csv), one for each file"),
        ),
        config="EvaluateStage",
        plan="runs.evaluate",
        names=(*RUN, "protocol"),
        plan_names=("backbone", "recipe"),
        measured=True,
    ),
    "meta-train": Stage(
        "train a compared method on episodes of base classes",
        "epcore.training.episodic",
        (DATA, Option("episodes", "validation episodes (.npz)"), NEW_CHECKPOINT),
        config="MetaTrainStage",
        plan="compared.meta_train",
        names=(*RUN, "shot"),
        plan_names=("backbone", "recipe", "seed", "shot"),
        device="require",
        measured=True,
    ),
    "meta-test": Stage(
        "test a compared method on frozen episodes",
        "epcore.evaluation.meta_test",
        (
            *(DATA, Option("weights", "checkpoint of meta-train (.pt)"), EPISODES),
            Option("out", "per-episode accuracies to write (.csv)"),
        ),
        config="MetaTestStage",
        plan="compared.meta_test",
        names=(*RUN, "protocol"),
        plan_names=("backbone", "recipe", "protocol"),
        device="use",
        measured=True,
    ),
    "table": Stage(
        "means and intervals of a table's cells beside the paper's, typeset",
        "epcore.report.table",
        (
            Option("paper", "what the paper prints, if it does (.csv)", required=False),
            Option("rerun", "what its authors print of a re-run (.csv)", required=False),
            Option("out", "table to write (.csv); LaTeX (.tex) and a page (.html) go beside it"),
        ),
        config="TableStage",
        plan="tables.stage",
        names=("table",),
        plan_names=("table",),
        of_seeds="all",
    ),
    "claims": Stage(
        "judge the claims by what is printed and by this run",
        "epcore.report.claims",
        (Option("out", "table to write (.csv); LaTeX (.tex) and a page (.html) go beside it"),),
        config="ClaimsStage",
        plan="claims.stage",
        of_seeds="all",
    ),
    "reproduction": Stage(
        "typeset the reproduction as a document",
        "epcore.report.reproduction",
        (
            Option("template", "its text (.tex)"),
            Option("claims", "the judged claims (.csv)"),
            files("tables", "tables (.csv)"),
            Option("footprint", "the CO2 report, if energy is tracked (.csv)", required=False),
            Option("out", "document to write (.pdf); LaTeX's .log goes beside it"),
        ),
        config="ReproductionStage",
        plan="reproduction",
        of_seeds="all",
        writes_meta=False,
    ),
    "ablation": Stage(
        "draw what an ablation's factors are worth",
        "epcore.report.ablation",
        (PAPER, FIGURE),
        config="AblationStage",
        plan="figures.ablation",
        of_seeds="all",
        figure=True,
    ),
    "alpha": Stage(
        "choose both alphas on validation classes",
        "epcore.report.alpha",
        (EPISODES, FIGURE),
        config="AlphaStage",
        plan="figures.alpha",
        of_seeds="first",
        measured=True,
        figure=True,
    ),
    "two-moons": Stage(
        "propagate two moons, in random batches and all together",
        "epcore.analysis.two_moons",
        (NUMBERED_FIGURE,),
        config="TwoMoonsStage",
        plan="figures.two_moons",
    ),
    "decision-boundary": Stage(
        "draw decision boundaries before and after propagation",
        "epcore.analysis.decision_boundary",
        (NUMBERED_FIGURE,),
        config="DecisionBoundaryStage",
        plan="figures.decision_boundary",
    ),
    "interpolation": Stage(
        "class probabilities between pairs of embeddings",
        "epcore.analysis.interpolation",
        (EPISODES, NUMBERED_FIGURE),
        config="InterpolationStage",
        plan="figures.interpolation",
        of_seeds="first",
        measured=True,
        figure=True,
    ),
    "plot": Stage(
        "draw accuracy over shots, classes or unlabeled images",
        "epcore.report.plot",
        (files("tables", "tables (.csv)"), FIGURE),
        config="PlotStage",
        plan="plots.plot",
        names=("plot",),
        plan_names=("plot",),
        of_seeds="all",
    ),
    "curves": Stage(
        "draw the curves of trainings",
        "epcore.report.curves",
        (FIGURE,),
        config="CurvesStage",
        plan="curves.stage",
        names=("curves",),
        plan_names=("curves",),
        of_seeds="all",
    ),
    "gap": Stage(
        "draw how far apart two recipes are while they train",
        "epcore.report.gap",
        (FIGURE,),
        config="GapStage",
        plan="curves.gap",
        of_seeds="all",
        figure=True,
    ),
    "speed": Stage(
        "draw the accuracy of classifiers over the time that they take",
        "epcore.report.speed",
        (FIGURE,),
        config="SpeedStage",
        plan="figures.speed",
        of_seeds="all",
        figure=True,
    ),
    "per-episode": Stage(
        "draw how the accuracies of single episodes are distributed",
        "epcore.report.per_episode",
        (FIGURE,),
        config="PerEpisodeStage",
        plan="figures.per_episode",
        of_seeds="all",
        figure=True,
    ),
    "environment": Stage(
        "say where jobs ran and with what",
        "epcore.report.environment",
        (Option("out", "page to write (.html)"),),
        config="EnvironmentStage",
        plan="environment",
        of_seeds="all",
        writes_meta=False,
    ),
    "imagenet-fs-exemplars": Stage(
        "draw and freeze the exemplars of ImageNet-FS",
        "epcore.imagenet_fs.exemplars",
        (DATA, QUERIES, Option("out", "folder to write, a file for each split and K (.npz)")),
        config="ExemplarsStage",
        plan="with_imagenet_fs.exemplars",
        names=("dataset",),
    ),
    "imagenet-fs-classifier": Stage(
        "train the cosine classifier of base classes",
        "epcore.imagenet_fs.classifier",
        (DATA, QUERIES, NEW_CHECKPOINT),
        config="ClassifierStage",
        plan="with_imagenet_fs.classifier",
        names=FS_RUN,
        plan_names=("network", "seed"),
        device="require",
        measured=True,
    ),
    "imagenet-fs-features": Stage(
        "compute the features of all images of both data sets",
        "epcore.imagenet_fs.features",
        (
            *(DATA, QUERIES, COSINE),
            Option("out", "folder to write: images.npy, queries.npy, a .meta.json of each"),
        ),
        config="ImageFeaturesStage",
        plan="with_imagenet_fs.features",
        names=FS_RUN,
        plan_names=("network",),
        device="use",
        measured=True,
        makes="queries.npy",
    ),
    "imagenet-fs-generator": Stage(
        "train a generator of class weights",
        "epcore.imagenet_fs.train_generator",
        (
            *WEIGHING,
            Option("out", "generators to write (.pt); curves (.csv) and .meta.json beside them"),
        ),
        config="GeneratorStage",
        plan="with_imagenet_fs.generator",
        names=(*FS_RUN, "method"),
        plan_names=("method", "seed"),
        device="use",
        measured=True,
    ),
    "imagenet-fs-evaluate": Stage(
        "test a generator of class weights on frozen exemplars",
        "epcore.imagenet_fs.evaluate",
        (
            *(*WEIGHING, Option("generator", "trained generators (.pt)")),
            Option("out", "folder to write, a file for each measure and K (.csv)"),
        ),
        config="TrialsStage",
        plan="with_imagenet_fs.evaluate",
        names=(*FS_RUN, "method"),
        plan_names=("method",),
        measured=True,
    ),
}
