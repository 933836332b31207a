"""Miniature archives in the layouts of the official ones, under their names below a data root.

Each `make_...` writes one of them; the tables in this file say what is in it. `write_settings`
writes the project's datasets.yaml with the sizes, checksums and numbers of the miniatures.
"""

import copy
import hashlib
import io
import json
import pickle
import struct
import tarfile
import types
import zipfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import yaml
from PIL import Image
from scipy.io import savemat

CONFIG = Path(__file__).parents[1] / "config"
SPLITS = {"base": "train", "val": "val", "novel": "test"}  # ours, and upstream's names

# -- pictures and containers -------------------------------------------------------------------

SHAPES = ((45, 60), (60, 45), (50, 50), (64, 97), (41, 30), (33, 120))


def picture(name, shape=None):
    """Noise, another for each name; height and width too, unless given."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    height, width = shape or SHAPES[random.integers(len(SHAPES))]
    return random.integers(0, 256, (height, width, 3), dtype=np.uint8)


def encode(pixels, kind="JPEG", mode="RGB", orientation=1):
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).convert(mode).save(file, kind, quality=90, exif=exif)
    return file.getvalue()


def tar(members, mode="w"):
    """A tar archive of files in the order of the mapping, with the folders that they are in."""
    file = io.BytesIO()
    folders = set()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            for folder in list(Path(name).parents)[-2::-1]:
                if folder not in folders:
                    folders.add(folder)
                    entry = tarfile.TarInfo(f"{folder}/")
                    entry.type = tarfile.DIRTYPE
                    archive.addfile(entry)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class Python2Pickler(pickle._Pickler):
    """Pickles as Python 2 did: texts are bytes, and numpy has its old modules."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_bytes(self, value):
        data = value if isinstance(value, bytes) else value.encode()
        short = len(data) < 256
        self.write(pickle.SHORT_BINSTRING if short else pickle.BINSTRING)
        self.write(struct.pack("<B" if short else "<i", len(data)) + data)
        self.memoize(value)

    def save_global(self, value, name=None):
        module = value.__module__.replace("numpy._core", "numpy.core")
        self.write(pickle.GLOBAL + f"{module}\n{name or value.__name__}\n".encode())
        self.memoize(value)

    dispatch[str] = dispatch[bytes] = save_bytes
    dispatch[types.FunctionType] = save_global


def pickled(value, python=3):
    """Written by Python 2 or 3."""
    file = io.BytesIO()
    if python == 2:
        Python2Pickler(file, protocol=2).dump(value)
    else:
        pickle.dump(value, file, protocol=4)
    return file.getvalue()


# -- ILSVRC2012 --------------------------------------------------------------------------------

# Leaf of the hierarchy -> numbers in the names of its training images; no order is the numeric one.
TRAINING = {
    "n04418357": (28, 1006, 3, 10026, 515),
    "n01532829": (28, 1006, 3, 10026, 515, 101),
    "n02105855": (2933, 31, 4, 150),
    "n03062245": (77, 8, 1200, 30, 9),
    "n01739381": (1309, 77, 20, 100, 9),
    "n02950826": (5, 41, 6, 33),
    "n04443257": (2, 12, 110, 11),
    "n03400231": (9, 1000, 99, 10, 90),
    "n04612504": (1, 10, 2),
}
# Neither this nor the order of the names: the numbers that the development kit gives to classes.
IDS = {synset: number for number, synset in enumerate(TRAINING, start=1)}
# Node of the hierarchy -> leaves below it; super-classes of tiered-ImageNet.
NODES = {
    "n01524359": ("n01532829",),
    "n01726692": ("n01739381",),
    "n02083346": ("n02105855",),
    "n04524313": ("n02950826", "n03062245"),
    "n03294048": ("n03400231", "n04418357", "n04443257", "n04612504"),
}
# Real oddities of ILSVRC2012: the first two names are those of pictures that have them. The last is
# to be turned by those who heed its EXIF data; the builders of published data sets did not.
CMYK, PNG, GRAY, SIDEWAYS = "n01739381_1309", "n02105855_2933", "n04418357_28", "n02950826_33"
# What the validation images show, from number 1.
VALIDATION = (
    *("n03400231", "n01532829", "n04612504", "n02105855", "n01739381", "n04443257"),
    *("n02950826", "n04418357", "n03062245", "n01532829", "n04443257", "n03062245"),
    *("n02105855", "n03400231", "n01739381", "n04418357", "n04612504", "n02950826"),
)
KIT = "ILSVRC2012_devkit_t12"


