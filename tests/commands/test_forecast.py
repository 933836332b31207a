"""The forecast: jobs times medians by hand, an estimate against an independent count."""

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from torch import nn

from epcore.backbones.build import build_backbone
from epcore.backbones.config import BackboneConfig
from epcore.commands.dry_run import Job
from epcore.commands.estimate import estimate, multiply_adds
from epcore.commands.forecast import costs, format_forecast, run
from epcore.errors import UserError
from epcore.footprint.energy import frame_of
from epcore.footprint.medians import Key, Median, medians, read_medians
from epcore.footprint.rows import record
from epcore.plan import Plan
from epcore.plan.registry import main_config

CONFIG = Path(__file__).parents[2] / "config"
CONV4 = Key("pretrain", "glyph-mini", "conv4", "", "cpu")
MODEL = "results/demo/models/glyph-mini/{}/epnet/s{}/pretrain.pt"


def job(stage, gpu=True, **wildcards):
    names = {"dataset": "glyph-mini", "backbone": "conv4", "recipe": "epnet", "seed": "0"}
    return Job(rule=stage or "all", stage=stage, wildcards=names | wildcards, gpu=gpu)


@pytest.fixture
def demo():
    return Plan(CONFIG, "demo")


# -- medians ---------------------------------------------------------------------------------------


@pytest.fixture
def used(attempt):
    """The row of an attempt that used so much energy, measured as it is."""
    return lambda number, kwh, **changes: attempt(
        attempt=number, at=number, cpu_kwh=kwh, ram_kwh=0, **changes
    )


def test_medians_are_over_finished_jobs_with_the_attempts_that_failed_before(used):
    def trained(number, backbone, seed, seconds, **changes):
        path = MODEL.format(backbone, seed)
        return used(number, seconds / 1000, job=path, seconds=seconds, **changes)

    rows = [
        trained("1", "conv4", 0, 100),
        trained("2", "conv4", 1, 50, state="failed"),
        trained("3", "conv4", 1, 150),
        trained("4", "conv4", 2, 900),
        trained("5", "conv4", 3, 1, state="running"),
        trained("6", "wrn", 0, 7, device="Tesla V100"),
        used("7", 1, job="results/demo/imagenet-fs/glyph-large/resnet10/s0/scores/lwof",
             stage="imagenet-fs-evaluate", seconds=5),
        used("8", 0, job="results/demo/tables/main.csv", stage="table", seconds=2),
        used("9", 0, job="results/demo/data/glyph-mini/store.json", stage="data", seconds=3),
    ]  # fmt: skip
    alike = {
        ("imagenet-fs-evaluate", "glyph-large", "resnet10", "", "cpu"): (1, 5, 1),
        ("table", "", "", "", "cpu"): (1, 2, 0),
        CONV4: (3, 200, 0.2),
        ("pretrain", "glyph-mini", "wrn", "", "gpu"): (1, 7, 0.007),
        ("data", "glyph-mini", "", "", "cpu"): (1, 3, 0),
    }
    pooled = {(stage, "", *rest): found for (stage, _, *rest), found in alike.items()}
    found = medians(frame_of(rows))
    assert found.keys() == (alike | pooled).keys()
    for key, median in (alike | pooled).items():
        assert found[key] == pytest.approx(median)


def test_data_sets_and_compared_methods_are_not_alike_and_other_recipes_are(used):
    where = "results/demo/models/{}/conv4/{}/s0/{}.pt"
    jobs = [
        ("pretrain", where.format("glyph-mini", "epnet", "pretrain"), 10),
        ("pretrain", where.format("glyph-mini", "net", "pretrain"), 20),
        ("pretrain", where.format("glyph-tiered", "net", "pretrain"), 300),
        ("meta-train", where.format("glyph-mini", "maml", "meta-1shot"), 500),
        ("meta-train", where.format("glyph-mini", "gnn", "meta-1shot"), 7),
    ]
    rows = [used(job, 0, job=job, stage=stage, seconds=seconds) for stage, job, seconds in jobs]
    found = medians(frame_of(rows))
    assert {key[:-1]: median.seconds for key, median in found.items()} == {
        ("pretrain", "glyph-mini", "conv4", ""): 15,
        ("pretrain", "glyph-tiered", "conv4", ""): 300,
        ("pretrain", "", "conv4", ""): 20,
        ("meta-train", "glyph-mini", "conv4", "maml"): 500,
        ("meta-train", "glyph-mini", "conv4", "gnn"): 7,
        ("meta-train", "", "conv4", ""): 253.5,
    }


