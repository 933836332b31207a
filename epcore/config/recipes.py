"""The files recipes.yaml, backbones.yaml and classifiers.yaml."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from epcore.backbones.config import Architecture
from epcore.config.names import Name
from epcore.data.config import AugmentationName, View
from epcore.evaluation.config import NamedClassifier, Propagation
from epcore.settings import Settings
from epcore.training.config import Finetuning, Pretraining


class BackboneInfo(Settings):
    """A backbone, and how tables call it."""

    architecture: Architecture = Field(description="the network, a name of epcore.backbones")
    label: str = Field(description="how tables call it")


class Augmentation(Settings):
    """What each phase does to its images; see `epcore.data.augment`."""

    pretraining: tuple[AugmentationName, ...] = Field(
        description="what is done to images in pretraining, at random"
    )
    finetuning: tuple[Literal["flip"], ...] = Field(
        description="what is done to images in fine-tuning, at random"
    )


Phase = Literal["pretraining", "finetuning", "testing"]
TrainingPhase = Literal["pretraining", "finetuning"]


class RecipeSettings(Settings):
    """How a network is trained and tested."""

    propagation: Propagation = Field(
        description="embedding propagation, and the classifier behind it"
    )
    phases: dict[Phase, Propagation] = Field(
        default_factory=dict,
        description="other settings of propagation in pretraining, finetuning or testing",
    )
    tested: Literal["finetuned", "pretrained"] = Field(
        default="finetuned",
        description="the checkpoint that the test sees; without episodic fine-tuning it is the "
        "pretrained one",
    )
    pretraining: Pretraining = Field(description="phase one: classes and rotations of base images")
    finetuning: Finetuning = Field(description="phase two: episodes of base classes")
    augmentation: Augmentation = Field(description="what each phase does to its images")
    view: View = Field(description="what a network sees of a stored image")


class Recipe(RecipeSettings):
    """A recipe resolved for one backbone and one scale."""

    description: str = Field(description="what it is, in a line")
    protocol: str = Field(description="the reading of the paper that it follows")
    grid: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict, description="see `ClassifierChoice`"
    )

    @model_validator(mode="before")
    @classmethod
    def _phases_go_over_propagation(cls, content: dict[str, Any]) -> dict[str, Any]:
        """A phase says what differs from `propagation`; the recipe has the whole of each."""
        general, phases = content.get("propagation"), content.get("phases")
        if not isinstance(general, dict) or not isinstance(phases, dict):
            return content
        complete = {
            phase: {**general, **settings} if isinstance(settings, dict) else settings
            for phase, settings in phases.items()
        }
        return {**content, "phases": complete}

    def propagation_in(self, phase: Phase) -> Propagation:
        """The settings of propagation in one phase."""
        return self.phases.get(phase, self.propagation)


class ClassifierChoice(Settings):
    """A classifier that any recipe's network may be tested with, an entry of classifiers.yaml."""

    label: str = Field(description="how tables call it")
    classifier: NamedClassifier = Field(
        description="a name of epcore.classifiers, or its `name` and settings"
    )
    grid: dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(
        default_factory=dict,
        description="setting -> values of which the best is taken on validation episodes",
    )

    @property
    def class_name(self) -> str:
        """The name of the classifier, a dotted path if its class is a user's."""
        classifier = self.classifier
        return classifier if isinstance(classifier, str) else str(classifier["name"])


class Candidates(Settings):
    """Settings of which validation chooses, for each phase: a recipe each, by its name."""

    pretraining: dict[str, Pretraining] = Field(description="name -> its settings of pretraining")
    finetuning: dict[str, Finetuning] = Field(description="name -> its settings of fine-tuning")


class RecipeSources(Settings):
    """Partial recipes: a protocol reads the paper one way, a recipe changes it."""

    protocols: dict[str, dict[str, Any]] = Field(description="readings of the paper")
    recipes: dict[Name, dict[str, Any]] = Field(description="what is trained and tested")
