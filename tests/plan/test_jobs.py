"""Jobs of targets: a file that stands beside another is made by the same job."""

from pathlib import Path

import pytest

from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.jobs import Jobs

CONFIG = Path(__file__).parents[2] / "config"
MODELS = "results/demo/models/glyph-mini/conv4/epnet/s0"
FS = "results/demo/imagenet-fs/glyph-large/resnet10/s0"


@pytest.fixture(scope="module")
def jobs():
    return Jobs(Plan(CONFIG, "demo"))


@pytest.mark.parametrize(
    ("made", "beside"),
    [
        ("results/demo/tables/main.tex", "results/demo/tables/main.html"),
        ("results/demo/tables/imagenetfs.tex", "results/demo/tables/imagenetfs.html"),
        ("results/demo/figures/alpha.pdf", "results/demo/figures/alpha.png"),
        (f"{MODELS}/pretrain.pt", f"{MODELS}/pretrain.csv"),
        (f"{MODELS}/finetune-1shot.pt", f"{MODELS}/finetune-1shot.csv"),
        (f"{FS}/classifier.pt", f"{FS}/classifier.csv"),
    ],
)
def test_files_that_stand_beside_each_other_are_of_one_job(jobs, made, beside):
    assert jobs.of(beside) == jobs.of(made)
    assert jobs.of(beside)[-1].path == made


@pytest.mark.parametrize("table", ["main", "imagenetfs"])
def test_the_numbers_of_a_table_are_all_that_typesetting_needs(jobs, table):
    numbers, *more = (f"results/demo/tables/{table}.{end}" for end in ("csv", "tex"))
    assert jobs.of(numbers) == jobs.of(*more)[:-1]


def test_an_unknown_target_names_the_nearest_few(jobs):
    with pytest.raises(UserError) as caught:
        jobs.of("figures/alfa.pdf")
    assert "did you mean 'figures/alpha.pdf'" in str(caught.value)
    assert str(caught.value).count("'figures/") <= 4
