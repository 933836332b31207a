"""The config of each stage: the slice of all config that it reads, and nothing else.

The workflow passes a stage a digest of its slice, so a change of config re-runs just the stages
that read it. White space and comments in the code re-run nothing.
"""

from pydantic import PositiveInt

from epcore.files import canonical_json
from epcore.plan.recipe_models import Backbone, Precision, View
from epcore.plan.settings import Settings


def config_text(settings: Settings) -> str:
    """A stage's config as canonical JSON, of which the digest is made."""
    return canonical_json(settings.model_dump(mode="json"))


class Stage(Settings):
    """What every stage's config has.

    stage_version: raised by hand whenever a stage's code changes its results, which re-runs it.
    """

    stage_version: int


class ComputingStage(Stage):
    """Compute with torch.

    threads: of the computation. Sums in another number of threads have another order, so results
    depend on it; a machine with fewer cores is slower and gives the same.
    """

    threads: PositiveInt = 1


class NetworkStage(ComputingStage):
    """Run a network over images."""

    backbone: Backbone
    view: View
    precision: Precision
