"""Downloaded pickles: arrays come out as they went in, attacks and damage end in a message."""

import codecs
import contextlib
import functools
import operator
import os
import pickle
import resource
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from miniatures import pickled

from epcore.data import pickles
from epcore.errors import UserError

PROTOCOLS = (2, 3, 4)
PNG = b"\x89PNG\r\n\x1a\n"


def load(data):
    return pickles.load(data, "some.pkl")


def refused(data, message="some.pkl is refused"):
    with pytest.raises(UserError, match=message) as caught:
        load(data)
    assert "\n" not in str(caught.value)


def python2(value):
    return pickled(value, python=2)


@pytest.fixture
def little_memory():
    """A length that was damaged may ask for gigabytes; here they are not to be had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    enough = pages * resource.getpagesize() + (256 << 20)
    if hard != resource.RLIM_INFINITY:
        enough = min(enough, hard)
    resource.setrlimit(resource.RLIMIT_AS, (enough, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# -- what is read ------------------------------------------------------------------------------


def same(one, other):
    """Equal in value and kind, at any depth."""
    assert type(one) is type(other)
    if isinstance(other, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(other, dict):
        assert list(one) == list(other)
        same(list(one.values()), list(other.values()))
    else:
        assert one == other


ARRAYS = {
    **{code: np.arange(24).astype(code).reshape(4, 6) for code in
       ("?", "u1", "<i8", "<f4", ">f8")},
    "S": np.array([b"ab", b"", b"abc"]),
    ">U": np.array(["ab", "", "äöü€"]).astype(">U4"),
    "Fortran": np.asfortranarray(np.arange(24.0).reshape(4, 6)),
    "strided": np.arange(24).reshape(4, 6)[::2, 1::2],
    "0-d": np.array(3.5),
    "large": np.arange(100_000, dtype=np.uint8),
}  # fmt: skip
SCALARS = [
    np.float32(0.5),
    np.int64(-3),
    np.uint8(7),
    np.bool_(True),
    np.str_("ä"),
    np.bytes_(b"b"),
]
CONTAINERS = {
    "a": [1, -2, 0, 255, 65_536, 2**40, -(2**40)],
    "c": {"d": [], "ä€": "ä€"},
    "h": ["x" * 300, "y" * 70_000, "twice", "twice"],
}


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_every_kind_come_out_as_they_went_in(kind, protocol):
    array = ARRAYS[kind]
    data = pickle.dumps({"x": array, "again": [array.copy(order="K")]}, protocol)
    loaded = load(data)
    assert list(loaded) == ["x", "again"]
    for read in (loaded["x"], *loaded["again"]):
        assert (read.dtype, read.shape) == (array.dtype, array.shape)
        assert read.flags.f_contiguous == pickle.loads(data)["x"].flags.f_contiguous
        assert np.array_equal(read, array)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numbers_texts_and_containers_come_out_as_they_went_in(protocol):
    same(load(pickle.dumps(CONTAINERS, protocol)), CONTAINERS)
    same(load(pickle.dumps(SCALARS, protocol)), SCALARS)


@pytest.mark.parametrize("kind", [kind for kind in ARRAYS if kind != ">U"])
def test_arrays_that_python_2_wrote_are_read(kind):
    data = python2({"data": ARRAYS[kind], "labels": [1, 2]})
    assert b"numpy.core.multiarray" in data
    assert b"_codecs" not in data
    loaded = load(data)
    assert list(loaded) == ["data", "labels"]
    assert loaded["data"].dtype == ARRAYS[kind].dtype
    assert np.array_equal(loaded["data"], ARRAYS[kind])


def test_numbers_that_python_2_wrote_are_read():
    same(load(python2([np.float32(0.5), np.int64(-3)])), [np.float32(0.5), np.int64(-3)])


def test_strings_of_python_2_and_bytes_of_python_3_come_as_texts_of_as_many_letters():
    value = {b"fine_labels": [1], b"filenames": [b"a.png", b"\xe9.png", b"long" * 100]}
    for data in (python2(value), *(pickle.dumps(value, protocol) for protocol in PROTOCOLS)):
        assert load(data) == {"fine_labels": [1], "filenames": ["a.png", "é.png", "long" * 100]}


def test_an_array_is_a_view_of_the_bytes_that_were_read():
    [array] = load(pickle.dumps([np.arange(6, dtype=np.uint8)], 4))
    assert isinstance(array.base, bytes)
    assert not array.flags.writeable


# -- attacks -----------------------------------------------------------------------------------


class Call:
    """Pickled as a call of a function, and as what is then done with its result."""

    def __init__(self, function, *arguments, more=()):
        self.answer = (function, arguments, *more)

    def __reduce__(self):
        return self.answer

    def __call__(self):
        """Pickle wants that what is called can be."""


def touch(path):
    return Call(os.system, f"touch {path}")


def left(folder):
    """Whether an attack left its file behind; it is removed."""
    files = list(folder.glob("effect*"))
    for path in files:
        path.unlink()
    return bool(files)


# Each leaves a file behind when it is run.
ATTACKS = {
    "a call": lambda path: pickle.dumps(touch(path), 2),
    "a call of what a call gives": lambda path: pickle.dumps(
        Call(Call(operator.methodcaller, "touch"), path), 4
    ),
    "a function of numpy": lambda path: pickle.dumps(Call(np.save, path, np.arange(3)), 4),
    "a state": lambda path: pickle.dumps(Call(Call, len, more=({"x": touch(path)},)), 2),
    "among objects": lambda path: pickle.dumps(np.array([None, touch(path)], dtype=object), 4),
    "protocol 0": lambda path: b"(S'touch %s'\niposix\nsystem\n." % bytes(path),
    "before damage": lambda path: b"cposix\nsystem\n(S'touch %s'\ntR\xff" % bytes(path),
}


@pytest.mark.parametrize("kind", ATTACKS)
def test_no_call_is_run(tmp_path, kind):
    """It works on Python's own unpickler, and neither of ours runs it."""
    data = ATTACKS[kind](tmp_path / "effect.npy")
    with contextlib.suppress(Exception):
        pickle.loads(data)
    assert left(tmp_path), "this is no attack"
    refused(data)
    (tmp_path / "some.pkl").write_bytes(data)
    with contextlib.suppress(UserError):
        list(pickles.byte_strings(tmp_path / "some.pkl", PNG))
    assert not left(tmp_path)


