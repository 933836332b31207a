"""What the tables ask for: nothing twice, the same thing once, and every number of the paper."""

import csv
import re
from collections import defaultdict
from pathlib import Path

import pytest
from plans import flat, plan_of

from epcore.data.builders.glyph_classes import select_classes
from epcore.plan import Plan, paths
from epcore.plan.run import Run
from epcore.plan.table_files import protocol_of
from epcore.settings import config_text

CONFIG = Path(__file__).parents[2] / "config"
DATASET = "glyph-mini"  # any but one whose rotations are classes
SCALES = ("demo", "paper", "batch-epochs")  # recipes are the same at every other
PHASES = ("pretraining", "finetuning", "testing")


def plan(scale="paper"):
    return plan_of(scale)


EVERY_TABLE = plan().tables.every
TABLES = [name for name, table in EVERY_TABLE.items() if table.imagenet_fs is None]


def tables_of(p):
    """The tables of a scale but those of ImageNet-FS."""
    return [name for name in p.tables.shown if name in TABLES]


def rows_of(table):
    return {(b.name, row.name): row for b in plan().tables.table(table).blocks for row in b.rows}


def cells(table, scale="paper"):
    """(block, row, column) -> cell."""
    return {(c.block, c.row, c.column): c for c in plan(scale).tables.measured(table)}


def all_cells(scale):
    return [cell for table in tables_of(plan(scale)) for cell in plan(scale).tables.measured(table)]


def parts_of(path, pattern):
    """The wildcards of a path."""
    found = re.fullmatch(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(pattern)), path)
    assert found, path
    return found.groupdict()


def where_of(scores):
    """What a test is of; the recipe of a classifier's column is `net+simpleshot`."""
    if scores.column == "accuracy":
        return parts_of(scores.file, paths.SCORES)
    where = parts_of(scores.file, paths.CLASSIFIED)
    return where | {"recipe": f"{where['recipe']}+{scores.column}"}


def groups(names, key):
    """The sets of names that have the same key."""
    found = defaultdict(set)
    for name in names:
        found[key(name)].add(name)
    return sorted(map(sorted, found.values()))


def settings_of(recipe, scale):
    """Path -> value; of the phases what differs from the settings of propagation."""
    resolved = plan(scale).registry.recipes.resolve(recipe, "conv4")
    dumped = resolved.model_dump(exclude={"description"})
    general = dumped["propagation"]
    dumped["phases"] = {
        phase: {key: value for key, value in settings.items() if value != general[key]}
        for phase, settings in dumped["phases"].items()
    }
    return flat(dumped)


def changed(recipe, other="epnet", scale="paper"):
    """The settings in which a recipe differs from another: path -> its value."""
    one, two = settings_of(recipe, scale), settings_of(other, scale)
    return {path: one[path] for path in one if path not in two or one[path] != two[path]}


# -- what is shared, and what is not ---------------------------------------------------------------


def makes(p, backbone, name, phase, shot=1):
    """The config of a recipe's training, or the candidates that it chooses from."""
    if chosen := p.registry.recipes.selection(name, phase):
        return chosen
    if phase == "pretraining":
        return config_text(p.runs.pretrain(DATASET, backbone, name, 0))
    return config_text(p.runs.finetune(backbone, name, 0, shot))


@pytest.mark.parametrize("scale", SCALES)
def test_recipes_share_a_checkpoint_if_and_only_if_they_are_trained_alike(scale):
    """Alike: from the same checkpoint, of the same config, or chosen from the same."""
    p = plan(scale)
    for backbone in p.registry.scale.backbones:
        first = groups(
            p.registry.recipes.names, lambda name, b=backbone: p.runs.owner("pretraining", b, name)
        )
        assert first == groups(
            p.registry.recipes.names, lambda name, b=backbone: makes(p, b, name, "pretraining")
        )
        second = groups(
            p.registry.recipes.names, lambda name, b=backbone: p.runs.owner("finetuning", b, name)
        )
        for shot in (1, 5):

            def training(name, b=backbone, shot=shot):
                pretrained = makes(p, b, name, "pretraining")
                return pretrained, makes(p, b, name, "finetuning", shot)

            assert second == groups(p.registry.recipes.names, training)
        assert len(first) < len(second) < len(p.registry.recipes.names)


