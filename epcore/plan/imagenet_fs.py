"""ImageNet-FS at one scale: its stages' configs, and which methods share a generator."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, get_args

from epcore.backbones.config import WITH_MAPS, BackboneConfig, check_sizes
from epcore.config.imagenet_fs import ImageNetFsScale, ImageNetFsSettings, Method
from epcore.config.load import extend, merge, read_yaml
from epcore.config.resources import JobResources
from epcore.config.scale import ScaledBackbone
from epcore.errors import UserError
from epcore.generators.config import LONG_TESTS, LinearLayer
from epcore.imagenet_fs.config import (
    ClassifierConfig,
    ClassifierTraining,
    ExemplarsConfig,
    GeneratorConfig,
    GeneratorTraining,
    ImageFeaturesConfig,
    Measure,
    TrialsConfig,
)
from epcore.plan import paths
from epcore.plan.registry import Registry
from epcore.plan.run import Run
from epcore.report.config import ScoreColumn, Training
from epcore.report.figure_config import CurvesConfig
from epcore.settings import pick, validate

FILE = "imagenet-fs.yaml"


class ImageNetFs:
    """ImageNet-FS at a scale that has it; methods named after a stage make its config.

    Methods that tell the stage `imagenet-fs-generator` the same share its generator, which carries
    the name of the first of them.
    """

    def __init__(self, registry: Registry, scale: ImageNetFsScale) -> None:
        self._registry, self.scale = registry, scale
        self._scale_file = f"{registry.scale_file}, imagenet_fs"
        self._location = f"{registry.config.name}/{FILE} or {self._scale_file}.settings"

    @cached_property
    def settings(self) -> ImageNetFsSettings:
        """The file imagenet-fs.yaml, with the changes of the scale."""
        content = merge(read_yaml(self._registry.config / FILE), self.scale.settings)
        settings: ImageNetFsSettings = validate(ImageNetFsSettings, content, self._location)
        return settings

    def check(self) -> None:
        """Resolves every method, so that a mistake is told before anything runs."""
        for run in self.scale.runs:
            location, datasets = f"{self._scale_file}, runs", self._registry.datasets
            pick(datasets, run.dataset, "data set", location)
            pick(datasets, f"{run.dataset}-queries", "data set", location)
            pick(self.settings.networks, run.network, "network", location)
        for network in self.settings.networks:
            check_sizes(self.backbone(network), self._scale_file)
            self._classifier_training(network)
        for method in self.settings.methods:
            self.evaluate(method)

    # -- names ------------------------------------------------------------------------------------

    @cached_property
    def protocols(self) -> list[str]:
        """Each measure with each K."""
        measures, exemplars = get_args(Measure), self.settings.shots
        return [f"{measure}-{shots}shot" for measure in measures for shots in exemplars]

    def sized(self, network: str) -> str:
        """A network's name, with its size where this scale makes it smaller."""
        settings = pick(self.settings.networks, network, "network", self._location)
        return settings.label + ScaledBackbone(width=self.scale.width).shown

    @cached_property
    def methods(self) -> dict[str, Method]:
        """Every method, with what it extends merged."""
        sources = self.settings.methods
        location = f"{self._location}, methods"
        methods: dict[str, Method] = {}
        for name in sources:
            content = extend(sources, name, "method", location, dict)
            methods[name] = validate(Method, content, f"{location}.{name}")
            training = methods[name].training
            exemplars = training and training.exemplars
            if exemplars is not None and exemplars not in self.settings.shots:
                raise UserError(
                    f"{location}.{name}: training.exemplars {exemplars} is none of the shots "
                    f"{list(self.settings.shots)}, for which exemplars are drawn"
                )
            for key in ("step_sizes", "novel_factors"):
                numbers = getattr(methods[name], key)
                if numbers is not None and len(numbers) != len(self.settings.shots):
                    raise UserError(
                        f"{location}.{name}: {key} has {len(numbers)} numbers, shots "
                        f"{len(self.settings.shots)}",
                        "give one for each K",
                    )
        return methods

    @property
    def trained_methods(self) -> list[str]:
        """The methods whose generators learn something."""
        return [name for name, method in self.methods.items() if method.training]

    @property
    def long_methods(self) -> list[str]:
        """The methods whose test takes hours of a processor at the paper's scale."""
        methods = self.methods.items()
        return [name for name, method in methods if method.generator.kind in LONG_TESTS]

    @cache  # noqa: B019 - a plan lives as long as the program
    def generator_method(self, method: str) -> str:
        """The method that names the generator of a method."""
        of_method = self.generator(method)
        return next(name for name in self.trained_methods if self.generator(name) == of_method)

    # -- files ------------------------------------------------------------------------------------

    def exemplar_files(self, split: str) -> list[str]:
        """Patterns of the exemplars of a split, one for each K."""
        return [
            paths.EXEMPLARS.replace("{split}", split).replace("{shots}", str(shots))
            for shots in self.settings.shots
        ]

    def validation_exemplars(self, method: str) -> list[str]:
        """Patterns of the exemplars that validate the generators of a method."""
        exemplars = self._training(method).exemplars
        files = dict(zip(self.settings.shots, self.exemplar_files("val"), strict=True))
        return [files[exemplars]] if exemplars else list(files.values())

    def trial_files(self) -> list[str]:
        """Patterns of a method's scores, for each measure and K."""
        return [paths.TRIALS.replace("{protocol}", protocol) for protocol in self.protocols]

    def path(self, pattern: str, run: Run) -> str:
        """A file of a run, by its pattern in `epcore.plan.paths`."""
        place = vars(run) | {"network": run.backbone, "method": run.recipe}
        return self._registry.path(pattern, **place)

    def scores(self, run: Run) -> ScoreColumn:
        """The accuracies of every trial."""
        return ScoreColumn(file=self.path(paths.TRIALS, run))

    def generator_files(self, run: Run) -> list[str]:
        """The file of the generators that a run tests, which methods may share.

        Methods that train nothing before the test have none.
        """
        if run.recipe not in self.trained_methods:
            return []
        owner = self.generator_method(run.recipe)
        return [self.path(paths.GENERATOR, replace(run, recipe=owner))]

    def trained(self, run: Run) -> str:
        """The last file that was trained for a run: its generators or its classifier."""
        return [self.path(paths.CLASSIFIER, run), *self.generator_files(run)][-1]

    def trained_files(self, runs: Iterable[Run]) -> list[str]:
        """The classifiers of runs, then their generators."""
        classifiers = {self.path(paths.CLASSIFIER, run) for run in runs}
        generators = {file for run in runs for file in self.generator_files(run)}
        return [*sorted(classifiers), *sorted(generators)]

    def tested_files(self, runs: Iterable[Run]) -> list[str]:
        """For each test of runs the scores beside which its meta stands."""
        first, *_ = self.protocols
        return sorted({self.scores(replace(run, protocol=first)).file for run in runs})

    def curves(self, runs: Iterable[Run]) -> dict[str, CurvesConfig]:
        """Figure -> its stage's config: a run's classifier, then a row a generator."""
        rows: dict[tuple[str, str], dict[Training, None]] = {}
        for run in runs:
            row = rows.setdefault((run.dataset, run.backbone), {})
            row |= dict.fromkeys(self._trainings(run))
        return {
            f"curves-{dataset}-{network}": CurvesConfig(
                trainings=tuple(row),
                note=self._registry.data_and_network(dataset, self.sized(network)),
            )
            for (dataset, network), row in rows.items()
        }

    def _trainings(self, run: Run) -> list[Training]:
        """The training of a run's classifier, then of its generators, one for each K."""
        classifier = Training(
            seed=run.seed,
            recipe="classifier",
            phase="classifier",
            trained_as="classifier",
            checkpoint=self.path(paths.CLASSIFIER, run),
        )
        if run.recipe not in self.trained_methods:
            return [classifier]
        owner = self.generator_method(run.recipe)
        generators = [
            Training(
                seed=run.seed,
                recipe=owner,
                phase=f"generator, K = {shots}",
                trained_as=owner,
                checkpoint=self.trained(run),
                model=f"-{shots}shot",
            )
            for shots in self.generator(owner).shots
        ]
        return [classifier, *generators]

    # -- stages -----------------------------------------------------------------------------------

    def exemplars(self) -> ExemplarsConfig:
        trials = self.settings.trials
        return ExemplarsConfig(
            shots=self.settings.shots,
            trials={"val": trials.val, "novel": trials.novel},
            seed=self._registry.scale.episodes.seed,
        )

    def backbone(self, network: str) -> BackboneConfig:
        """The feature extractor at this scale's width."""
        architecture = self.settings.networks[network].architecture
        return BackboneConfig(architecture=architecture, width=self.scale.width)

    def _network(self, network: str, resources: JobResources) -> dict[str, Any]:
        return self._registry.network(self.backbone(network), self.settings.view, resources)

    def classifier(self, network: str, seed: int) -> ClassifierConfig:
        return ClassifierConfig(
            **self._network(network, self.scale.resources.network),
            training=self._classifier_training(network),
            seed=seed,
        )

    def _classifier_training(self, network: str) -> ClassifierTraining:
        """How the classifier of a network is trained: what all have, with its own changes."""
        settings, location = self.settings, f"{self._location}, networks.{network}.classifier"
        of_network = settings.networks[network]
        merged = merge(settings.classifier.model_dump(), of_network.classifier)
        training: ClassifierTraining = validate(ClassifierTraining, merged, location)
        if training.rotation_weight and of_network.architecture not in WITH_MAPS:
            raise UserError(
                f"{location}: {of_network.architecture} has no maps to learn rotations of",
                f"set rotation_weight to 0, or take one of {', '.join(WITH_MAPS)}",
            )
        return training

    def features(self, network: str) -> ImageFeaturesConfig:
        return ImageFeaturesConfig(**self._network(network, self.scale.resources.features))

    def generator(self, method: str, seed: int = 0) -> GeneratorConfig:
        settings = self.methods[method]
        propagation = settings.propagation
        if propagation is not None:
            changes = {"step": "after"}
            propagation = propagation.model_copy(update=changes) if propagation.training else None
        training = self._training(method)
        assert not isinstance(settings.generator, LinearLayer)  # it is not trained in this stage
        return GeneratorConfig(
            threads=self.scale.resources.weights.threads,
            generator=settings.generator,
            training=training,
            propagation=propagation,
            shots=(training.exemplars,) if training.exemplars else self.settings.shots,
            seed=seed,
        )

    def _training(self, method: str) -> GeneratorTraining:
        training = self.methods[method].training
        assert training is not None  # only trained methods have a job that asks for it
        return training

    def evaluate(self, method: str, seed: int = 0) -> TrialsConfig:
        settings = self.methods[method]
        shots = self.settings.shots
        return TrialsConfig(
            threads=self.scale.resources.weights.threads,
            generator=settings.generator,
            propagation=settings.propagation,
            shots=shots,
            step_sizes=settings.step_sizes or (1.0,) * len(shots),
            novel_factors=settings.novel_factors or (),
            prior=self.settings.prior,
            seed=seed if isinstance(settings.generator, LinearLayer) else 0,
        )