@cache
def image(name):
    """The content of a training or validation image."""
    if name == CMYK:
        return encode(picture(name) // 3, mode="CMYK")
    if name == GRAY:
        return encode(picture(name), mode="L")
    if name == SIDEWAYS:
        return encode(picture(name), orientation=6)
    return encode(picture(name), "PNG" if name == PNG else "JPEG")


def training_images():
    """Synset -> file name -> content."""
    return {
        synset: {f"{synset}_{n}.JPEG": image(f"{synset}_{n}") for n in numbers}
        for synset, numbers in TRAINING.items()
    }


def validation_name(number):
    return f"ILSVRC2012_val_{number:08d}"


def make_training(root, layout="folders", images=None):
    """A folder of folders, a folder of tars, or the one tar of tars."""
    images = images or training_images()
    folder = root / "ilsvrc2012" / "train"
    if layout == "folders":
        for synset, files in images.items():
            (folder / synset).mkdir(parents=True)
            for name, content in files.items():
                write(folder / synset / name, content)
        return folder
    tars = {f"{synset}.tar": tar(files) for synset, files in images.items()}
    if layout == "tar":
        return write(root / "ilsvrc2012" / "ILSVRC2012_img_train.tar", tar(tars))
    for name, content in tars.items():
        write(folder / name, content)
    return folder


def make_validation(root, layout="flat", folders=VALIDATION, instead=None):
    """A folder of images, a folder of class folders, or the tar; the kit says what is what.

    `folders`: the class folder of each image. `instead`: other content of some, by number.
    """
    files = {}
    for number, folder in enumerate(folders, start=1):
        name = validation_name(number)
        place = f"{folder}/" if layout == "classes" else ""
        files[f"{place}{name}.JPEG"] = (instead or {}).get(number, image(name))
    if layout == "tar":
        return write(root / "ilsvrc2012" / "ILSVRC2012_img_val.tar", tar(files))
    for name, content in files.items():
        write(root / "ilsvrc2012" / "val" / name, content)
    return root / "ilsvrc2012" / "val"


FIELDS = ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children",
          "wordnet_height", "num_train_images")  # fmt: skip


def kit_files(counts=None):
    """What the development kit holds; `counts` of training images other than the true ones."""
    rows = []
    for synset, numbers in TRAINING.items():
        count = (counts or {}).get(synset, len(numbers))
        words = f"{synset}, a leaf", "what it means"
        rows.append((IDS[synset], synset, *words, 0, np.zeros((0, 0)), 0, count))
    for number, (synset, below) in enumerate(NODES.items(), start=len(IDS) + 1):
        children = np.array([[IDS[s] for s in below]], dtype=float)
        words = f"{synset}, a node", "what it means"
        rows.append((number, synset, *words, len(below), children, 1, 0))
    synsets = np.empty((len(rows), 1), dtype=[(field, object) for field in FIELDS])
    for place, row in enumerate(rows):
        synsets[place, 0] = tuple(float(v) if isinstance(v, int) else v for v in row)
    file = io.BytesIO()
    savemat(file, {"synsets": synsets})
    return {
        f"{KIT}/readme.txt": b"Development kit\n",
        f"{KIT}/data/ILSVRC2012_validation_ground_truth.txt": "".join(
            f"{IDS[synset]}\n" for synset in VALIDATION
        ).encode(),
        f"{KIT}/data/meta.mat": file.getvalue(),
    }


def make_kit(root, files=None):
    content = tar(kit_files() if files is None else files, "w:gz")
    return write(root / "ilsvrc2012" / f"{KIT}.tar.gz", content)


# -- mini-ImageNet, tiered-ImageNet, ImageNet-FS -----------------------------------------------