@pytest.mark.parametrize("scale", SCALES)
def test_recipes_share_scores_if_and_only_if_one_checkpoint_is_tested_alike(scale):
    p = plan(scale)
    for backbone in p.registry.scale.backbones:
        shared = groups(
            p.registry.recipes.names, lambda name, b=backbone: p.runs.owner("testing", b, name)
        )

        def test(name, b=backbone):
            training = [makes(p, b, name, "pretraining")]
            if p.registry.recipes.resolve(name, b).tested == "finetuned":
                training.append(makes(p, b, name, "finetuning"))
            return (*training, config_text(p.runs.evaluate(b, name)))

        assert shared == groups(p.registry.recipes.names, test)


@pytest.mark.parametrize("phase", PHASES)
def test_what_recipes_share_is_named_after_the_first_of_them_in_the_file(phase):
    p = plan()
    for backbone in p.registry.scale.backbones:
        owners = {name: p.runs.owner(phase, backbone, name) for name in p.registry.recipes.names}
        for name, owner in owners.items():
            assert owners[owner] == owner
            assert p.registry.recipes.names.index(owner) <= p.registry.recipes.names.index(name)


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_has_exactly_one_file_of_scores_and_every_file_one_way_to_make_it(scale):
    p, made = plan(scale), defaultdict(set)
    for cell in all_cells(scale):
        where = where_of(cell.scores)
        backbone, recipe, protocol = (where[name] for name in ("backbone", "recipe", "protocol"))
        # As the rule `evaluate` finds them, from the path alone.
        run = Run(where["dataset"], backbone, recipe, int(where["seed"]), protocol)
        if p.compared.has(recipe):  # as the rule `meta_test` does
            checkpoint = p.runs.trained(run)
            assert paths.meta(checkpoint) == cell.checkpoint_meta
            tested = config_text(p.compared.meta_test(where["dataset"], backbone, recipe, protocol))
            made[cell.scores].add((checkpoint, protocol, tested))
            continue
        features = p.runs.features(run)
        tested = parts_of(features, paths.FEATURES)
        assert paths.meta(paths.CHECKPOINT.format(**tested)) == cell.checkpoint_meta
        made[cell.scores].add((features, protocol, config_text(p.runs.evaluate(backbone, recipe))))
    assert all(len(ways) == 1 for ways in made.values())
    assert len(set.union(*made.values())) == len(made)


@pytest.mark.parametrize("scale", SCALES)
def test_the_classifiers_of_tables_are_those_that_the_job_of_their_file_tests(scale):
    p = plan(scale)
    asked = defaultdict(set)
    for cell in all_cells(scale):
        if cell.scores.column != "accuracy":
            asked[cell.scores.file].add(cell.scores.column)
    for file, names in asked.items():
        where = parts_of(file, paths.CLASSIFIED)
        del where["scale"], where["seed"]
        tested = p.tested.evaluate_classifiers(**where).classifiers
        assert names <= tested.keys()
        run = Run(where["dataset"], where["backbone"], where["recipe"], 0, where["protocol"])
        chosen = any(test.grid for test in tested.values())
        assert bool(p.tested.validation(run)) == chosen


@pytest.mark.parametrize("scale", SCALES)
def test_a_cells_scores_are_those_of_its_own_recipe_and_protocol(scale):
    """Whatever recipe gives the file its name: the same config, and the same of its checkpoint."""
    p = plan(scale)
    for name in tables_of(p):
        found = cells(name, scale)
        columns = {column.name: column for column in p.tables.table(name).columns}
        backbones = {block.name: block.backbone for block in p.tables.table(name).blocks}
        for (block, row, column), cell in found.items():
            where = where_of(cell.scores)
            ours = rows_of(name)[block, row]
            backbone = ours.backbone or backbones[block]
            assert where["backbone"] == backbone
            assert where["dataset"] == p.registry.scale.columns[columns[column].dataset]
            assert where["protocol"] == protocol_of(ours, columns[column])
            owner = where["recipe"]
            wanted = ours.recipe or ours.method
            if p.compared.has(wanted):
                shot = p.registry.protocols[where["protocol"]].checkpoint_shot
                trained_by = cell.checkpoint_meta.split("/")[-3]
                assert owner == wanted
                place = (where["dataset"], backbone)
                if wanted not in p.compared.trained:  # its test starts from a pretrained network
                    (start,) = p.runs.start_files(*place, wanted, 0)
                    assert paths.meta(start) == cell.checkpoint_meta
                    continue
                assert p.compared.meta_train(*place, trained_by, 0, shot) == (
                    p.compared.meta_train(*place, wanted, 0, shot)
                )
                assert cell.checkpoint_meta.endswith(f"/meta-{shot}shot.meta.json")
                continue
            assert p.runs.evaluate(backbone, owner) == p.runs.evaluate(backbone, wanted)
            pretrained = (
                config_text(p.runs.pretrain(DATASET, backbone, name, 0)) for name in (owner, wanted)
            )
            assert len(set(pretrained)) == 1
            if p.registry.recipes.resolve(wanted, backbone).tested == "finetuned":
                shot = p.registry.protocols[where["protocol"]].checkpoint_shot
                tuned = (
                    config_text(p.runs.finetune(backbone, recipe, 0, shot))
                    for recipe in (owner, wanted)
                )
                assert len(set(tuned)) == 1
                assert cell.checkpoint_meta.endswith(f"/finetune-{shot}shot.meta.json")
            else:
                assert cell.checkpoint_meta.endswith("/pretrain.meta.json")


