"""Tasks on the toy data set."""

import pytest
import torch

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """Equal to the last bit, also on a machine with a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(scope="session")
def store(toy):
    from epcore.data.store import ImageStore

    return ImageStore.open(toy.data)


@pytest.fixture(scope="session")
def validation(toy):
    from epcore.data.episodes import Episodes

    return Episodes.load(toy.val)


@pytest.fixture
def pretraining(stage_config, store, validation):
    """A pretraining task: pretraining("net", "conv4", seed=1, pretraining={...})."""
    from epcore.training.pretrain import PretrainingTask

    def build(*arguments, kind=PretrainingTask, **changes):
        return kind(stage_config("pretrain", *arguments, **changes), store, validation, CPU)

    return build


@pytest.fixture
def finetuning(stage_config, store, validation):
    """A fine-tuning task that starts from an untrained network."""
    from epcore.backbones.checkpoint import Checkpoint, build, state_of
    from epcore.training.finetune import FinetuningTask

    def make(*arguments, kind=FinetuningTask, classes=6, **changes):
        stage = stage_config("finetune", *arguments, **changes)
        torch.manual_seed(5)
        backbone = build(stage.backbone)
        head = torch.nn.Linear(backbone.feature_size, classes)
        checkpoint = Checkpoint(stage.backbone, state_of(backbone), state_of(head))
        return kind(stage, store, validation, checkpoint, CPU)

    return make


@pytest.fixture
def slope_and_gradient():
    """The loss's slope along the gradient of the first convolution, measured and by backward.

    The measured slope takes every way by which the weights act on the loss.
    """

    def measure(task, loss):
        weights = next(p for p in task.model.parameters() if p.dim() == 4)
        task.model.train()
        loss().backward()
        gradient = weights.grad.norm().item()
        step = 1e-3 * weights.grad / weights.grad.norm()
        with torch.no_grad():
            weights += step
            above = loss().item()
            weights -= 2 * step
            below = loss().item()
        return (above - below) / 2e-3, gradient

    return measure