# Split -> class -> ranks.
MINI = {
    "base": {"n02105855": (1, 2, 4), "n01532829": (1, 2, 6)},
    "val": {"n02950826": (2, 3, 4)},
    "novel": {"n04418357": (1, 2, 5), "n03400231": (1, 4, 5)},
}
# Split -> (class, super-class).
TIERED = {
    "base": (("n02105855", "n02083346"), ("n01532829", "n01524359"), ("n01739381", "n01726692")),
    "val": (("n03062245", "n04524313"), ("n02950826", "n04524313")),
    "novel": (("n04443257", "n03294048"), ("n03400231", "n03294048"), ("n04418357", "n03294048")),
}
# Its pickles have names instead; these two are words for a bird and for a machine.
TIERED_NAMES = {synset: f"class {synset}" for synset in TRAINING}
TIERED_NAMES |= {"n01532829": "crane", "n04443257": "crane"}
# Its indices mean three of these nine names in the sorted list as well.
LABEL_NAMES = ("n03400231", "n04612504", "n01739381", "n02950826", "n01532829", "n03062245",
               "n04418357", "n04443257", "n02105855")  # fmt: skip
SUBSETS = {
    "base_classes_1": [4, 8],
    "base_classes_2": [2, 7],
    "novel_classes_1": [5, 1],
    "novel_classes_2": [0, 3, 6],
}


def make_mini_split(root, ranks=MINI):
    for split, name in SPLITS.items():
        rows = [
            f"{synset}{rank:08d}.jpg,{synset}"
            for synset, numbers in ranks[split].items()
            for rank in numbers
        ]
        write(root / "mini_ravi" / f"{name}.csv", "\n".join(["filename,label", *rows, ""]))


def make_tiered_split(root, classes=TIERED):
    for split, name in SPLITS.items():
        rows = "".join(f"{synset},{group}\n" for synset, group in classes[split])
        write(root / "tiered_ren" / f"{name}.csv", rows)


def make_imagenet_fs_split(root, subsets=SUBSETS):
    base = sorted(subsets["base_classes_1"] + subsets["base_classes_2"])
    content = {"label_names": LABEL_NAMES, "base_classes": base, **subsets}
    write(root / "imagenet_fs" / "hariharan_label_idx.json", json.dumps(content))


def mini_pixels(synset, place):
    """The image at a place, from 0, of a class in mini-ImageNet's pickles."""
    return picture(f"mini {synset} {place}", (84, 84))


def mini_pickle(split):
    """Images of the classes in turns, so that the rows of none are in one piece."""
    classes, count = list(MINI[split]), 3
    images = [mini_pixels(synset, place) for place in range(count) for synset in classes]
    rows = {s: [first + place * len(classes) for place in range(count)]
            for first, s in enumerate(classes)}  # fmt: skip
    return {"image_data": np.stack(images), "class_dict": rows}


def make_mini_pickles(root, python=3, **instead):
    """`instead`: other content of a split's pickle."""
    for split, name in (SPLITS | {"val": "validation"}).items():
        content = instead.get(split, pickled(mini_pickle(split), python))
        write(root / "mini-imagenet-pickles" / f"mini-imagenet-cache-{name}.pkl", content)


RED = np.full((84, 84, 3), (255, 0, 0), dtype=np.uint8)


def tiered_images(split):
    """Place of its class in the split and pixels of each image; classes in turns."""
    for place in range(3):
        for label, (synset, _) in enumerate(TIERED[split]):
            if place < len(TRAINING[synset]) - 2:
                first = (split, label, place) == ("base", 0, 0)
                pixels = picture(f"tiered {split} {label} {place}", (84, 84))
                yield label, RED if first else pixels


def tiered_pickle(split):
    """The content of the two pickles of a split: PNGs, and labels."""
    images = list(tiered_images(split))
    groups = sorted({group for _, group in TIERED[split]}, reverse=True)
    general = [groups.index(TIERED[split][label][1]) for label, _ in images]
    labels = {
        "label_specific": np.array([label for label, _ in images]),
        "label_general": np.array(general),
        "label_specific_str": [TIERED_NAMES[synset] for synset, _ in TIERED[split]],
        "label_general_str": groups,
    }
    return [np.frombuffer(encode(p, "PNG"), np.uint8).copy() for _, p in images], labels


