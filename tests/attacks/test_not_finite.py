"""Numbers that are not finite, wherever they come in, never become an accuracy."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from epcore.backbones.checkpoint import Checkpoint
from epcore.errors import UserError
from epcore.evaluation.embed import Features
from epcore.imagenet_fs.features import ImageFeatures
from epcore.propagation import DegenerateFeaturesError

VALUES = [float("nan"), float("inf"), float("-inf")]


def own(project, part, name, value):
    """A checkpoint with another number, as weights of one's own without a meta file."""
    content = torch.load(project / "net.pt", weights_only=True)
    content[part][name].view(-1)[0] = value
    torch.save(content, project / "own.pt")
    return "own.pt"


def weights(project):
    content = torch.load(project / "net.pt", weights_only=True)
    return {part: content[part] for part in ("weights", "class_head")}


@pytest.mark.parametrize("value", VALUES)
def test_each_number_of_a_checkpoint_is_finite_also_those_that_no_feature_shows(project, value):
    """A running variance that is infinite makes every feature behind it zero."""
    kinds = ("running_var", "running_mean", "weight", "bias")
    for part, state in weights(project).items():
        for kind in kinds:
            if named := [name for name in state if name.endswith(kind)]:
                out = f"{part}-{kind}.npz"
                assert project.embed(weights=own(project, part, named[-1], value), out=out) == 2
                project.complaint("own.pt", f"its {part} are not finite in {named[-1]}")
                assert not (project / out).exists()


def test_weights_that_are_not_finite_are_not_saved(project, stage_config):
    made = Checkpoint.load(project / "net.pt", stage_config("embed").backbone)
    made.weights["blocks.0.0.weight"].view(-1)[0] = float("nan")
    with pytest.raises(UserError, match=r"new\.pt is not written: its weights are not finite in"):
        made.save(project / "new.pt")
    assert not (project / "new.pt").exists()


def test_a_base_mean_that_is_not_finite_is_refused(project):
    assert project.base_classes() == 0
    (project / "base.meta.json").unlink()
    arrays = dict(np.load(project / "base.npz"))
    arrays["mean"][0] = np.nan
    np.savez(project / "base.npz", **arrays)
    assert project.evaluate_classifiers(base="base.npz") == 2
    project.complaint("base.npz", "must be finite")


@pytest.mark.parametrize("size", [1e25, 3e38])
def test_finite_features_whose_distances_are_not_are_no_accuracy(project, size):
    """Squares overflow; the largest of scores that are all -inf would be the first class."""
    features = Features.load(project / "features.npz")
    largest = np.abs(features.values).max()
    replace(features, values=features.values / largest * np.float32(size)).save(
        project / "huge.npz"
    )
    assert project.evaluate(features="huge.npz") == 2
    project.complaint("huge.npz", "prototypes gives scores that are not finite", "features of up")
    assert not (project / "scores.csv").exists()


def test_a_network_whose_features_are_not_finite_is_not_validated(project, stage_config):
    """Without propagation their accuracy would be that of the first class."""
    from epcore.data.episodes import Episodes
    from epcore.data.store import ImageStore
    from epcore.training.session import Validator

    stage = stage_config("pretrain", "net")
    assert not stage.propagation.embedding
    store = ImageStore.open(project / "toy")
    validate = Validator(store, Episodes.load(project / "val.npz"), stage, torch.device("cpu"))

    class Broken(torch.nn.Module):
        feature_size = 4

        def forward(self, images):
            return torch.full((len(images), 4), torch.nan)

    with pytest.raises(DegenerateFeaturesError, match="the features are not finite"):
        validate(Broken())


@pytest.mark.parametrize("value", VALUES)
def test_features_of_all_images_are_finite_where_they_are_read(value):
    class Store:
        name = "many"

    values = np.ones((3, 4), dtype=np.float32)
    values[2, 1] = value
    features = ImageFeatures(Store(), values)
    assert features.of(np.array([0, 1])).shape == (2, 4)
    with pytest.raises(UserError, match="features of data set many are not finite"):
        features.of(np.array([[1], [2]]))