def test_the_command_prints_the_file_that_ships(tmp_path, monkeypatch, capsys, used):
    monkeypatch.chdir(tmp_path)
    for seed, seconds in enumerate((10, 30)):
        row = used(str(seed), 0.5, job=MODEL.format("conv4", seed), seconds=seconds)
        record(Path("results/demo/energy"), row)
    run([], CONFIG, main_config(CONFIG), None, medians_alone=True)
    file = Path("measured.csv")
    file.write_text(capsys.readouterr().out)
    assert read_medians(file, "demo") == dict.fromkeys((CONV4, CONV4.pooled), Median(2, 20, 0.5))
    assert read_medians(file, "paper") == {}


@pytest.mark.parametrize(("seeds", "said"), [([3], "seed 3"), (3, "seeds 0, 1, 2")])
def test_the_forecast_says_which_seeds_it_is_of(monkeypatch, capsys, seeds, said):
    monkeypatch.setattr("epcore.commands.forecast.planned", lambda *_: [])
    run(["all"], CONFIG, main_config(CONFIG, {"seeds": seeds}), "cpu", False)
    assert capsys.readouterr().out.endswith(f"trainings on the CPU with {said}.\n")


def test_what_ships_is_of_stages_and_backbones_that_there_are(demo):
    from epcore.commands.stages import COMPUTE, REPORT

    shipped = read_medians(CONFIG / "measured.csv", "demo")
    assert shipped
    networks = demo.imagenet_fs.settings.networks
    for (stage, dataset, backbone, recipe, device), found in shipped.items():
        assert stage in COMPUTE | REPORT
        assert dataset in ("", *demo.registry.datasets)
        assert recipe in ("", *demo.registry.recipes.compared)
        assert backbone in ("", *demo.registry.scale.backbones, *networks)
        assert device in ("cpu", "gpu")
        assert found.seconds > 0


def test_a_damaged_file_is_named(tmp_path):
    file = tmp_path / "measured.csv"
    for line in ("demo,pretrain,,conv4,,cpu,one,2,3", "demo,pretrain"):
        file.write_text(f"\n{line}\n")
        assert read_medians(file, "paper") == {}
        with pytest.raises(UserError, match=r"measured\.csv, line 2: it is not scale, stage"):
            read_medians(file, "demo")
    file.write_text("demo,pretrain,é\n", encoding="utf-16")
    with pytest.raises(UserError, match=r"measured\.csv: it is not scale, stage, .*decode"):
        read_medians(file, "demo")


# -- the estimate ----------------------------------------------------------------------------------


def counted(network, pixels):
    """Multiply-adds by hooks on every convolution of a real forward pass."""
    found = []

    def count(layer, _, output):
        found.append(layer.weight.numel() * output.shape[-1] * output.shape[-2])

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(count)
    with torch.no_grad():
        network.eval()(torch.zeros(1, 3, pixels, pixels))
    return sum(found)


@pytest.mark.parametrize(
    ("architecture", "width", "depth", "pixels"),
    [
        ("conv4", "1", "1", 84),
        ("resnet12", "1/4", "1", 45),
        ("wide-resnet", "1/5", "1/4", 45),
        ("resnet10", "1/4", "1", 28),
        ("resnet18", "1/8", "1", 45),
    ],
)
def test_multiply_adds_are_what_a_forward_pass_computes(architecture, width, depth, pixels):
    network = build_backbone(architecture, Fraction(width), Fraction(depth))
    settings = BackboneConfig(architecture=architecture, width=width, depth=depth)
    assert multiply_adds(settings, pixels) == counted(network, pixels)