def make_tiered_pickles(root, python=3, **instead):
    """`instead`: other content by file, `val_labels` say; bytes are written as they are."""
    for split, name in SPLITS.items():
        for part, content in zip(("images_png", "labels"), tiered_pickle(split), strict=True):
            content = instead.get(f"{split}_{part}", content)
            data = content if isinstance(content, bytes) else pickled(content, python)
            write(root / "tiered-imagenet-pickles" / f"{name}_{part}.pkl", data)


# -- CUB, CIFAR-100, Omniglot ------------------------------------------------------------------

# Class folder -> pictures; the archive has them in this order.
BIRDS = {
    "005.Crested_Auklet": ("Crested_Auklet_0059_794898.jpg", "Crested_Auklet_0001_794941.jpg"),
    "001.Black_footed_Albatross": (
        "Black_Footed_Albatross_0046_18.jpg",
        "Black_Footed_Albatross_0009_34.jpg",
        "Black_Footed_Albatross_0002_55.jpg",
    ),
    "002.Laysan_Albatross": ("Laysan_Albatross_0002_1027.jpg", "Laysan_Albatross_0003_1033.jpg"),
    "004.Groove_billed_Ani": ("Groove_Billed_Ani_0002_1670.jpg", "Groove_Billed_Ani_0004_1528.jpg"),
    "003.Sooty_Albatross": ("Sooty_Albatross_0048_1130.jpg", "Sooty_Albatross_0040_796375.jpg"),
    "006.Least_Auklet": ("Least_Auklet_0053_795123.jpg", "Least_Auklet_0027_795076.jpg"),
    "008.Rhinoceros_Auklet": ("Rhinoceros_Auklet_0029_797519.jpg",),
    "007.Parakeet_Auklet": ("Parakeet_Auklet_0065_795935.jpg", "Parakeet_Auklet_0001_2.jpg"),
}
GRAY_BIRD = "003.Sooty_Albatross/Sooty_Albatross_0048_1130.jpg"


@cache
def bird(name):
    return encode(picture(name), mode="L" if name == GRAY_BIRD else "RGB")


def cub_files():
    """What the archive holds, in its order."""
    names = [f"{folder}/{name}" for folder, files in BIRDS.items() for name in files]
    lines = "".join(f"{number} {name}\n" for number, name in enumerate(sorted(names), start=1))
    return {
        "attributes.txt": b"1 has_bill_shape::curved_(up_or_down)\n",
        "CUB_200_2011/images.txt": lines.encode(),
        "CUB_200_2011/README": b"CUB-200-2011\n",
    } | {f"CUB_200_2011/images/{name}": bird(name) for name in names}


def make_cub(root, files=None):
    return write(root / "cub" / "CUB_200_2011.tgz", tar(files or cub_files(), "w:gz"))


# Class -> super-class; a class's label is its place here, a super-class's its place below.
FINE = {
    "whale": "aquatic_mammals",
    "apple": "fruit_and_vegetables",
    "oak_tree": "trees",
    "bear": "large_carnivores",
    "beaver": "aquatic_mammals",
    "pine_tree": "trees",
    "orange": "fruit_and_vegetables",
    "wolf": "large_carnivores",
}
COARSE = ("trees", "aquatic_mammals", "fruit_and_vegetables", "large_carnivores")
# CIFAR-FS splits classes, so that two of its splits may share a super-class.
CIFAR_FS = {"base": ("whale", "oak_tree", "apple", "bear"), "val": ("wolf", "beaver"),
            "novel": ("pine_tree", "orange")}  # fmt: skip
FC100 = {"base": ("trees", "aquatic_mammals"), "val": ("large_carnivores",),
         "novel": ("fruit_and_vegetables",)}  # fmt: skip
PART_SIZES = {"train": 5, "test": 2}  # images of each class