# -- cells that are the same thing -----------------------------------------------------------------


def test_epnet_beside_its_semi_supervised_variants_is_epnet_of_the_main_table():
    main, ssl = cells("main"), cells("ssl-large")
    for block, column in {(block, column) for block, _, column in ssl}:
        place = block, "EPNet", column
        assert ssl[place].scores == main[place].scores


def test_all_labeled_is_the_supervised_cell_and_the_parts_are_tested_with_its_checkpoint():
    main, part = cells("main"), cells("ssl-partial")
    for name in ("EPNet", "--Net"):
        whole = main["CONV-4", name, "mini5"]
        assert part["CONV-4", f"{name}_SSL", "100"].scores == whole.scores
        for column, labeled in (("20", 1), ("40", 2), ("60", 3)):
            cell = part["CONV-4", f"{name}_SSL", column]
            assert cell.checkpoint_meta == whole.checkpoint_meta
            assert cell.scores.file == whole.scores.file.replace(".csv", f"-labeled{labeled}.csv")


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_protocols_that_add_unlabeled_images_differ_in_nothing_else(scale):
    """So their support and queries are the same: tests/data/test_episodes.py."""
    protocols = plan(scale).registry.protocols
    variants = [name for name in protocols if re.search(r"-(u|labeled)\d+$", name)]
    assert variants == [name for name, own in protocols.items() if own.unlabeled or own.labeled]
    for name in variants:
        base, kind, number = re.fullmatch(r"(.*)-(u|labeled)(\d+)", name).groups()
        own = protocols[name].model_dump()
        plain = protocols[base].model_dump()
        key = "unlabeled" if kind == "u" else "labeled"
        assert own[key] == int(number)
        alike = own.keys() - {key, "finetuned_shot"}
        assert {k: own[k] for k in alike} == {k: plain[k] for k in alike}
        assert protocols[name].checkpoint_shot == protocols[base].checkpoint_shot


# -- ablation --------------------------------------------------------------------------------------

EXPERIMENTS = [f"exp{number}" for number in range(1, 17)]  # of others the figure is not drawn


def test_the_ablations_marks_number_its_rows():
    """exp = 1 + EP + 2 LP + 4 ROT + 8 EFT."""
    worth = {"EP": 1, "LP": 2, "ROT": 4, "EFT": 8}
    rows = [row for _, row in rows_of("ablation").items()]
    assert [row.name for row in rows] == EXPERIMENTS
    for row in rows:
        number = 1 + sum(worth[mark] for mark in row.marks)
        assert (row.name, row.label) == (f"exp{number}", str(number))


@pytest.mark.parametrize("scale", SCALES)
def test_what_an_experiment_ticks_is_on_and_nothing_else(scale):
    for row in rows_of("ablation").values():
        check_experiment(row, scale)


def check_experiment(row, scale):
    recipe = plan(scale).registry.recipes.resolve(row.recipe, "conv4")
    assert recipe.tested == ("finetuned" if "EFT" in row.marks else "pretrained")
    rotates = "ROT" in row.marks and recipe.pretraining.rotated_copies
    assert recipe.pretraining.rotation_weight == (1 if rotates else 0)
    for phase in PHASES:
        settings = recipe.propagation_in(phase)
        assert settings.embedding == ("EP" in row.marks)
        with_lp = "LP" in row.marks or phase == "pretraining"
        assert settings.classifier == ("label-propagation" if with_lp else "prototypes")
        rest = settings.model_dump(exclude={"embedding", "classifier"})
        assert rest == recipe.propagation.model_dump(exclude={"embedding", "classifier"})
    allowed = {
        "propagation.embedding",
        "propagation.classifier",
        "phases.pretraining.classifier",
        "pretraining.rotation_weight",
        "tested",
    }
    assert changed(row.recipe, scale=scale).keys() <= allowed