def test_the_message_names_what_it_asked_for(tmp_path):
    refused(pickle.dumps(touch(tmp_path / "effect"), 2), r"some\.pkl is refused: .*posix\.system")


@pytest.mark.parametrize(
    ("opcode", "name"), [(b"\x82\xee", "EXT1"), (b"Poutside\n", "PERSID"), (b"N0.", "POP")]
)
def test_opcodes_that_published_pickles_do_not_take_are_refused(opcode, name):
    """Extensions and objects outside the pickle among them."""
    refused(b"\x80\x02" + opcode + b".", f"it has the opcode {name}")


@pytest.mark.parametrize("encoding", ["rot13", "hex", "utf-8", "idna", "latin-1"])
def test_no_codec_but_the_one_for_bytes_is_used(encoding):
    refused(pickle.dumps(Call(codecs.encode, "abc", encoding), 2))


# -- arrays that would reach into memory -------------------------------------------------------

RECONSTRUCT = np.empty(0).__reduce__()[0]
SCALAR = np.float64(0).__reduce__()[0]


def described(kind, names=None, fields=None, size=-1, flags=0, base=None):
    state = (3, "|", base, names, fields, size, -1 if size < 0 else 1, flags)
    return Call(np.dtype, kind, False, True, more=(state,))


def array_of(dtype, content, shape=(1,)):
    return Call(RECONSTRUCT, np.ndarray, (0,), b"b", more=((1, shape, dtype, False, content),))


FAR = described("V8", ("a",), {"a": (np.dtype("i8"), 10**12)}, 8)
OBJECT = described("V8", ("a",), {"a": (np.dtype("O"), 0)}, 8)
NOTHING = bytes(8)  # the address 0, so that a regression does not crash the tests


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize(
    "attack",
    [
        array_of(OBJECT, NOTHING),  # bytes for the address of an object
        array_of(FAR, NOTHING),  # a field outside the array
        array_of(np.dtype("O"), [1, 2], (3,)),  # fewer objects than the shape has
        Call(SCALAR, OBJECT, NOTHING),
        Call(SCALAR, np.dtype("f8"), b"1"),
        Call(np.ndarray, (1000,), "u1"),  # whatever lies in memory
        np.zeros(2, [("a", "i4"), ("b", "O")]),
        np.zeros(2, "M8[s]"),
    ],
)
def test_layouts_that_numpy_would_trust_are_refused(attack, protocol):
    refused(pickle.dumps([attack], protocol))


# -- damage ------------------------------------------------------------------------------------

SAMPLE = {
    b"data": np.arange(12, dtype=">i4").reshape(3, 4),
    "x": [np.float32(3), b"a", "ä", 2**40],
    "s": np.array(["ab", "c"]),
}
DAMAGE = {**{str(p): pickle.dumps(SAMPLE, p) for p in PROTOCOLS}, "Python 2": python2({"a": [1]})}