def cifar_images(part):
    """Class and pixels of each image of a part, in the part's order."""
    random = np.random.default_rng(len(part))
    for number in range(PART_SIZES[part]):
        for name in random.permutation(list(FINE)).tolist():
            yield name, picture(f"cifar {part} {name} {number}", (32, 32))


def cifar_files(python=2):
    """What the archive holds; upstream's pickles are Python 2's."""
    names = list(FINE)
    files = {"cifar-100-python/file.txt~": b""}
    for part in ("test", "train"):
        images = list(cifar_images(part))
        content = {
            "filenames": [f"{name}_s_{number:06d}.png" for number, (name, _) in enumerate(images)],
            "batch_label": f"{part}ing batch 1 of 1",
            "fine_labels": [names.index(name) for name, _ in images],
            "coarse_labels": [COARSE.index(FINE[name]) for name, _ in images],
            # All red, then all green, then all blue.
            "data": np.stack([np.concatenate([p[:, :, c].ravel() for c in range(3)])
                              for _, p in images]),
        }  # fmt: skip
        files[f"cifar-100-python/{part}"] = pickled(content, python)
    meta = {"fine_label_names": names, "coarse_label_names": list(COARSE)}
    return files | {"cifar-100-python/meta": pickled(meta, python)}


def make_cifar(root, files=None):
    content = tar(files or cifar_files(), "w:gz")
    return write(root / "cifar-100" / "cifar-100-python.tar.gz", content)


def make_cifar_splits(root, cifar_fs=CIFAR_FS, fc100=FC100):
    folder = root / "cifarfs_fc100"
    for split, name in SPLITS.items():
        pairs = [[FINE.get(fine, "birds"), fine] for fine in cifar_fs[split]]
        write(folder / f"cifar-fs-{name}.json", json.dumps(pairs))
        write(folder / f"fc100-{name}.json", json.dumps(fc100[split]))


# Alphabet -> characters, in the one archive and in the other.
ALPHABETS = {
    "background": {"Greek": ("character02", "character01"), "Early_Aramaic": ("character01",)},
    "evaluation": {"Angelic": ("character01", "character03")},
}
# Vinyals et al. split characters, not alphabets.
CHARACTERS = {
    "base": ("Greek/character01", "Angelic/character03"),
    "val": ("Early_Aramaic/character01",),
    "novel": ("Greek/character02", "Angelic/character01"),
}
ROTATIONS = ("rot000", "rot090", "rot180", "rot270")
DRAWERS = (1, 2, 3)


def ink(character, drawer):
    """Where a drawing has ink, bool `(105, 105)`; most of it to the right of the middle."""
    random = np.random.default_rng(zlib.crc32(f"{character} {drawer}".encode()))
    return random.random((105, 105)) < np.linspace(0, 0.3, 105) ** 2 * 8


def make_omniglot(root):
    """Black on white, 1 bit a pixel."""
    for key, alphabets in ALPHABETS.items():
        path = root / "omniglot" / f"images_{key}.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for alphabet, characters in alphabets.items():
                for character in characters:
                    folder = f"{path.stem}/{alphabet}/{character}"
                    archive.writestr(f"{folder}/", b"")
                    for drawer in reversed(DRAWERS):
                        file = io.BytesIO()
                        drawing = ~ink(f"{alphabet}/{character}", drawer)
                        Image.fromarray(drawing).save(file, "PNG")
                        archive.writestr(f"{folder}/0965_{drawer:02d}.png", file.getvalue())


def make_omniglot_split(root, characters=CHARACTERS):
    for split, name in SPLITS.items():
        lines = [f"{c}/{rotation}\n" for c in characters[split] for rotation in ROTATIONS]
        write(root / "omniglot_vinyals" / f"{name}.txt", "".join(lines))


# -- all of them, and what the project is told of them -----------------------------------------


def make_lists(root):
    """The lists of classes: what upstream gives without asking."""
    make_mini_split(root)
    make_tiered_split(root)
    make_imagenet_fs_split(root)
    make_cifar_splits(root)
    make_omniglot_split(root)


def make_ilsvrc(root):
    """ILSVRC2012: what is got by hand."""
    make_kit(root)
    make_training(root)
    make_validation(root)


