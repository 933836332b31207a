"""A folder of the user's own images becomes a store, or the user learns which line to mend."""

import unicodedata

import numpy as np
import pytest
from PIL import Image

from epcore.data.build import run
from epcore.data.builders.folder import class_folders, contents, draw_split, read_split
from epcore.data.config import DataConfig
from epcore.data.contents import ImageClass
from epcore.data.datasets import OwnData, Pixels, RandomSplit
from epcore.data.pictures import decode
from epcore.data.sources import Sources
from epcore.data.store import ImageStore, write_store
from epcore.errors import UserError

HEADER = "filename,label,split"
LINES = ("b.png,cat,base", "a.png,cat,base", "a.png,ant,val", "x.png,bee,novel")


def pixels(seed, height=8, width=8, channels=3):
    shape = (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def folder(directory, lines=LINES, header=HEADER):
    """A data set whose images are random, each from the number of its line."""
    for number, line in enumerate(lines):
        name, label = line.split(",")[:2]
        path = directory / "images" / label / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(number)).save(path)
    return write_split(directory, lines, header)


def write_split(directory, lines, header=HEADER):
    directory.mkdir(exist_ok=True)
    (directory / "split.csv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return directory


def build(out, source, size, **settings):
    dataset = OwnData(kind="folder", title="", path=str(source), image_size=size, **settings)
    write_store(out, contents(dataset, Sources({})), size)


def read_image(path, size):
    return decode(path.read_bytes(), str(path), size, Pixels(), upright=True)


def built(source, out, size=8):
    build(out, source, size)
    return ImageStore.open(out)


def refused(source, message):
    """The one line that tells of the mistake, without a store left behind."""
    out = source.parent / "packed"
    with pytest.raises(UserError, match=message) as caught:
        build(out, source, 8)
    assert "\n" not in str(caught.value)
    assert not (out / "store.json").exists()
    return str(caught.value)


# -- what comes out ----------------------------------------------------------------------------


def test_images_of_the_stores_size_come_out_as_they_went_in(tmp_path):
    store = built(folder(tmp_path / "mine"), tmp_path / "packed")
    # Base, val, novel; within a class by name: line 1 before line 0.
    expected = [pixels(1), pixels(0), pixels(2), pixels(3)]
    assert np.array_equal(store.images, expected)
    assert store.labels.tolist() == [0, 0, 1, 2]
    assert store.name == "packed"


def test_classes_are_ordered_by_split_then_name(tmp_path):
    lines = ["1.png,pig,novel", "1.png,cow,base", "1.png,ant,novel", "1.png,bee,val",
             "1.png,bat,base"]  # fmt: skip
    store = built(folder(tmp_path / "mine", lines), tmp_path / "packed")
    assert store.classes == (
        ImageClass("bat", "base"),
        ImageClass("cow", "base"),
        ImageClass("bee", "val"),
        ImageClass("ant", "novel"),
        ImageClass("pig", "novel"),
    )
    for label, line in enumerate([4, 1, 3, 2, 0]):
        assert np.array_equal(store.images[label], pixels(line))


def test_the_order_of_the_lines_does_not_matter(tmp_path):
    forward = built(folder(tmp_path / "mine"), tmp_path / "forward")
    write_split(tmp_path / "mine", reversed(LINES))
    backward = built(tmp_path / "mine", tmp_path / "backward")
    assert np.array_equal(forward.images, backward.images)
    assert forward.classes == backward.classes


def test_train_val_test_mean_base_val_novel(tmp_path):
    words = [("train", "base"), ("base", "base"), ("val", "val"), ("test", "novel"),
             ("novel", "novel")]  # fmt: skip
    write_split(tmp_path / "mine", [f"1.png,{word}s,{word}" for word, _ in words])
    classes = read_split(tmp_path / "mine" / "split.csv")
    assert {c.name: c.split for c in classes} == {f"{word}s": split for word, split in words}


def test_columns_may_stand_in_any_order_beside_others_and_after_a_mark_of_excel(tmp_path):
    path = tmp_path / "split.csv"
    path.write_bytes(
        b"\xef\xbb\xbfsplit,note,filename,label\r\nbase,nice,\xc3\xa4.png,K\xc3\xa4fer\r\n"
    )
    assert read_split(path) == {ImageClass("Käfer", "base"): ["ä.png"]}


# -- what the user is told ---------------------------------------------------------------------


def test_a_missing_split_file_is_named_with_what_it_must_hold(tmp_path):
    (tmp_path / "mine").mkdir()
    refused(tmp_path / "mine", r"mine/split\.csv does not exist.*filename, label, split")


@pytest.mark.parametrize("column", ["filename", "label", "split"])
def test_a_missing_column_is_named(tmp_path, column):
    header = HEADER.replace(column, "other")
    source = write_split(tmp_path / "mine", LINES, header)
    refused(
        source, rf"split\.csv: the column '{column}' is missing; its first line must be {HEADER}"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("c.png,cat,training", "line 6: unknown split 'training'; use base, val or novel"),
        ("c.png,cat,Base", "line 6: unknown split 'Base'"),
        ("a.png,cat,train", "line 6: cat/a.png is listed twice"),
        ("c.png,cat", "line 6: unknown split ''"),
        ("c.png,,base", "line 6: the label '' is no name in images/"),
        (",cat,base", "line 6: the filename '' is no name in images/"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(tmp_path, line, message):
    source = write_split(tmp_path / "mine", [*LINES, line])
    assert str(source / "split.csv") in refused(source, message)


def test_a_class_in_two_splits_is_named(tmp_path):
    source = folder(tmp_path / "mine", [*LINES, "c.png,cat,novel"])
    refused(source, "data set packed: class 'cat' is in base and in novel; .* in one split")


@pytest.mark.filterwarnings("error")
def test_a_comma_at_the_end_of_each_line_and_empty_lines_mean_nothing(tmp_path):
    folder(tmp_path / "mine")
    source = write_split(tmp_path / "mine", [f"{line}," for line in LINES])
    commas = read_split(source / "split.csv")
    write_split(source, ["", *LINES, ""])
    assert read_split(source / "split.csv") == commas
    assert sum(map(len, commas.values())) == len(LINES)


def test_text_that_is_no_csv_is_told_with_the_line(tmp_path):
    source = write_split(tmp_path / "mine", [*LINES, 'c.png,cat,"base'])
    refused(source, r"split\.csv cannot be read \(.*\b5\b.*\); save it as CSV in UTF-8")


def test_columns_between_semicolons_are_told_to_stand_between_commas(tmp_path):
    source = write_split(tmp_path / "mine", [], HEADER.replace(",", ";"))
    refused(source, "the column 'filename' is missing; .* with commas between the columns")


def test_a_split_without_classes_is_named(tmp_path):
    source = folder(tmp_path / "mine", LINES[:2])
    refused(source, "data set packed: no class in split 'val'")
    refused(write_split(tmp_path / "mine", []), "data set packed: no class in split 'base'")


def test_text_that_is_not_utf_8_is_refused(tmp_path):
    source = folder(tmp_path / "mine")
    (source / "split.csv").write_bytes(f"{HEADER}\na.png,Käfer,base\n".encode("latin-1"))
    refused(source, r"split\.csv cannot be read .*save it as CSV in UTF-8")


def test_a_missing_image_is_named(tmp_path):
    source = folder(tmp_path / "mine")
    (source / "images" / "bee" / "x.png").unlink()
    refused(source, r"images/bee/x\.png does not exist, but split\.csv lists it")


def test_a_corrupt_image_is_named(tmp_path):
    source = folder(tmp_path / "mine")
    path = source / "images" / "bee" / "x.png"
    whole = path.read_bytes()
    for damaged in (b"", b"no image", whole[:20], whole[: len(whole) // 2], bytes(len(whole))):
        path.write_bytes(damaged)
        refused(source, r"images/bee/x\.png cannot be read as an image .*; replace or remove it")


@pytest.mark.filterwarnings("ignore")  # of Pillow, about damaged headers
@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "webp"])
def test_a_damaged_byte_ends_in_an_image_or_in_a_message_never_in_a_crash(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    Image.fromarray(pixels(0)).save(path)
    whole = path.read_bytes()
    refusals = []
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            assert read_image(path, 8).shape == (8, 8, 3)
        except UserError as error:
            refusals.append(str(error))
    assert refusals
    assert all(str(path) in refusal for refusal in refusals)


# -- classes drawn from a seed -----------------------------------------------------------------


def unsplit(directory, classes=8, images=2):
    """Class folders without split.csv."""
    for number in range(classes):
        place = directory / "images" / f"class {number}"
        place.mkdir(parents=True)
        for image in range(images):
            Image.fromarray(pixels(100 * number + image)).save(place / f"{image}.png")
    return directory


def drawn(source, out, seed, base=4, val=1, novel=3):
    split = RandomSplit(base=base, val=val, novel=novel, seed=seed)
    build(out, source, 8, split=split)
    return ImageStore.open(out)


def refused_draw(source, message, **numbers):
    with pytest.raises(UserError, match=message):
        drawn(source, source.parent / "packed", seed=0, **numbers)
    assert not (source.parent / "packed").exists()


def test_a_split_drawn_from_a_seed_takes_each_class_once_in_the_numbers_asked_for(tmp_path):
    source = unsplit(tmp_path / "mine")
    store = drawn(source, tmp_path / "packed", seed=7)
    assert [c.split for c in store.classes] == ["base"] * 4 + ["val"] + ["novel"] * 3
    assert sorted(c.name for c in store.classes) == [f"class {n}" for n in range(8)]
    for split in ("base", "val", "novel"):
        names = [c.name for c in store.classes if c.split == split]
        assert names == sorted(names)
    for label, image_class in enumerate(store.classes):
        number = int(image_class.name.split()[1])
        expected = [pixels(100 * number), pixels(100 * number + 1)]
        assert np.array_equal(store.images[store.labels == label], expected)


def test_one_seed_gives_one_split_whatever_order_the_disk_lists_folders_in():
    names = [f"class {n}" for n in range(20)]
    split = RandomSplit(base=10, val=4, novel=6, seed=1)
    first = draw_split(names, split, "here")
    assert draw_split(names[::-1], split, "here") == first
    others = {tuple(draw_split(names, split.model_copy(update={"seed": s}), "")) for s in range(9)}
    assert len(others) == 9


def test_a_drawn_split_does_not_change_with_a_version_of_numpy():
    """numpy keeps the streams of its generators; if this ever fails, drawn splits have changed."""
    split = RandomSplit(base=3, val=1, novel=2, seed=0)
    chosen = draw_split(list("abcdef"), split, "here")
    assert [(c.name, c.split) for c in chosen] == [
        *(("c", "base"), ("d", "base"), ("f", "base")),
        *(("e", "val"), ("a", "novel"), ("b", "novel")),
    ]


def test_more_or_fewer_classes_than_the_split_asks_for_are_told_with_the_sum(tmp_path):
    source = unsplit(tmp_path / "mine")
    for numbers in ({"base": 5}, {"novel": 2}):
        message = r"mine/images has 8 classes, .* asks for \d \+ 1 \+ \d; make the sum 8"
        refused_draw(source, message, **numbers)


def test_a_split_file_and_a_drawn_split_together_are_refused(tmp_path):
    source = unsplit(tmp_path / "mine")
    write_split(source, ["0.png,class 0,base"])
    refused_draw(source, r"split\.csv exists, and the data set has the key `split` as well; remove")


@pytest.mark.parametrize("name", ["0.png", "class 0/gone.png"])
def test_pictures_in_the_wrong_place_are_named_and_not_left_out(tmp_path, name):
    """Beside the class folders, or linked to and not there."""
    source = unsplit(tmp_path / "mine")
    path = source / "images" / name
    if "gone" in name:
        path.symlink_to("nowhere.png")
    else:
        path.write_bytes(b"x")
    refused_draw(source, rf"images/{name} is no (class folder|picture); ")


def test_a_folder_in_a_class_folder_is_not_called_something_to_remove(tmp_path):
    """Whoever gives a folder one level too high would delete their own photographs."""
    source = unsplit(tmp_path / "mine")
    with pytest.raises(UserError) as caught:
        class_folders(source)
    assert str(caught.value) == (
        f"{source}/images/class 0 is no picture; {source}/images should have pictures and nothing "
        "else, if it is not the folder that holds the class folders"
    )


def test_a_folder_without_images_is_told_what_belongs_there(tmp_path):
    (tmp_path / "mine").mkdir()
    remedy = "put a folder for each class there"
    refused_draw(tmp_path / "mine", f"mine/images does not exist; {remedy}")
    (tmp_path / "mine" / "images").mkdir()
    refused_draw(tmp_path / "mine", f"mine/images is empty; {remedy}")


def test_an_empty_class_folder_is_named(tmp_path):
    source = unsplit(tmp_path / "mine", classes=7)
    (source / "images" / "class 7").mkdir()
    refused_draw(source, "class 'class 7' has no image")


def test_pictures_that_two_splits_share_are_named_or_left_out_of_the_earlier_one(tmp_path):
    source = folder(tmp_path / "mine")
    images = source / "images"
    (images / "bee" / "x.png").write_bytes((images / "cat" / "a.png").read_bytes())
    message = refused(source, "1 images of base or val are in a later split too")
    assert f"{images}/cat/a.png is also {images}/bee/x.png" in message
    settings = {"kind": "folder", "title": "", "path": str(source), "image_size": 8}
    stage = {"stage_version": 1, "dataset": settings | {"shared_images": "leave-out"}}
    run(DataConfig.model_validate(stage), [], tmp_path / "packed")
    store = ImageStore.open(tmp_path / "packed")
    assert store.labels.tolist() == [0, 1, 2]
    # Line 0, line 2, and what was copied from line 1.
    assert np.array_equal(store.images, [pixels(0), pixels(2), pixels(1)])


def test_spaces_behind_commas_and_around_names_mean_nothing(tmp_path):
    spaced = [line.replace(",", " , ") for line in LINES]
    folder(tmp_path / "mine")
    write_split(tmp_path / "mine", spaced, " filename, label , split ")
    expected = built(folder(tmp_path / "other"), tmp_path / "expected")
    found = built(tmp_path / "mine", tmp_path / "found")
    assert found.classes == expected.classes
    np.testing.assert_array_equal(found.images, expected.images)


@pytest.mark.parametrize(("listed", "there"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_names_are_the_same_in_each_unicode_form(tmp_path, listed, there):
    """As where split.csv was written on macOS, and the folder was not."""
    names = (
        "Caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        "\N{LATIN SMALL LETTER O WITH DIAERESIS}.png",
    )
    label, file = (unicodedata.normalize(listed, name) for name in names)
    source = write_split(tmp_path / "mine", [f"{file},{label},base", *LINES])
    folder(tmp_path / "mine")
    write_split(source, [f"{file},{label},base", *LINES])
    label, file = (unicodedata.normalize(there, name) for name in names)
    place = source / "images" / label
    place.mkdir()
    Image.fromarray(pixels(9)).save(place / file)
    store = built(source, tmp_path / "packed")
    assert names[0] in [c.name for c in store.classes]


def test_names_that_look_the_same_are_files_of_their_own(tmp_path):
    source = unsplit(tmp_path / "mine")
    for name in ("\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}", " e", "e"):
        seed = 1000 + len(name) + ord(name[0])
        Image.fromarray(pixels(seed)).save(source / "images" / "class 0" / f"{name}.png")
    store = drawn(source, tmp_path / "packed", seed=0)
    (label,) = (n for n, c in enumerate(store.classes) if c.name == "class 0")
    images = store.images[store.labels == label].reshape(6, -1)
    assert len(np.unique(images, axis=0)) == 6


LEFT = ["Thumbs.db", ".DS_Store", "desktop.ini", "Icon\r", "._a.png"]


def test_what_operating_systems_leave_behind_is_left_out(tmp_path):
    source = folder(tmp_path / "mine")
    for name in ("__MACOSX", ".ipynb_checkpoints"):
        (source / "images" / name).mkdir()
    for number, name in enumerate(LEFT):
        (source / "images" / ("cat", "ant")[number % 2] / name).write_bytes(b"no picture")
    (source / "images" / "Thumbs.db").write_bytes(b"no picture")
    names = [[path.name for path in paths] for paths in class_folders(source / "images").values()]
    assert names == [["a.png"], ["x.png"], ["a.png", "b.png"]]


def test_a_photograph_that_a_phone_stored_sideways_is_turned_upright(tmp_path):
    source = folder(tmp_path / "animals")
    upright = np.zeros((8, 8, 3), np.uint8)
    upright[:4] = 255
    notes = Image.Exif()
    notes[0x0112] = 6  # to be turned clockwise when shown
    phone = source / "images/ant/a.png"  # the only image of its class
    Image.fromarray(np.rot90(upright)).save(phone, exif=notes)
    store = built(source, tmp_path / "packed")
    label = [c.name for c in store.classes].index("ant")
    assert (store.images[store.labels == label] == upright).all()