def test_a_training_is_images_times_multiply_adds_times_three_over_the_rate(config):
    """64 classes of 60 drawn images in four rotations; Omniglot's 82,240 are not rotated.

    Of 28 pixels a view of 80 of 84 sees 27.
    """
    (config / "scales/hand.yaml").write_text(
        "extends: demo\nrecipe:\n  pretraining: {epochs: 3}\n"
        "  finetuning: {epochs: 2, episodes_per_epoch: 5, queries: 4}\nresources: {threads: 2}\n"
    )
    file = config / "footprint.yaml"
    rates = re.sub("(?m)^multiply_adds: .*", "multiply_adds: {cpu: 5.0e+8, gpu: 7.0e+9}",
                   file.read_text())  # fmt: skip
    file.write_text(rates)
    plan = Plan(config, "hand")
    size = plan.registry.scale.backbones["conv4"]
    one = counted(build_backbone("conv4", size.width, size.depth), 28)
    for dataset, images in {"glyph-mini": 3 * 64 * 60 * 4, "omniglot": 3 * 82_240}.items():
        found = estimate(plan, job("pretrain", dataset=dataset), "cpu")
        assert found == pytest.approx(images * one * 3 / (2 * 5e8))
    found = estimate(plan, job("finetune", shot="1"), "gpu")
    assert found == pytest.approx(2 * 5 * 5 * (1 + 4) * one * 3 / 7e9)
    size = plan.registry.scale.backbones["wrn"]
    one = counted(build_backbone("wide-resnet", size.width, size.depth), 27)
    found = estimate(plan, job("finetune", backbone="wrn", shot="5"), "cpu")
    assert found == pytest.approx(2 * 5 * 5 * (5 + 4) * one * 3 / (2 * 5e8))


def test_images_of_ones_own_are_counted_where_they_lie(tmp_path, monkeypatch):
    """51 of the 81 classes are base, of three pictures each; without the folder nobody knows."""
    monkeypatch.chdir(tmp_path)
    plan = Plan(CONFIG, "own")
    mine = job("pretrain", dataset="mine")
    assert estimate(plan, mine, "cpu") is None
    for number in range(81):
        folder = tmp_path / f"data/mine/images/c{number}"
        folder.mkdir(parents=True)
        for picture in range(3):
            (folder / f"{picture}.png").touch()
    first, rates = plan.runs.pretraining("mine", "conv4", "epnet"), plan.registry.footprint
    images = first.epochs * 4 * 51 * 3
    cores = plan.registry.scale.resources.threads * rates.multiply_adds.cpu
    one = counted(build_backbone("conv4"), 84)
    assert estimate(plan, mine, "cpu") == pytest.approx(images * one * 3 / cores)


@pytest.mark.parametrize("dataset", ["mini-imagenet", "mini-imagenet-pickles"])
def test_published_data_sets_have_their_published_images(dataset):
    plan = Plan(CONFIG, "paper")
    one = counted(build_backbone("conv4"), 84)
    epochs = plan.runs.pretraining(dataset, "conv4", "epnet").epochs
    found = estimate(plan, job("pretrain", dataset=dataset), "gpu")
    assert found == pytest.approx(
        epochs * 4 * 38_400 * one * 3 / plan.registry.footprint.multiply_adds.gpu
    )


def test_the_classifier_of_imagenet_fs_is_estimated_too():
    plan = Plan(CONFIG, "paper")
    trained = plan.imagenet_fs.settings.classifier
    images = trained.epochs * trained.steps * trained.batch_size
    one = counted(build_backbone("resnet10"), 224)
    names = {"dataset": "imagenet-fs-by-name", "network": "resnet10"}
    found = estimate(plan, Job("x", "imagenet-fs-classifier", names, gpu=True), "gpu")
    assert found == pytest.approx(images * one * 3 / plan.registry.footprint.multiply_adds.gpu)


@pytest.mark.parametrize(
    "unknown",
    [job("embed", checkpoint="pretrain"), job("evaluate"), job("pretrain", dataset="grocery81")],
)
def test_what_is_no_training_or_has_images_that_nobody_counted_is_not_guessed(unknown):
    assert estimate(Plan(CONFIG, "grocery"), unknown, "cpu") is None


def test_a_compared_method_is_estimated_by_its_steps(config):
    """ProtoNet's one step: Conv-4 on 5 x (1 + 15) images of 28 pixels, forward and backward."""
    sides, channels = (28, 14, 7, 3), (3, 64, 64, 64, 64)
    layers = [
        side**2 * 9 * inputs * outputs
        for side, inputs, outputs in zip(sides, channels, channels[1:], strict=False)
    ]
    (config / "scales/hand.yaml").write_text(
        "extends: demo\ncompared:\n  training: {epochs: 2, steps: 7, tasks: 1, queries: 15}\n"
        "  methods: {protonet: {training: {way: 5, steps: 7, queries: 15}}}\n"
    )
    plan = Plan(config, "hand")
    names = {"recipe": "protonet", "shot": "1", "dataset": "glyph-mini"}
    found = estimate(plan, job("meta-train", **names), "gpu")
    expected = 2 * 7 * 5 * (1 + 15) * 3 * sum(layers) / plan.registry.footprint.multiply_adds.gpu
    assert found == pytest.approx(expected)