def make_pixels(root):
    """All other pixels."""
    make_mini_pickles(root)
    make_tiered_pickles(root)
    make_cub(root)
    make_cifar(root)
    make_omniglot(root)


def make_all(root):
    make_lists(root)
    make_ilsvrc(root)
    make_pixels(root)
    return root


def _numbers(images):
    """Split -> number of images of each class, as `expected` says it."""
    return {
        "classes": {split: len(counts) for split, counts in images.items()},
        "images": {split: sum(counts) for split, counts in images.items()},
    }


def expected():
    """Data set -> its numbers of classes and images."""
    folders = sorted(BIRDS)
    birds = {"base": folders[0::2], "val": folders[1::4], "novel": folders[3::4]}
    subsets = {"base": "base_classes", "val": "novel_classes_1", "novel": "novel_classes_2"}
    indices = SUBSETS | {"base_classes": SUBSETS["base_classes_1"] + SUBSETS["base_classes_2"]}
    fs = {split: len(indices[name]) for split, name in subsets.items()}
    each = sum(PART_SIZES.values())
    mini = _numbers({s: [len(r) for r in classes.values()] for s, classes in MINI.items()})
    of_subsets = {"classes": fs}
    with_queries = of_subsets | {"images": {split: 2 * count for split, count in fs.items()}}
    return {
        "mini-imagenet": mini,
        "mini-imagenet-resize": mini,
        "mini-imagenet-pickles": mini,
        "tiered-imagenet": _numbers(
            {s: [len(TRAINING[synset]) for synset, _ in rows] for s, rows in TIERED.items()}
        ),
        "tiered-imagenet-pickles": {
            "classes": {s: len(rows) for s, rows in TIERED.items()},
            "images": {s: len(list(tiered_images(s))) for s in TIERED},
        },
        "cub": _numbers({s: [len(BIRDS[f]) for f in folders] for s, folders in birds.items()}),
        "imagenet-fs-by-name": of_subsets,
        "imagenet-fs-by-name-queries": with_queries,
        "imagenet-fs-by-sorted-index": of_subsets,
        "imagenet-fs-by-sorted-index-queries": with_queries,
        "cifar-fs": _numbers({s: [each] * len(names) for s, names in CIFAR_FS.items()}),
        "fc100": _numbers({s: [each] * 2 * len(groups) for s, groups in FC100.items()}),
        "omniglot": _numbers(
            {s: [len(DRAWERS)] * 4 * len(names) for s, names in CHARACTERS.items()}
        ),
    }


OFFICIAL = tuple(expected())


@cache
def _project_settings():
    return yaml.safe_load((CONFIG / "datasets.yaml").read_text(encoding="utf-8"))


def settings_of(*roots, only=None):
    """The project's datasets.yaml, told of the miniatures below these roots.

    Nothing can be downloaded: the addresses are of this machine, where nobody listens. `only`
    names one data set, which is all that is kept, with its sources.
    """
    settings = copy.deepcopy(_project_settings())
    if only:
        dataset = settings["datasets"][only]
        sources = [dataset[role] for role in ("images", "lists", "devkit") if role in dataset]
        settings = {
            "sources": {name: settings["sources"][name] for name in sources},
            "datasets": {only: dataset},
        }
    for source in settings["sources"].values():
        for file in source["files"].values():
            if "urls" in file:
                file["urls"] = [f"http://127.0.0.1:9/{file['path']}"]
            for path in (root / file["path"] for root in roots):
                if path.is_file():
                    content = path.read_bytes()
                    facts = {"size": len(content), "md5": hashlib.md5(content).hexdigest(),
                             "sha256": hashlib.sha256(content).hexdigest()}  # fmt: skip
                    file |= {key: value for key, value in facts.items() if key in file}
    for name, numbers in expected().items():
        if name in settings["datasets"]:
            settings["datasets"][name]["expected"] = numbers
    return settings


def write_settings(folder, *roots, only=None):
    """`settings_of` as the file datasets.yaml of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(settings_of(*roots, only=only), sort_keys=False)
    (folder / "datasets.yaml").write_text(text, encoding="utf-8")
    return folder
