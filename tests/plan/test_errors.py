"""A mistake in the config is one line that names the file, the key and what was meant."""

import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
import yaml
from plans import DELETED, put

from epcore.backbones.checkpoint import build
from epcore.backbones.config import Architecture, BackboneConfig, check_sizes
from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.registry import main_config
from epcore.plan.run import Run


def complaint(config, scale="demo"):
    """What a user is told who asks for everything at a scale."""

    def ask():
        main_config(config)
        Plan(config, scale).check()

    with pytest.raises(UserError) as caught:
        ask()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    of_python = r"instance|<class|NoneType|Fraction|\bdict|\bstr\b|\btuple|None|Value error"
    assert not re.search(of_python, message), message
    return message


@pytest.mark.parametrize(
    ("file", "path", "meant"),
    [
        ("scales/demo.yaml", "recipe/backbones/wrn/augmentation/pretrainng", "pretraining"),
        ("recipes.yaml", "recipes/ep-110/phases/testing/embeding", "embedding"),
        ("tables/main.yaml", "blocks/CONV-4/rows/ProtoNet/sorce", "source"),
        ("figures.yaml", "two-moon", "two-moons"),
    ],
)
def test_a_misspelled_key_is_named_with_its_file_and_the_key_that_was_meant(
    config, file, path, meant
):
    put(config, file, path, {})
    message = complaint(config)
    assert f"config/{file}" in message
    assert path.split("/")[-1] in message
    assert message.endswith(f"did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("file", "path", "value", "meant"),
    [
        ("scales/demo.yaml", "columns/mini", "glyph-mni", "glyph-mini"),
        ("scales/demo.yaml", "backbones/conv5", {}, "conv4"),
        ("recipes.yaml", "recipes/net/extends", "epnt", "epnet"),
        ("tables/main.yaml", "blocks/CONV-4/rows/EPNet/recipe", "epnett", "epnet"),
        ("tables/main.yaml", "columns/mini1/protocol", "5way-1shots", "5way-1shot"),
        ("tables/main.yaml", "blocks/CONV-4/rows/EPNet/baseline", "--Nett", "--Net"),
        ("scales/demo.yaml", "figures/alpha/recipes/1", "test-alpha-03", "test-alpha-035"),
        ("figures.yaml", "alpha/column", "minni", "mini"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_known_one(config, file, path, value, meant):
    put(config, file, path, value)
    message = complaint(config)
    assert f"config/{file}" in message
    named = path.split("/")[-1] if value == {} else value
    assert (named[0] if isinstance(named, list) else named) in message
    assert message.endswith(f"did you mean {meant!r}?")


def test_an_unknown_scale_is_told_with_the_nearest_known_one(config):
    message = complaint(config, "papr")
    where = "--scale, --config or config/config.yaml"
    assert message == f"{where}: unknown scale 'papr'; did you mean 'paper'?"


@pytest.mark.parametrize(("name", "read"), [("007", 7), ("on", True)])
def test_a_scale_whose_name_is_no_text_in_yaml_is_told_by_its_file(config, name, read):
    """Snakemake passes on what YAML makes of `--config scale=007`."""
    (config / "scales" / f"{name}.yaml").write_text("extends: demo\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"config/scales/{name}\.yaml: in .* is read as {read};"):
        Plan(config, str(read))


def test_an_unknown_name_like_no_other_lists_the_known_ones(config):
    folders = [config / "scales", config / "examples"]
    known = sorted(file.stem for folder in folders for file in folder.glob("*.yaml"))
    assert {"demo", "grocery", "paper", "small"} <= set(known)
    assert complaint(config, "xyz").endswith(f"; known: {', '.join(known)}")


TWO_MOONS = {"figure": "two-moons", "number": "a", "sign": "above zero"}


@pytest.mark.parametrize(
    ("file", "path", "value", "expected"),
    [
        ("scales/demo.yaml", "precision", "fp16", "'fp32', 'tf32' or 'bf16'"),
        ("scales/demo.yaml", "backbones/wrn/width", "wide", "ratio such as 1/4"),
        ("recipes.yaml", "protocols/official/view/crop", 2, "crop must not be larger than resize"),
        ("datasets.yaml", "datasets/glyph-mini/kind", "glyph", "did you mean 'glyphs'?"),
        ("recipes.yaml", "recipes/epnet/backbones", 3, "a mapping of keys to values, got 3"),
        ("compared.yaml", "protonet/method", 3, "a mapping of keys to values, got 3"),
        ("protocols.yaml", "10way-1shot/episodes", 1, "greater than or equal to 2"),
        ("figures.yaml", "two-moons/batch_sizes", [16, 301], "not be larger than points"),
        ("compared.yaml", "relation-net/training/clip", {"eech": 1}, "did you mean 'each'?"),
        (
            "claims.yaml",
            "paper/0/numbers",
            [TWO_MOONS],
            "give one of contrasts, products and numbers",
        ),
    ],
)
def test_a_value_of_a_wrong_kind_is_named_with_its_file_and_what_is_expected(
    config, file, path, value, expected
):
    put(config, file, path, value)
    message = complaint(config)
    assert f"config/{file}" in message
    keys = [key for key in path.split("/") if key not in ("protocols", "recipes", "recipe")]
    assert not keys or keys[-1] in message
    assert expected in message


def test_settings_are_not_chosen_on_classes_that_are_tested_on(config):
    put(config, "protocols.yaml", "10way-1shot/chosen_on", "5way-1shot")
    assert complaint(config) == (
        "config/protocols.yaml, 10way-1shot: settings of classifiers would be chosen on "
        "5way-1shot, whose classes are tested on; let chosen_on name a protocol of split val"
    )


def test_a_forgotten_extends_is_thought_of(config):
    put(config, "recipes.yaml", "recipes/net/extends", DELETED)
    said = "recipes.net: the key 'protocol' is missing; add it, or `extends:` with the name of "
    assert said in complaint(config)


def test_a_heading_with_everything_below_it_commented_out_changes_nothing_else(config):
    expected = Plan(config, "demo").registry.recipes.resolve("epnet", "conv4")
    put(config, "recipes.yaml", "protocols/official/backbones/wrn", None)
    plan = Plan(config, "demo")
    plan.check()
    assert plan.registry.recipes.resolve("epnet", "conv4") == expected


def test_broken_yaml_is_named_with_its_line(config):
    file = "tables/main.yaml"
    text = (config / file).read_text(encoding="utf-8")
    lines = len(text.splitlines())
    (config / file).write_text(text.rstrip("\n") + "\nbroken: [1, 2\n", encoding="utf-8")
    message = complaint(config)
    assert f"config/{file}, line {lines + 2}: this is not valid YAML" in message


def test_a_key_that_is_there_twice_is_named_with_its_line(config):
    """YAML itself would take the last one, and the other setting would be ignored in silence."""
    file = "recipes.yaml"
    text = (config / file).read_text(encoding="utf-8").rstrip("\n")
    key = next(line for line in text.splitlines() if line[:1].isalpha()).partition(":")[0]
    (config / file).write_text(f"{text}\n{key}: again\n", encoding="utf-8")
    place = f"config/{file}, line {len(text.splitlines()) + 1}"
    assert f"{place}: this is not valid YAML: the key {key!r} is there twice" in complaint(config)


@pytest.mark.parametrize("content", ["", "- a\n- list\n", "words"])
def test_a_file_that_is_no_mapping_is_named(config, content):
    (config / "recipes.yaml").write_text(content, encoding="utf-8")
    said = "config/recipes.yaml: expected a mapping of keys to values at the top level"
    assert complaint(config).endswith(said)


def test_a_file_that_is_no_text_is_named(config):
    (config / "tables/main.yaml").write_bytes(b"title: caf\xe9\n")
    assert "config/tables/main.yaml: this is not UTF-8 text" in complaint(config)


def test_a_circle_of_scales_is_shown(config):
    put(config, "scales/demo.yaml", "extends", "grocery")
    message = complaint(config)
    assert message == (
        "config/scales/demo.yaml: scale 'demo' extends itself: demo -> grocery -> demo"
    )


@pytest.mark.parametrize(
    ("path", "ratio", "said"),
    [
        ("backbones/wrn/depth", "1/3", "1/3 of 4 blocks is not a whole number"),
        ("imagenet_fs/width", "1/7", "1/7 of 64 channels is not a whole number"),
    ],
)
def test_a_ratio_that_leaves_no_whole_numbers_is_told_before_anything_runs(
    config, path, ratio, said
):
    put(config, "scales/demo.yaml", path, ratio)
    *above, last = path.split("/")
    place = f"config/scales/demo.yaml, {'.'.join(above)}, {last}"
    assert complaint(config) == f"{place}: {said}; choose another ratio"


@pytest.mark.parametrize("architecture", get_args(Architecture))
@pytest.mark.parametrize("size", [{"width": "1/16"}, {"width": "1/80"}, {"depth": "1/4"}])
def test_a_size_passes_before_anything_runs_just_if_the_network_can_be_built(architecture, size):
    backbone = BackboneConfig(architecture=architecture, **size)
    said = []
    for attempt in (build, partial(check_sizes, location="")):
        try:
            attempt(backbone)
            said.append("fine")
        except UserError:
            said.append("refused")
    assert said[0] == said[1]


def test_a_row_that_is_there_twice_is_named(config):
    """Cells are found by block, row and column: the second would print the first one's number."""
    path = config / "tables/main.yaml"
    line = next(line for line in path.read_text().splitlines() if "{name: EPNet," in line)
    path.write_text(path.read_text().replace(line, f"{line}\n{line}", 1))
    assert (
        complaint(config)
        == "config/tables/main.yaml, CONV-4: row 'EPNet' is there twice; rename one"
    )


def test_a_damaged_scale_is_in_nobodys_way_but_its_own(config):
    (config / "scales/mine.yaml").write_text("extends: demo\nnote: [\n", encoding="utf-8")
    Plan(config, "demo").check()
    assert "config/scales/mine.yaml, line 3: this is not valid YAML" in complaint(config, "mine")


def test_a_scale_in_two_folders_is_named(config):
    (config / "scales/grocery.yaml").write_text((config / "examples/grocery.yaml").read_text())
    assert "scale 'grocery' is there twice" in complaint(config)


def test_a_scale_cannot_swap_the_protocol_of_its_recipes(config):
    put(config, "scales/demo.yaml", "recipe/protocol", "paper")
    assert "config/scales/demo.yaml, recipe: unknown key 'protocol'" in complaint(config)


def test_a_wrong_setting_of_recipes_is_told_with_all_places_where_it_may_stand(config):
    put(config, "scales/demo.yaml", "recipe/pretraining/epochs", -3)
    place = r"config/recipes\.yaml, recipes\.\S+ \(over protocols\.official and "
    place += r"config/scales/demo\.yaml, recipe\): pretraining\.epochs: Input should be"
    assert re.match(place, complaint(config))


def test_pictures_that_a_backbone_leaves_nothing_of_are_told(config):
    """Conv-4 halves them four times."""
    put(config, "datasets.yaml", "datasets/glyph-mini/image_size", 16)
    Plan(config, "demo").check()
    put(config, "datasets.yaml", "datasets/glyph-mini/image_size", 15)
    assert complaint(config) == (
        "config/scales/demo.yaml, columns.mini: conv4 needs images of at least 16 pixels and is "
        "given 15; raise image_size of the data set, or leave the backbone out"
    )


@pytest.mark.parametrize(
    ("like", "file"),
    [
        ("scales/demo.yaml", "scales/my_images.yaml"),
        ("examples/grocery.yaml", "examples/Photos.yaml"),
        ("tables/placement.yaml", "tables/My Table.yaml"),
    ],
)
def test_a_file_whose_name_paths_cannot_hold_is_named(config, like, file):
    """Its name is part of the paths of the results, as those in the registries are."""
    shutil.copy(config / like, config / file)
    scale = "demo" if "tables" in file else Path(file).stem
    said = f"config/{file}: expected small letters, digits and single hyphens, for paths, got"
    assert complaint(config, scale).startswith(said)


@pytest.mark.parametrize(
    ("seeds", "said"),
    [(0, "number of trainings"), ([], "list that is not empty"), ([1, 1], "is there twice"),
     ("x", "list of seeds"), ([-1], "greater than or equal to 0"), ([0.5], "valid integer")],
)  # fmt: skip
def test_seeds_that_cannot_be_are_told(config, seeds, said):
    with pytest.raises(UserError, match=f"--config, seeds.*{said}"):
        Plan(config, "demo", seeds)


def test_seeds_are_the_scales_or_a_list_or_so_many_from_zero_on(config):
    assert Plan(config, "demo").registry.seeds == (0,)
    assert Plan(config, "demo", [5, 2]).registry.seeds == (5, 2)
    assert Plan(config, "demo", 3).registry.seeds == (0, 1, 2)
    put(config, "scales/demo.yaml", "seeds", [7, 8])
    assert Plan(config, "demo").registry.seeds == (7, 8)
    put(config, "config.yaml", "seeds", 4)
    assert main_config(config).seeds == (0, 1, 2, 3)
    assert main_config(config, {"seeds": [5]}).seeds == (5,)


def test_a_network_with_cosine_heads_is_not_fine_tuned(config):
    """Which is said before it is pretrained; without fine-tuning it may be tested."""
    put(config, "recipes.yaml", "recipes/epnet/pretraining", {"heads": "cosine"})
    assert "a network with `heads: cosine` is not fine-tuned" in complaint(config)
    runs, run = Plan(config, "demo").runs, Run("glyph-mini", "conv4", "epnet", 0, "5way-1shot")
    with pytest.raises(UserError, match=r"^recipe epnet: a network with `heads: cosine`"):
        runs.checkpoint(run)
    assert runs.checkpoint(replace(run, recipe="cc-rot")).checkpoint == "pretrain"


def test_a_table_of_printed_numbers_that_is_missing_is_named(config):
    put(config, "tables/main.yaml", "paper", "nain")
    assert "nain.csv is not in config/paper" in complaint(config)


def test_tables_may_share_a_file_of_printed_numbers(config):
    """Each shows a part of it, at a scale that may have one of them."""
    content = yaml.safe_load((config / "tables/main.yaml").read_text(encoding="utf-8"))
    for number, name in enumerate(("main", "wide")):
        part = content | {"blocks": content["blocks"][2 * number : 2 * number + 2]}
        (config / f"tables/{name}.yaml").write_text(yaml.safe_dump(part), encoding="utf-8")
    put(config, "scales/demo.yaml", "tables", ["main"])
    (config / "claims.yaml").write_text("{paper: [], ours: []}\n", encoding="utf-8")
    (config / "tables/compared.yaml").unlink()
    Plan(config, "demo").check()


def test_a_column_without_validation_episodes_of_its_shot_is_named(config):
    put(
        config,
        "protocols.yaml",
        "5way-7shot",
        {"split": "novel", "way": 5, "shot": 7, "queries": 5},
    )
    put(config, "tables/main.yaml", "columns/mini1/protocol", "5way-7shot")
    assert "unknown protocol 'val-5way-7shot'" in complaint(config)


# -- tables with marks, differences and unlabeled images; the search for alpha --------------------


def test_a_difference_to_a_row_of_the_literature_is_refused(config):
    """It has no scores; the difference would silently be missing."""
    put(config, "tables/main.yaml", "blocks/CONV-4/rows/EPNet/baseline", "TPN")
    message = complaint(config)
    assert message.startswith(
        "config/tables/main.yaml, CONV-4, EPNet, baseline: unknown row of our"
    )
    assert "'TPN'" in message


def test_unlabeled_images_without_a_protocol_of_their_number_are_told_with_the_name_it_needs(
    config,
):
    put(config, "tables/ssl-large.yaml", "blocks/CONV-4/rows/--Net_SSL 20/unlabeled", 30)
    message = complaint(config)
    assert message.startswith("config/tables/ssl-large.yaml, CONV-4, --Net_SSL 20, mini1: ")
    assert "unknown protocol '5way-1shot-u30'" in message


def test_a_protocol_cannot_label_all_of_its_support_or_more(config):
    put(config, "protocols.yaml", "5way-5shot-labeled1/labeled", 5)
    said = "config/protocols.yaml: 5way-5shot-labeled1: labeled must be smaller than shot; leave it"
    assert complaint(config).startswith(said)


def test_a_block_of_ours_without_a_backbone_is_named(config):
    put(config, "tables/cub.yaml", "blocks/1/backbone", DELETED)
    said = "config/tables/cub.yaml: blocks.1: a block with a row of ours needs a backbone"
    assert complaint(config).startswith(said)


def test_alpha_cannot_be_chosen_on_classes_that_are_tested_on(config):
    put(config, "figures.yaml", "alpha/protocol", "5way-1shot")
    assert complaint(config) == (
        "config/figures.yaml, with config/scales/demo.yaml, figures, alpha: protocol '5way-1shot' "
        "is of split novel; alpha is chosen on split val"
    )


def test_the_interpolation_is_of_classes_that_nothing_was_chosen_on(config):
    put(config, "figures.yaml", "interpolation/protocol", "val-5way-1shot")
    assert complaint(config) == (
        "config/figures.yaml, with config/scales/demo.yaml, figures, interpolation: protocol "
        "'val-5way-1shot' is of split val; the figure is tested on split novel"
    )


# A recipe that the keys of the scale below contradict: it asks for a loss without its pictures.
NO_ROTATION = "{pretraining: {rotation_weight: 0, rotated_copies: false}}"


@pytest.mark.parametrize("used", [False, True])
def test_a_recipe_that_no_run_uses_stops_none(config, used):
    """`epcore doctor` checks all recipes."""
    contradiction = {"extends": "rot", "pretraining": {"rotation_weight": 1}, "description": ""}
    put(config, "recipes.yaml", "recipes/mine", contradiction)
    if used:
        put(config, "scales/demo.yaml", "figures/alpha/recipes", ["mine"])
    text = f"extends: demo\ntables: [main]\nrecipe: {NO_ROTATION}\nimagenet_fs: null\n"
    (config / "scales" / "mine.yaml").write_text(text, encoding="utf-8")
    plan = Plan(config, "mine")
    if used:
        with pytest.raises(UserError, match=r"recipes\.mine .*rotation_weight must be 0"):
            plan.check()
        return
    plan.check()
    assert plan.tables.measured("main")
    with pytest.raises(UserError, match=r"recipes\.mine .*rotation_weight must be 0"):
        plan.registry.check_recipes(plan.registry.recipes.names)