@pytest.mark.parametrize(("name", "row"), [("exp16", "EPNet"), ("exp15", "--Net")])
def test_the_last_experiments_are_the_main_tables(name, row):
    ablation, main = cells("ablation"), cells("main")
    assert ablation["CONV-4", name, "mini1"].scores == main["CONV-4", row, "mini1"].scores


def test_epnet_without_rotations_differs_in_the_weight_of_their_loss_alone():
    twelve, sixteen = (rows_of("ablation")["CONV-4", f"exp{n}"].recipe for n in (12, 16))
    p = plan()
    for phase in PHASES:
        settings = [
            p.registry.recipes.resolve(name, "conv4").propagation_in(phase)
            for name in (twelve, sixteen)
        ]
        assert settings[0] == settings[1]
    ignored = {"phases.pretraining.classifier"}  # what it would be anyway
    assert changed(twelve, sixteen).keys() - ignored == {"pretraining.rotation_weight"}
    assert p.runs.finetune("conv4", twelve, 0, 1) == p.runs.finetune("conv4", sixteen, 0, 1)
    assert p.runs.evaluate("conv4", twelve) == p.runs.evaluate("conv4", sixteen)


PLACEMENTS = [f"{number:03b}" for number in range(8)]


def test_ssl_ten_shot_and_more_ways_train_nothing_that_the_other_tables_do_not():
    """But for rows of the literature, whose methods have trainings of their own."""
    others = {cell.checkpoint_meta for name in ("main", "cub") for cell in cells(name).values()}
    for name in ("ssl-large", "ssl-partial", "ten-shot", "n-way"):
        rows = rows_of(name)
        found = {
            cell.checkpoint_meta
            for (block, row, _), cell in cells(name).items()
            if rows[block, row].recipe is not None
        }
        assert found
        assert found <= others


# -- placement, propagator, discrepancies, alpha ---------------------------------------------------


def test_a_placement_is_on_where_its_name_says_and_differs_in_nothing_else():
    recipes = plan().registry.recipes
    names = dict(zip(("pretraining", "fine-tuning", "test"), PHASES, strict=True))
    rows = rows_of("placement")
    for name in PLACEMENTS:
        row = rows["CONV-4", name]
        recipe = recipes.resolve(row.recipe, "conv4")
        for digit, (mark, phase) in zip(name, names.items(), strict=True):
            assert recipe.propagation_in(phase).embedding == (digit == "1")
            assert (mark in row.marks) == (digit == "1")
            rest = recipe.propagation_in(phase).model_dump(exclude={"embedding"})
            expected = recipes.resolve("epnet", "conv4").propagation
            assert rest == expected.model_dump(exclude={"embedding"})
        different = changed(row.recipe)
        embedding = {"propagation.embedding", *(f"phases.{p}.embedding" for p in PHASES)}
        assert different.keys() <= embedding
        assert row.baseline == (None if name == "000" else "000")
    assert (rows["CONV-4", "111"].recipe, rows["CONV-4", "000"].recipe) == ("epnet", "net")


def test_parts_of_the_propagator_differ_in_the_part_and_are_tested_before_finetuning():
    p = plan()
    rows = rows_of("propagator")
    expected = {"full": "full", "offdiag": "off-diagonal", "diag": "diagonal"}
    for name, part in expected.items():
        row = rows["RESNET-12", name]
        recipe = p.registry.recipes.resolve(row.recipe, "resnet12")
        assert recipe.tested == "pretrained"
        assert {recipe.propagation_in(phase).part for phase in PHASES} == {part}
        assert changed(row.recipe, "rot-lp-ep").keys() <= {"propagation.part"}
        assert ("DIAG" in row.marks) == (name in ("full", "diag"))
        assert ("OFF-DIAG" in row.marks) == (name in ("full", "offdiag"))


DISCREPANCIES = {
    "text-bandwidth": {"propagation.bandwidth"},
    "text-label-rows": {"propagation.normalize_labels"},
    "text-logits-literal": {"propagation.query_logits"},
    "text-rotation-head": {"pretraining.rotation_input"},
    "text-class-head": {"finetuning.class_input"},
    "text-class-weight": {"finetuning.class_weight"},
    "text-plateau": {"pretraining.plateau.metric", "finetuning.plateau.metric"},
    "text-augmentation": {"augmentation.pretraining"},
}


