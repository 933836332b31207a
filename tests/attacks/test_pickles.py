"""Pickles made to crash the reader, to read foreign memory or to ask for more than there is."""

import pickle
import struct
import tracemalloc

import pytest

from epcore.data import pickles
from epcore.errors import UserError

HEAD = b"\x80\x02"


def text(value):
    data = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def data(value):
    return pickle.BINBYTES + struct.pack("<I", len(value)) + value


def number(value):
    return pickle.BININT + struct.pack("<i", value)


def function(module, name):
    return pickle.GLOBAL + f"{module}\n{name}\n".encode()


CORE = "numpy.core.multiarray"
DTYPE = (
    function("numpy", "dtype") + text("u1") + number(0) + number(1) + pickle.TUPLE3 + pickle.REDUCE
)
ORDER = (
    pickle.MARK + number(3) + text("|") + pickle.NONE * 3 + number(-1) * 2 + number(0)
    + pickle.TUPLE + pickle.BUILD
)  # fmt: skip
PROMISED = (
    function(CORE, "_reconstruct") + function("numpy", "ndarray") + number(0) + pickle.TUPLE1
    + text("b") + pickle.TUPLE3 + pickle.REDUCE
)  # fmt: skip


def fill(*shape, content=b"abcdefgh", dtype=DTYPE + ORDER):
    """Gives the array on the stack its content."""
    lengths = b"".join(map(number, shape))
    return (
        pickle.MARK + number(1) + pickle.MARK + lengths + pickle.TUPLE + dtype + pickle.NEWFALSE
        + data(content) + pickle.TUPLE + pickle.BUILD
    )  # fmt: skip


def listed(*items):
    return HEAD + pickle.EMPTY_LIST + pickle.MARK + b"".join(items) + pickle.APPENDS + pickle.STOP


def load(content):
    return pickles.load(content, "some.pkl")


def refused(content):
    """One line, and little memory, whatever it asks for."""
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"^some\.pkl is refused.*; delete it") as caught:
            load(content)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000 + 100 * len(content)
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)


def test_what_the_attacks_are_made_of_is_read():
    [array] = load(listed(PROMISED + fill(2, 4)))
    assert array.tobytes() == b"abcdefgh"
    assert array.shape == (2, 4)


KEEP, AGAIN = pickle.BINPUT + b"\x00", pickle.BINGET + b"\x00"
FORGED = {
    "filled twice": listed(PROMISED + fill(8) + fill(8)),
    "filled twice, through a view": listed(
        PROMISED + KEEP + fill(8), AGAIN + fill(8), AGAIN + fill(2 << 20, content=bytes(2 << 20))
    ),
    "filled after it was taken": listed(PROMISED + KEEP, AGAIN + fill(8)),
    "never filled": listed(PROMISED),
    "filled without a promise": listed(data(b"abc") + fill(8)),
    "a dtype that is changed below its array": listed(
        PROMISED + fill(8, dtype=DTYPE + KEEP + ORDER), AGAIN + ORDER
    ),
    "more than its bytes": listed(PROMISED + fill(9)),
    "less than its bytes": listed(PROMISED + fill(7)),
    "two negative lengths": listed(PROMISED + fill(-2, -4)),
    "too many elements to count": listed(PROMISED + fill(2**31 - 1, 2**31 - 1, 2**31 - 1, 8)),
    "a text for its content": listed(PROMISED + fill(8).replace(data(b"abcdefgh"), text("abcd"))),
    "an array for the content of another": listed(
        PROMISED + fill(1, 8).replace(data(b"abcdefgh"), PROMISED + fill(8))
    ),
    "from the bytes of an array": listed(
        function("numpy.core.numeric", "_frombuffer") + PROMISED + fill(8) + DTYPE + ORDER
        + number(8) + pickle.TUPLE1 + text("C") + pickle.TUPLE3 + pickle.REDUCE
    ),
    "numpy's own class": listed(
        function("numpy", "ndarray") + number(9) + pickle.TUPLE1 + text("O") + pickle.TUPLE2
        + pickle.REDUCE
    ),
    "addresses of objects": listed(PROMISED + fill(1).replace(text("u1"), text("O8"))),
    "a call of a text": listed(text("x") + pickle.EMPTY_TUPLE + pickle.REDUCE),
    "a name of many lines": HEAD + b"c" + b"x" * 5000 + b"\nload\n)R.",
}  # fmt: skip