def test_a_test_that_tunes_a_network_is_estimated_by_its_steps():
    """Each of 100 steps of 40 episodes has 48 images forward and back, and 32 forward alone."""
    plan, size = Plan(CONFIG, "demo"), BackboneConfig(architecture="conv4")
    names = {"recipe": "transmatch", "protocol": "5way-1shot-u100", "dataset": "glyph-mini"}
    found = estimate(plan, job("meta-test", **names), "gpu")
    rate = plan.registry.footprint.multiply_adds.gpu
    assert found == pytest.approx(40 * 100 * (3 * 48 + 32) * multiply_adds(size, 28) / rate)
    assert estimate(plan, job("meta-test", **names | {"recipe": "maml"}), "gpu") is None


# -- the two together ------------------------------------------------------------------------------


def test_what_was_measured_here_comes_before_what_ships_and_that_before_an_estimate(config):
    """What is known of other data sets comes last, for stages without an estimate."""
    (config / "measured.csv").write_text(
        "scale,stage,dataset,backbone,recipe,device,jobs,seconds,kwh\n"
        "demo,pretrain,glyph-mini,conv4,,cpu,1,1800,2\ndemo,pretrain,,wrn,,cpu,1,1800,2\n"
        "demo,finetune,glyph-mini,conv4,,cpu,1,7200,3\n"
        "demo,episodes,,,,cpu,4,36,0.5\npaper,evaluate,,conv4,,cpu,4,36,0.5\n"
    )
    plan = Plan(config, "demo")
    episodes = Job("episodes", "episodes", {}, gpu=False)
    jobs = [job("pretrain"), job("pretrain", seed="1"), job("finetune", shot="1"), episodes]
    jobs += [job("evaluate", gpu=False), job("pretrain", backbone="wrn"), job("", gpu=False)]
    jobs += [job("embed", gpu=False, dataset="omniglot")]
    here = {
        CONV4: Median(3, 900.0, 1.0),
        Key("pretrain", "", "wrn", "", "cpu"): Median(3, 900.0, 1.0),
        Key("embed", "", "conv4", "", "cpu"): Median(3, 72.0, 1.0),
    }
    found = costs(plan, jobs, "cpu", here)
    (seconds, unknown) = found.pop(("pretrain", "estimate"))[0]
    assert unknown is None
    assert seconds == pytest.approx(estimate(plan, job("pretrain", backbone="wrn"), "cpu") / 3600)
    assert found == {
        ("pretrain", "here"): [(0.25, 1), (0.25, 1)],
        ("finetune", "measured"): [(2, 3)],
        ("episodes", "measured"): [(0.01, 0.5)],
        ("evaluate", "unknown"): [(None, None)],
        ("embed", "here"): [(0.02, 1)],
    }
    on_gpu = costs(plan, jobs, "gpu", here)
    assert {source for stage, source in on_gpu if stage == "pretrain"} == {"estimate"}
    assert on_gpu["episodes", "measured"] == found["episodes", "measured"]


def test_the_table_adds_up_what_is_known_and_says_what_is_not():
    found = {
        ("pretrain", "here"): [(0.25, 1.0), (0.5, 2.0)],
        ("finetune", "estimate"): [(200.0, None)],
        ("embed", "unknown"): [(None, None)] * 3,
    }
    lines = format_forecast(found, 0.5).splitlines()
    rows = [line.split() for line in lines[2:6]]
    assert rows[0] == ["pretrain", "2", "0.75", "3", "here"]
    assert rows[1] == ["finetune", "1", "200", "?", "estimate"]
    assert rows[2] == ["embed", "3", "?", "?", "unknown"]
    assert rows[3] == [*["sum", "of", "what", "is", "known"], "3", "201", "3"]
    assert "CO2 of what is known: 1.5 kg" in lines[7]
    assert [line.split(":")[0].strip() for line in lines[8:]] == ["here", "estimate", "unknown"]


def test_torch_is_loaded_only_to_estimate():
    code = (
        "import sys; import epcore.commands.forecast, epcore.commands.dry_run; "
        "print(*{'torch', 'codecarbon', 'psutil'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