def test_every_discrepancy_changes_one_setting_to_what_the_text_says():
    text = flat(plan().registry.recipes.resolve("epnet-paper-literal", "conv4").model_dump())
    rows = rows_of("discrepancies")
    singles = {row.recipe: row for row in rows.values() if row.recipe.startswith("text-")}
    assert {name: set(changed(name)) for name in DISCREPANCIES} == DISCREPANCIES
    assert DISCREPANCIES.keys() <= singles.keys()
    for recipe, row in singles.items():
        different = changed(recipe)
        assert different == {key: text[key] for key in different}
        # The row says which line of docs/paper-vs-code.md it is.
        assert f"({plan().registry.recipes.resolve(recipe, 'conv4').description})" in row.label
        assert row.baseline == "default"


def test_all_discrepancies_together_and_the_epochs_are_the_text():
    together = set().union(*DISCREPANCIES.values())
    literal = changed("epnet-paper-literal").keys()
    assert literal == together | {"protocol", "pretraining.epochs"}
    untrainable = {"propagation.bandwidth", "propagation.query_logits"}
    assert changed("epnet-paper").keys() == literal - untrainable
    assert rows_of("discrepancies")["CONV-4", "text"].recipe == "epnet-paper"
    assert rows_of("discrepancies")["CONV-4", "text-literal"].recipe == "epnet-paper-literal"
    assert rows_of("discrepancies")["CONV-4", "default"].recipe == "epnet"


def test_the_trainings_of_a_network_are_those_that_made_the_tested_checkpoint():
    """One recipe, text-class-head, shares its pretraining; another is not fine-tuned."""
    runs, folder = plan("demo").runs, "results/demo/models/glyph-mini/conv4"

    def made_by(recipe):
        tested = runs.checkpoint(Run("glyph-mini", "conv4", recipe, 0, "5way-5shot"))
        return [(training.phase, training.checkpoint) for training in runs.trainings(tested)]

    pretrained = ("pretraining", f"{folder}/epnet/s0/pretrain.pt")
    tuned = f"{folder}/text-class-head/s0/finetune-5shot.pt"
    assert made_by("text-class-head") == [pretrained, ("fine-tuning, 5-shot", tuned)]
    assert made_by("rot-lp-ep") == [pretrained]


def test_candidates_of_the_search_differ_in_the_alpha_of_embedding_propagation_alone():
    p = plan()
    alphas = []
    for run in p.figures.alpha_runs():
        settings = p.registry.recipes.resolve(run.recipe, run.backbone)
        assert changed(run.recipe, "rot-lp-ep").keys() <= {"propagation.embedding_alpha"}
        assert settings.tested == "pretrained"
        assert p.registry.protocols[run.protocol].split == "val"
        in_phases = {settings.propagation_in(phase).embedding_alpha for phase in PHASES}
        assert len(in_phases) == 1
        alphas += in_phases
    assert alphas == [0.2, 0.35, 0.5, 0.65, 0.8]
    assert 0.2 in p.figures.settings.alpha.label_alphas


# -- the paper's numbers and the literature --------------------------------------------------------

PRINTED = [path.stem for path in (CONFIG / "paper").glob("*.csv")]
OF_PAPER = [
    name for name in TABLES if plan().tables.table(name).paper and name != "compared"
]  # compared shows a block of main again