@pytest.mark.parametrize("kind", FORGED)
def test_forged_arrays_are_refused(kind):
    refused(FORGED[kind])


# Nine bytes and few more, that ask for gigabytes.
GREEDY = {
    "memo": HEAD + b"]" + pickle.LONG_BINPUT + b"\xff\xff\xff\xff",
    "text": HEAD + pickle.BINUNICODE + b"\xff\xff\xff\xff",
    "long text": HEAD + pickle.BINUNICODE8 + struct.pack("<Q", 1 << 40),
    "bytes": HEAD + pickle.BINBYTES8 + struct.pack("<Q", (1 << 63) - 1),
    "bytes of Python 2": HEAD + pickle.BINSTRING + b"\xff\xff\xff\x7f",
    "number": HEAD + pickle.LONG4 + b"\xff\xff\xff\x7f",
    "frame": b"\x80\x04" + pickle.FRAME + struct.pack("<Q", 1 << 36),
    "bytearray": b"\x80\x05" + pickle.BYTEARRAY8 + struct.pack("<Q", 1 << 36),
    "zeros": listed(PROMISED + fill(1 << 30, 4, content=b"")),
}


@pytest.mark.parametrize("kind", GREEDY)
def test_a_few_bytes_get_no_gigabytes(kind):
    refused(GREEDY[kind])


def bomb(start, twice, levels=60):
    """Each container holds the one before it, twice."""
    parts = [start + pickle.BINPUT + b"\x00"]
    for level in range(levels):
        old, new = bytes([level]), bytes([level + 1])
        parts.append(twice(pickle.BINGET + old) + pickle.BINPUT + new)
    return HEAD + b"".join(parts) + pickle.STOP


def pair(one):
    return one + one + pickle.TUPLE2


def two(one):
    return pickle.EMPTY_LIST + pickle.MARK + one + one + pickle.APPENDS


def mapping(one):
    values = text("a") + one + text("b") + one
    return pickle.EMPTY_DICT + pickle.MARK + values + pickle.SETITEMS


BOMBS = {
    "tuples": bomb(text("x"), pair),
    "lists": bomb(pickle.EMPTY_LIST, two),
    "mappings": bomb(pickle.EMPTY_DICT, mapping),
    "a key of tuples": HEAD + b"}" + bomb(text("x"), pair)[2:-1] + number(1) + b"s.",
    "one array in many places": HEAD + b"](" + PROMISED + fill(8) + KEEP + AGAIN * 999 + b"e.",
    "one long text in many places": HEAD + b"](" + text("x" * 9999) + KEEP + AGAIN * 999 + b"e.",
    "itself": HEAD + b"]" + KEEP + AGAIN + b"a.",
    "a list without end": HEAD + b"]" * 100_000 + b"a" * 99_999 + b".",
    "a mapping without end": HEAD + (b"}" + text("a")) * 10_000 + b"}" + b"s" * 10_000 + b".",
    "marks without end": HEAD + b"(" * 100_000 + b".",
    "nothing below it": HEAD + b"]aaaaaaaa.",
    "a key of tuples in tuples": HEAD + b"})" + pickle.TUPLE1 * 200_000 + number(1) + b"s.",
    "a key that is built": HEAD + b"})" + (pickle.TUPLE1 + b"Nb") * 200_000 + number(1) + b"s.",
    "a key beside a call": HEAD + b"})" + (DTYPE + pickle.TUPLE2) * 200_000 + number(1) + b"s.",
    "no container": HEAD + number(3) + b".",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
def test_small_files_hold_no_large_things(kind):
    refused(BOMBS[kind])


def test_numbers_and_names_are_checked_before_numpy_sees_them():
    """A list of a text that is long and many that are short would be a large array of texts."""
    with pytest.raises(ValueError, match="whole numbers"):
        pickles.whole_numbers(["x" * 1_000_000, *["y"] * 1_000_000])
    with pytest.raises(ValueError, match="texts are expected"):
        pickles.texts([["x"]])


@pytest.mark.parametrize("kind", [kind for kind in GREEDY if kind != "zeros"])
def test_a_list_of_pictures_asks_for_no_more_either(tmp_path, kind):
    path = tmp_path / "some.pkl"
    path.write_bytes(GREEDY[kind])
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"some\.pkl is refused: .*; delete it"):
            list(pickles.byte_strings(path, b"\x89PNG"))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
