"""Images that go through the network, against images that the episodes of a checkpoint touch."""

import tempfile
from pathlib import Path

import torch
from measure import row
from stores import noise_store
from torch import nn

from epcore.backbones import Backbone
from epcore.checkpoint import Checkpoint, build, state_of
from epcore.data.episodes import pool_of, sample
from epcore.evaluation import embed
from epcore.plan import Plan


def main() -> None:
    seen = 0

    def count(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: object) -> None:
        nonlocal seen
        if isinstance(module, Backbone):
            seen += len(inputs[0])

    stage = Plan(Path("config"), "demo").runs.embed("conv4", "epnet")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = noise_store(folder / "noise", 28, 24, 60)
        files, touched, asked = [], set(), 0
        for number, (shot, unlabeled) in enumerate([(1, 0), (5, 0), (1, 20)]):
            episodes = sample(pool_of(store, "novel"), 5, shot, 15, 10, number, unlabeled=unlabeled)
            files.append(folder / f"{number}.npz")
            episodes.save(files[-1])
            touched |= set(episodes.unique_image_indices().tolist())
            asked += episodes.images().size
        backbone = build(stage.backbone)
        head = state_of(nn.Linear(backbone.feature_size, 2))
        checkpoint = folder / "checkpoint.pt"
        Checkpoint(stage.backbone, state_of(backbone), head).save(checkpoint)
        handle = nn.modules.module.register_module_forward_hook(count)
        embed.run(stage, folder / "noise", checkpoint, files, folder / "features.npz")
        handle.remove()
    row(
        "images through the network for each image that a checkpoint's episodes touch",
        seen / len(touched),
        1,
        False,
        f"{seen} for {len(touched)} in 3 files of episodes, where they stand {asked} times",
    )


if __name__ == "__main__":
    main()
