"""How far apart two recipes are while they train: seeds, batches and lengths kept apart."""

from pathlib import Path

import pytest
from figure_files import lines_of
from plans import plan_of

from epcore.plan.paths import curve
from epcore.report import gap

HEAD = "epoch,learning_rate,train_loss,val_accuracy,val_loss"


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """The pairs of the grid, and curves whose gap is (epoch - length) / 100 plus the seed's."""
    monkeypatch.chdir(tmp_path)
    stage = plan_of("batch-epochs").curves.gap()
    for pair in stage.pairs:
        length = int(pair.line.split()[0])
        write(pair.baseline, [0.5] * length)
        write(pair.checkpoint, [0.5 + (n - length + pair.seed) / 100 for n in range(length)])
    return stage


def write(checkpoint, accuracies):
    path = Path(curve(checkpoint))
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{n},0.1,1,{accuracy},1" for n, accuracy in enumerate(accuracies)]
    path.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")


def test_there_is_a_pair_for_each_batch_length_and_seed_and_both_differ_in_propagation_alone(stage):
    plan = plan_of("batch-epochs")
    named = {(pair.panel, pair.line, pair.seed) for pair in stage.pairs}
    assert len(named) == len(stage.pairs)
    assert {seed for _, _, seed in named} == set(plan.registry.seeds)
    for pair in stage.pairs:
        one, other = (
            plan.registry.recipes.resolve(file.split("/")[5], "conv4").model_dump()
            for file in (pair.checkpoint, pair.baseline)
        )
        settings = one["pretraining"]
        assert f"batches of {settings['batch_size']} images" == pair.panel
        assert f"{settings['epochs']} epochs" == pair.line
        assert (one["propagation"].pop("embedding"), other["propagation"].pop("embedding")) == (
            True,
            False,
        )
        assert one["propagation"] == other["propagation"]
        assert settings == other["pretraining"]
        assert f"/s{pair.seed}/" in pair.checkpoint
        assert f"/s{pair.seed}/" in pair.baseline


def test_the_numbers_are_differences_of_the_same_epoch_and_seed(stage):
    gap.run(stage, Path("figures/gap.pdf"))
    lines = lines_of(Path("figures/gap.csv"))
    assert len(lines) == sum(int(pair.line.split()[0]) for pair in stage.pairs)
    for line in lines:
        length, epoch = int(line["line"].split()[0]), int(line["epoch"])
        assert float(line["gap"]) == pytest.approx(epoch - 1 - length + int(line["seed"]))