def printed(table):
    """The places of the numbers that the paper prints, then of those of the authors' re-run."""
    places = []
    for name in plan().tables.table(table).printed:
        with (CONFIG / "paper" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            read = csv.DictReader(file)
            places.append([(line["block"], line["row"], line["column"]) for line in read])
    return places[0], [place for more in places[1:] for place in more]


def test_every_table_of_the_paper_is_one_table_of_ours_but_for_imagenet_fs():
    shown = [plan().tables.table(name).paper for name in OF_PAPER]
    assert sorted(shown) == sorted(set(PRINTED) - {"imfs", "readme-rerun"})
    reruns = {name for table in OF_PAPER for name in plan().tables.table(table).printed[1:]}
    assert reruns == {"readme-rerun"}


def test_every_row_and_column_of_a_table_of_the_paper_is_printed_there():
    """There or, for CUB's Conv-4, in the authors' re-run of it; but for more rows of ours."""
    for table in (*OF_PAPER, "compared"):
        check_printed(table)


def check_printed(table):
    paper, rerun = printed(table)
    names = {column.name for column in plan().tables.table(table).columns}
    rows = {place[:2] for place in (*paper, *rerun) if place[2] in names}
    for (block, _), row in rows_of(table).items():
        if row.source or row.paper:
            assert (block, row.paper or row.name) in rows
    assert names == {place[2] for place in paper}


def test_every_row_of_the_literature_names_its_source_and_ours_have_none():
    for row in (row for table in TABLES for row in rows_of(table).values()):
        assert bool(row.source.strip()) == (row.recipe is None)
        if row.source:
            assert re.search(r", (\w+ )?(19|20)\d\d", row.source)


@pytest.mark.parametrize("table", TABLES)
def test_a_row_that_is_compared_is_compared_over_the_same_episodes(table):
    """In every column: the same data set, protocol and backbone, or more unlabeled images.

    A row of the literature is compared where its method runs, also with a backbone of its own.
    """
    rows = rows_of(table)
    for (block, row, column), cell in cells(table).items():
        other = rows[block, row].baseline
        if other is None:
            assert cell.baseline is None
            continue
        if is_row := (block, other) in rows:
            assert cell.baseline == cells(table)[block, other, column].scores
        one, two = map(where_of, (cell.scores, cell.baseline))
        own = rows[block, row].backbone is not None
        for name in ("dataset", "seed", *(() if own else ("backbone",))):
            assert one[name] == two[name]
        without = [re.sub(r"-u\d+$", "", where["protocol"]) for where in (one, two)]
        assert without[0] == without[1]
        if not is_row:
            owner = plan().runs.owner("testing", two["backbone"], other)
            assert two["recipe"] == owner


# -- episodes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_all_cells_of_a_table_are_over_the_number_of_episodes_that_its_caption_says(scale):
    p = plan(scale)
    for table in set(tables_of(p)) & set(p.tables.covered):
        protocols = {where_of(cell.scores)["protocol"] for cell in p.tables.measured(table)}
        (count,) = {p.data.episodes(protocol).episodes for protocol in protocols}
        assert f"over {count} test episodes" in p.tables.stage(table).caption


def test_more_ways_have_600_episodes_as_the_papers_caption_says_and_fewer_if_the_scale_has():
    assert plan("paper").data.episodes("20way-1shot").episodes == 600
    assert plan("paper").data.episodes("5way-1shot").episodes == 1000


def test_the_demos_data_has_the_classes_and_images_that_every_protocol_needs():
    p, needed = plan("demo"), set()
    for scores in {cell.scores for cell in all_cells("demo")}:
        where = where_of(scores)
        needed.add((where["dataset"], where["protocol"]))
    needed |= {(run.dataset, run.protocol) for run in p.figures.alpha_runs()}
    for dataset, name in needed:
        settings, asked = p.registry.datasets[dataset], p.registry.protocols[name]
        images = getattr(settings.images_per_class, asked.split)
        assert images >= asked.shot + asked.queries + asked.unlabeled, (dataset, name)
        chosen = select_classes(settings.selection).values()
        assert sum(c.split == asked.split for c in chosen) >= asked.way


# -- a scale with some of the tables ---------------------------------------------------------------


@pytest.fixture
def few_images(config):
    """Scale grocery with the main table alone, as if its classes had few images."""
    path = config / "examples" / "grocery.yaml"
    text = re.sub(r"^tables:.*\n", "", path.read_text(encoding="utf-8"), flags=re.M)
    path.write_text(f"{text}tables: [main]\n", encoding="utf-8")
    return Plan(config, "grocery")


def test_a_scale_may_do_without_tables_whose_episodes_its_data_cannot_fill(few_images):
    few_images.check()
    assert list(few_images.tables.shown) == few_images.tables.covered == ["main"]
    curves = list(few_images.curves.stages)
    assert few_images.covered_figures == [
        "alpha", "two-moons", "decision-boundary", "per-episode", "by-shot", *curves,
    ]  # fmt: skip
    assert curves
    assert all(name.startswith("curves-grocery81-conv4") for name in curves)
    tested = {run.protocol for run in few_images.tested.runs}
    assert tested == {"5way-1shot", "5way-5shot", "val-5way-1shot"}
    assert few_images.tables.measured("main") == plan("grocery").tables.measured("main")
