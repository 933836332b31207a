"""Jobs of targets: a file that stands beside another is made by the same job."""

from pathlib import Path

import pytest

from epcore.errors import UserError
from epcore.plan import Plan, paths
from epcore.plan.jobs import Jobs

CONFIG = Path(__file__).parents[2] / "config"
MODELS = "results/demo/models/glyph-mini/conv4/epnet/s0"
FS = "results/demo/imagenet-fs/glyph-large/resnet10/s0"
EXEMPLARS = "results/demo/imagenet-fs/glyph-large/exemplars"


@pytest.fixture(scope="module")
def jobs():
    return Jobs(Plan(CONFIG, "demo"))


@pytest.mark.parametrize(
    ("made", "beside"),
    [
        ("results/demo/tables/main.tex", "results/demo/tables/main.html"),
        ("results/demo/tables/imagenetfs.tex", "results/demo/tables/imagenetfs.html"),
        ("results/demo/figures/alpha.pdf", "results/demo/figures/alpha.png"),
        ("results/demo/figures/alpha.pdf", "results/demo/figures/alpha.csv"),
        ("results/demo/figures/two-moons.pdf", "results/demo/figures/two-moons-numbers.csv"),
        ("results/demo/tables/main.csv", "results/demo/tables/main.meta.json"),
        (f"{MODELS}/pretrain.pt", f"{MODELS}/pretrain.meta.json"),
        (f"{MODELS}/pretrain.pt", f"{MODELS}/pretrain.csv"),
        (f"{MODELS}/finetune-1shot.pt", f"{MODELS}/finetune-1shot.csv"),
        (f"{FS}/classifier.pt", f"{FS}/classifier.csv"),
        (f"{FS}/scores/wdae-gnn", f"{FS}/scores/wdae-gnn/all-prior-20shot.csv"),
        (f"{FS}/scores/wdae-gnn", f"{FS}/scores/wdae-gnn/novel-1shot.meta.json"),
        (EXEMPLARS, f"{EXEMPLARS}/val-5shot.npz"),
        (EXEMPLARS, f"{EXEMPLARS}/novel-1shot.meta.json"),
        ("results/demo/data/glyph-mini/store.json", "results/demo/data/glyph-mini/images.npy"),
        ("results/demo/reports/co2.csv", "results/demo/tables/co2.tex"),
        ("results/demo/reports/co2.csv", "results/demo/figures/co2.png"),
    ],
)
def test_files_that_stand_beside_each_other_are_of_one_job(jobs, made, beside):
    assert jobs.of(beside) == jobs.of(made)
    assert jobs.of(beside)[-1].path == made


@pytest.mark.parametrize("table", ["main", "imagenetfs"])
def test_the_numbers_of_a_table_are_all_that_typesetting_needs(jobs, table):
    numbers, *more = (f"results/demo/tables/{table}.{end}" for end in ("csv", "tex"))
    assert jobs.of(numbers) == jobs.of(*more)[:-1]


@pytest.mark.parametrize("scale", ["demo", "small", "paper", "grocery"])
def test_the_co2_report_waits_for_all_that_is_not_a_copy(scale):
    jobs = Jobs(Plan(CONFIG, scale))
    later = {job.rule for job in {*jobs.of("all")} - {*jobs.of("reports/co2.csv")}}
    assert {rule for rule in later if not rule.startswith("publish_")} == {"all"}


@pytest.mark.parametrize(
    "file",
    [
        *("figures/alfa.pdf", "tables/mein.csv", "models/x/pretrain.pt"),
        "models/glyph-mini/conv4/net/sx/pretrain.pt",
        *("sources/cifar-10.json", "figures/data/glyph-mni.png", "reports/co3.csv"),
        *(f"imagenet-fs/glyph-large/{file}" for file in ("exemplars/val-3shot.npz", "scores.csv")),
    ],
)
def test_a_file_that_no_rule_makes_is_unknown(jobs, file):
    assert jobs.of_file(f"results/demo/{file}") is None


def test_a_figure_that_a_scale_has_no_runs_of_is_no_file_of_it():
    of_conv4_alone = Jobs(Plan(CONFIG, "grocery"))
    assert of_conv4_alone.of_file("results/grocery/figures/interpolation.pdf") is None


def test_an_unknown_target_names_the_nearest_few(jobs):
    with pytest.raises(UserError) as caught:
        jobs.of("figures/alfa.pdf")
    assert "did you mean 'figures/alpha.pdf'" in str(caught.value)
    assert str(caught.value).count("'figures/") <= 4


def test_with_several_seeds_what_tables_test_is_trained_with_each_and_what_figures_add_once():
    one, three = (Plan(CONFIG, "demo", seeds) for seeds in (1, 3))
    trained = {
        plan: [job for job in Jobs(plan).of("all") if job.rule in ("pretrain", "finetune")]
        for plan in (one, three)
    }
    tested = {cell.checkpoint_meta for table in one.tables for cell in one.cells(table)}
    pretrained = {
        (job.dataset, job.backbone, one.pretrained_as(job.backbone, job.recipe))
        for job in trained[one]
        if paths.meta(job.path) in tested
    }
    for job in trained[one]:
        name = (job.dataset, job.backbone, job.recipe)
        more = paths.meta(job.path) in tested or (job.rule == "pretrain" and name in pretrained)
        seeds = {
            each.seed
            for each in trained[three]
            if (each.dataset, each.backbone, each.recipe, each.checkpoint)
            == (*name, job.checkpoint)
        }
        assert seeds == ({"0", "1", "2"} if more else {"0"}), job.path
    alone = {job.recipe for job in trained[three] if job.recipe.startswith("alpha-")}
    assert alone == {"alpha-02", "alpha-035", "alpha-065", "alpha-08"}
