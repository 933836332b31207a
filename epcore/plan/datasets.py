"""The settings of data sets and of the files that they come from."""

from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from epcore.plan.settings import Settings

# -- where files come from ------------------------------------------------------------------------


class SourceFile(Settings):
    """One file of a source; `path` is its place below the data root.

    Without `urls` it is never downloaded. `unpacked` is a folder that is as good as the file.
    Without `sha256` and `md5` nobody published a checksum: size and content are all there is.
    """

    path: str
    urls: tuple[str, ...] = ()
    size: PositiveInt | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    md5: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None
    unpacked: str | None = None

    @model_validator(mode="after")
    def _inside(self) -> Self:
        for path in (self.path, self.unpacked or "x"):
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ValueError("a path below the data root, without '..', is expected")
        return self


class Source(Settings):
    """Files that belong together, with their license and terms.

    `by_hand` lists the steps to get what must not be downloaded by a program.
    """

    title: str
    license: str
    terms: str
    by_hand: tuple[str, ...] = ()
    files: dict[str, SourceFile]


# -- data sets ------------------------------------------------------------------------------------


SharedImages = Literal["refuse", "keep", "leave-out"]
# What no pixel depends on: a change of it builds no data anew.
BESIDE_PIXELS = {"title": "", "rotations_are_classes": False}


class DataSetSettings(Settings):
    """What every data set says; `title` is how captions call it.

    `shared_images` is what becomes of an image that two splits have, pixel by pixel: it is an
    error, or kept in both, or left out of base or val, so that the last split alone has it.

    `rotations_are_classes` says that a turned picture is of another class, so that whatever a
    recipe says no network is pretrained on rotated copies or asked for their rotation.
    """

    title: str
    shared_images: SharedImages = "refuse"
    rotations_are_classes: bool = False

    @property
    def caption(self) -> str:
        """The title, and what readers of its numbers have to know."""
        remarks = []
        if self.shared_images == "leave-out":
            remarks.append("images that splits share left out of base and val, see store.json")
        if self.rotations_are_classes:
            remarks.append("its rotations are classes: no rotated copies, no rotation loss")
        return f"{self.title} ({'; '.join(remarks)})" if remarks else self.title


class PerSplit(Settings):
    """A number for each split."""

    base: PositiveInt
    val: PositiveInt
    novel: PositiveInt


class Pixels(Settings):
    """How a picture becomes a square of `image_size`.

    `resize` squeezes the whole picture, `center-crop` takes the central square first. The filters
    are Pillow's, which weigh all pixels that a new one covers.
    """

    processing: Literal["resize", "center-crop"] = "resize"
    filter: Literal["bilinear", "bicubic", "lanczos", "box"] = "bilinear"

    def __str__(self) -> str:
        part = "the whole picture" if self.processing == "resize" else "the central square"
        return f"{part}, {self.filter}"


class Expected(Settings):
    """What a published data set has in each split; anything else is an error."""

    classes: PerSplit
    images: PerSplit | None = None


class RandomSplit(PerSplit):
    """Numbers of classes, drawn from a seed."""

    seed: NonNegativeInt


class GlyphPictures(DataSetSettings):
    """Characters drawn from a seed; see `epcore.data.builders.glyphs`."""

    shared_images: Literal["refuse"] = "refuse"
    selection: Literal["mini", "tiered", "fine", "large"]
    image_size: PositiveInt
    images_per_class: PerSplit
    seed: NonNegativeInt


class GlyphData(GlyphPictures):
    """The first pictures of each class."""

    kind: Literal["glyphs"]


class MoreGlyphData(GlyphPictures):
    """Pictures of the classes of other glyphs, after the first `skip` of each class."""

    kind: Literal["more-glyphs"]
    skip: NonNegativeInt


class OwnData(DataSetSettings):
    """A data set of the user's own; without `split` it says itself which class is in which."""

    shared_images: Literal["refuse", "leave-out"] = "refuse"
    path: str
    image_size: PositiveInt
    pixels: Pixels = Pixels()
    split: RandomSplit | None = None


class FolderData(OwnData):
    """A folder `images/<class>/<file>` with a split; see `epcore.data.builders.folder`."""

    kind: Literal["folder"]


class ArraysData(OwnData):
    """An `.npz` of images and labels; see `epcore.data.builders.arrays`."""

    kind: Literal["npz"]


class OfficialData(DataSetSettings):
    """A published data set, out of sources of datasets.yaml: pixels and, where needed, lists.

    Others compare with it, so that it is kept as it is, unless its settings say otherwise.
    """

    shared_images: Literal["keep", "leave-out"] = "keep"
    images: str
    expected: Expected

    @property
    def sources(self) -> list[str]:
        """The names of all sources that it reads."""
        roles = [getattr(self, role, None) for role in ("images", "lists", "devkit")]
        return [name for name in roles if name is not None]


class CifarData(OfficialData):
    """Classes of CIFAR-100 at its 32 pixels: CIFAR-FS or FC100, as `lists` says."""

    kind: Literal["cifar-100"]
    image_size: ClassVar = 32
    lists: str


class OmniglotData(OfficialData):
    """Characters in four rotations, each rotation a class."""

    kind: Literal["omniglot"]
    lists: str
    image_size: PositiveInt
    pixels: Pixels


class CubData(OfficialData):
    """CUB-200-2011; its split follows from the order of its classes."""

    kind: Literal["cub"]
    image_size: PositiveInt
    pixels: Pixels


class MiniImageNetData(OfficialData):
    """mini-ImageNet out of ILSVRC2012."""

    kind: Literal["mini-imagenet"]
    lists: str
    devkit: str
    image_size: PositiveInt
    pixels: Pixels


class MiniImageNetPickles(OfficialData):
    """mini-ImageNet out of `mini-imagenet-cache-*.pkl`, at their 84 pixels."""

    kind: Literal["mini-imagenet-pickles"]
    image_size: ClassVar = 84
    lists: str


class TieredImageNetData(OfficialData):
    """tiered-ImageNet out of ILSVRC2012."""

    kind: Literal["tiered-imagenet"]
    lists: str
    devkit: str
    image_size: PositiveInt
    pixels: Pixels


class TieredImageNetPickles(OfficialData):
    """tiered-ImageNet out of `*_images_png.pkl`, at their 84 pixels."""

    kind: Literal["tiered-imagenet-pickles"]
    image_size: ClassVar = 84


class ImageNetFsData(OfficialData):
    """ImageNet-FS out of ILSVRC2012, in one of two readings of its published indices.

    `part` is `train`, the images that exemplars come from, or `val`, the queries.
    """

    kind: Literal["imagenet-fs"]
    shared_images: Literal["keep"] = "keep"
    lists: str
    devkit: str
    reading: Literal["by-name", "by-sorted-index"]
    part: Literal["train", "val"]
    image_size: PositiveInt
    pixels: Pixels


DataSet = Annotated[
    GlyphData
    | FolderData
    | ArraysData
    | CifarData
    | OmniglotData
    | CubData
    | MiniImageNetData
    | MiniImageNetPickles
    | TieredImageNetData
    | TieredImageNetPickles
    | ImageNetFsData
    | MoreGlyphData,
    Field(discriminator="kind"),
]


# Kinds that one core packs in two minutes at most: drawn, or published as arrays or few pictures.
# Others are ILSVRC2012's, long lists of pictures, or one's own of any size.
QUICKLY_PACKED = ("glyphs", "more-glyphs", "cifar-100", "cub", "mini-imagenet-pickles")


class DataSources(Settings):
    """The file datasets.yaml."""

    sources: dict[str, Source]
    datasets: dict[str, DataSet]