@pytest.mark.parametrize("whole", DAMAGE.values(), ids=DAMAGE)
def test_a_truncated_pickle_is_refused_wherever_it_ends(whole):
    load(whole)
    for end in range(len(whole)):
        refused(whole[:end])


@pytest.mark.parametrize("whole", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_byte_ends_in_values_or_in_a_message_never_in_a_crash(little_memory, whole):
    refusals = 0
    for place in range(len(whole)):
        for flip in (0x01, 0x20, 0x80, 0xFF):
            damaged = whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :]
            try:
                load(damaged)
            except UserError:
                refusals += 1
    assert refusals > len(whole) / 2


@pytest.mark.parametrize(
    "content",
    [b"", b".", b"\x80", b"<html>not found</html>", bytes(100), b"\x80\x09.", b"(" * 9999],
)
def test_what_is_no_pickle_is_refused(content):
    refused(
        content,
        r"some\.pkl is refused: it is damaged, or holds more than .*; delete it and get it again",
    )


# -- what builders ask for ---------------------------------------------------------------------


@pytest.mark.parametrize("value", [{"labels": 1}, {"labels": {"data": 1}}, ["data"]])
def test_a_missing_key_is_named(value):
    with pytest.raises(UserError, match=r"some\.pkl is refused: .*\(it has no 'data'\); delete it"):
        pickles.load(pickle.dumps(value, 4), "some.pkl", ("data",))


def test_texts_may_be_a_list_or_an_array():
    loaded = [pickles.texts(value) for value in (["a", "é"], np.array(["a", "é"]))]
    assert [[type(item) for item in some] for some in loaded] == [[str, str]] * 2
    assert loaded == [["a", "é"]] * 2


# -- lists that are larger than the memory -----------------------------------------------------

SIZES = (0, 1, 240, 255, 256, 300, 5000, 70_000)


def pngs():
    random = np.random.default_rng(0)
    return [PNG + random.bytes(size) for size in SIZES] + [PNG + bytes(range(256))]


def dumped(kind):
    """A list of arrays, one for each picture, and some arrays and texts that are none."""
    arrays = [np.frombuffer(png, np.uint8).copy() for png in pngs()]
    value = [np.arange(9), "text", *arrays[:4], b"\x89PNX", *arrays[4:], PNG[:4]]
    return python2(value) if kind == "Python 2" else pickle.dumps(value, kind)


@pytest.mark.parametrize("kind", ["Python 2", *PROTOCOLS])
def test_byte_strings_come_in_order_and_whole(tmp_path, kind):
    (tmp_path / "some.pkl").write_bytes(dumped(kind))
    assert list(pickles.byte_strings(tmp_path / "some.pkl", PNG)) == pngs()
    expected = [a.tobytes() for a in load(dumped(kind)) if isinstance(a, np.ndarray)]
    assert expected[1:] == pngs()


def long_list(path, count, dump):
    """A pickle of a list that is never in memory as a whole."""
    with path.open("wb") as file:
        for number in range(count):
            array = np.full(1 << 20, number % 251, np.uint8)
            array[: len(PNG)] = np.frombuffer(PNG, np.uint8)
            item = dump(array)
            file.write(item[:2] + b"](" if number == 0 else b"")
            file.write(item[2:-1])
        file.write(b"e.")


@pytest.mark.parametrize(
    ("dump", "count"),
    [
        (python2, 200),
        (functools.partial(pickle.dumps, protocol=2), 50),
        (functools.partial(pickle.dumps, protocol=4), 200),
    ],
    ids=["Python 2", "2", "4"],
)
def test_a_list_larger_than_the_memory_is_read_in_little(tmp_path, dump, count):
    path = tmp_path / "some.pkl"
    long_list(path, count, dump)
    tracemalloc.start()
    try:
        for number, png in enumerate(pickles.byte_strings(path, PNG)):
            assert (len(png), png[-1]) == (1 << 20, number % 251)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    path.unlink()
    assert number == count - 1
    assert peak < 20e6


@pytest.mark.parametrize("kind", ["Python 2", 2, 4])
def test_a_truncated_list_ends_in_a_message_after_what_is_whole(tmp_path, kind):
    path, whole = tmp_path / "some.pkl", dumped(kind)
    ends = [0, 1, 50, len(whole) // 2, len(whole) - 300, len(whole) - 1]
    for end in ends:
        path.write_bytes(whole[:end])
        read = []
        with pytest.raises(
            UserError, match=r"some\.pkl is refused: .*; delete it and get it again"
        ):
            read.extend(pickles.byte_strings(path, PNG))  # and keeps what came before
        assert read == pngs()[: len(read)]
    assert len(read) == len(pngs())
