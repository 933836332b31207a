"""A job computes with the threads of its config, whatever Snakemake scales its rule's down to."""

import json
import os
import subprocess
import sys

import pytest

from epcore.commands.stages import COMPUTE
from epcore.settings import ComputeConfig


def pretrained(stage, toy, folder, threads_outside):
    """Weights and threads of a pretraining in a process of its own, as a rule starts it."""
    folder.mkdir()
    libraries = ("OMP", "MKL", "OPENBLAS")
    environment = {f"{library}_NUM_THREADS": threads_outside for library in libraries}
    files = {"data": toy.data, "episodes": toy.val, "out": folder / "pretrain.pt"}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    command = [sys.executable, "-m", "epcore", "pretrain", "--config", stage.model_dump_json()]
    subprocess.run([*command, *options, "--gpus", "0"], env=os.environ | environment, check=True)
    meta = json.loads((folder / "pretrain.meta.json").read_text(encoding="utf-8"))
    return (folder / "pretrain.pt").read_bytes(), meta["threads"]


@pytest.mark.slow
def test_weights_depend_on_the_threads_of_the_config_and_on_no_others(toy, tmp_path, stage_config):
    longer = {"pretraining": {"epochs": 1, "batch_size": 16}}
    two, one = (stage_config("pretrain", threads=threads, **longer) for threads in (2, 1))
    under_one, threads = pretrained(two, toy, tmp_path / "two-of-one", "1")
    assert threads == "2"
    assert pretrained(two, toy, tmp_path / "two-of-two", "2")[0] == under_one
    assert pretrained(one, toy, tmp_path / "one-of-two", "2")[0] != under_one


def test_whatever_computes_with_torch_has_the_threads_of_its_resources():
    """Of every stage whose rule may have more threads than one."""
    from plans import plan_of

    plan = plan_of("paper")
    resources, networks = plan.registry.scale.resources, plan.imagenet_fs.scale.resources
    run = ("conv4", "epnet")
    expected = (
        (plan.runs.pretrain("mini-imagenet", *run, 0), resources),
        (plan.runs.finetune(*run, 0, 1), resources),
        (plan.runs.embed(*run), resources.embed),
        (plan.runs.base_classes(*run), resources.embed),
        (plan.runs.evaluate(*run), resources.evaluate),
        (plan.runs.compared.meta_train("mini-imagenet", "conv4", "protonet", 0, 1), resources),
        (
            plan.runs.compared.meta_test("mini-imagenet", "conv4", "protonet", "5way-1shot"),
            resources.embed,
        ),
        (plan.imagenet_fs.classifier("resnet10", 0), networks.network),
        (plan.imagenet_fs.features("resnet10"), networks.features),
        (plan.imagenet_fs.generator("wdae-gnn"), networks.weights),
        (plan.imagenet_fs.evaluate("wdae-gnn"), networks.weights),
    )
    for stage, asked in expected:
        assert isinstance(stage, ComputeConfig)
        assert stage.threads == asked.threads > 1
    names = {type(stage).__name__ for stage, _ in expected}
    devices = {stage.config.__name__ for stage in COMPUTE.values() if stage.gpu and stage.config}
    assert devices <= names
