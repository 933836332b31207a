"""The published pickles, read without Python's unpickler, so that nothing they name is called.

They hold mappings, lists, texts, whole numbers and arrays of plain numbers or texts. `load` follows
the opcodes that these take, as `pickletools` lists them, and refuses all others. The functions and
classes that a pickle may name have stand-ins here, because numpy's own trust their arguments.
Python's unpickler would need a pass over the opcodes before it: a few bytes make it claim
gigabytes, and a key of many tuples in tuples ends the process that hashes it.
"""

import math
import mmap
import pickletools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from epcore.errors import UserError

HIGHEST = 10_000  # of the stack; a pickle puts a thousand items at once into a list or mapping
SHORT = 1000  # the longest text that a pickle may refer to again
VALUES = {
    "BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BINSTRING", "SHORT_BINSTRING",
}  # fmt: skip
BEGINNINGS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict,
}  # fmt: skip
# How many items an opcode takes; others take those above the last mark.
COUNTS = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "APPEND": 1, "SETITEM": 2}

# -- stand-ins -------------------------------------------------------------------------------------


class _Dtype:
    """A dtype, whose byte order comes after it."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch(r"[?biufSU]\d{0,9}", code, re.ASCII):
            raise ValueError(f"an array of the kind {code!r}")
        self.plain = np.dtype(code)

    def build(self, state: Any) -> None:
        """Sets the byte order; the rest of the state is for records."""
        if state[2:5] != (None, None, None):
            raise ValueError("an array of records")
        self.plain = self.plain.newbyteorder(state[1])


class _Array:
    """An array, whose content comes after it: a view of bytes that nobody changes."""

    def __init__(self, *_: Any) -> None:
        self.value: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Takes the content, once, if it fits the shape."""
        if self.value is not None:
            raise ValueError("an array that is filled twice")
        _, shape, dtype, fortran, text = state
        content = text.encode("latin1")
        if not (
            isinstance(dtype, _Dtype)
            and isinstance(shape, tuple)
            and all(isinstance(length, int) and length >= 0 for length in shape)
            and math.prod(shape) * dtype.plain.itemsize == len(content) > 0
        ):
            raise ValueError("an array whose content does not fit its shape")
        self.value = np.ndarray(shape, dtype.plain, content, order="F" if fortran else "C")


def _scalar(dtype: Any, text: Any) -> Any:
    array = _Array()
    array.build((1, (), dtype, False, text))
    return _item(array)[()]


def _encode(text: Any, encoding: Any) -> Any:
    """Bytes, as Python 3 writes them into pickles of protocol 2; they stay a text."""
    if encoding != "latin1":
        raise ValueError(f"bytes in the encoding {encoding!r}")
    return text


STAND_INS: dict[str, Callable[..., Any]] = {
    "numpy.dtype": _Dtype,
    "numpy.ndarray": _Array,  # what `_reconstruct` is asked for
    "numpy.core.multiarray._reconstruct": _Array,
    "numpy._core.multiarray._reconstruct": _Array,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
    "_codecs.encode": _encode,
}

# -- opcodes ---------------------------------------------------------------------------------------


def _stand_in(name: str) -> Callable[..., Any]:
    if name not in STAND_INS:
        raise ValueError(f"it asks for {name}")
    return STAND_INS[name]


def _item(value: Any) -> Any:
    """An item of a list or a mapping, an array in the place of its stand-in; others are refused."""
    if isinstance(value, _Array) and value.value is not None:
        return value.value
    int64 = isinstance(value, int) and abs(value) < 1 << 63
    if int64 or isinstance(value, str | np.generic | list | dict):
        return value
    raise ValueError("more than mappings and lists of texts, numbers and arrays")


def _repeated(value: Any) -> Any:
    """A stand-in, dtype or short text, which a pickle may refer to again; others are refused.

    Lists in lists, each referred to a few times, would be a large thing in a small file.
    """
    short = isinstance(value, str) and len(value) <= SHORT
    if short or isinstance(value, _Dtype) or callable(value):
        return value
    raise ValueError("it refers to one thing twice")


def _read(content: bytes) -> Any:
    """The mapping or list of a pickle."""
    stack: list[Any] = []
    marks: list[int] = []  # how high the stack was at each mark
    memo: dict[Any, Any] = {}

    def take(name: str) -> list[Any]:
        """Takes the items of an opcode off the stack."""
        start = len(stack) - COUNTS[name] if name in COUNTS else marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    argument: Any
    for opcode, argument, _ in pickletools.genops(content):
        if len(stack) > HIGHEST:
            raise ValueError("lists in lists in lists")
        match opcode.name:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "MARK":
                marks.append(len(stack))
            case name if name in VALUES:
                stack.append(str(argument, "latin1") if isinstance(argument, bytes) else argument)
            case name if name in BEGINNINGS:
                stack.append(BEGINNINGS[name]())
            case "BINPUT" | "LONG_BINPUT" | "MEMOIZE":
                memo[len(memo) if argument is None else argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(_repeated(memo[argument]))
            case "GLOBAL":
                stack.append(_stand_in(argument.replace(" ", ".")))
            case "STACK_GLOBAL":
                name = stack.pop()
                stack.append(_stand_in(f"{stack.pop()}.{name}"))
            case "REDUCE":  # nothing but stand-ins can be called on the stack
                arguments = stack.pop()
                stack.append(stack.pop()(*arguments))
            case "BUILD":
                state = stack.pop()
                stack[-1].build(state)
            case "TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3" as name:
                stack.append(tuple(take(name)))
            case "APPEND" | "APPENDS" as name:
                items = take(name)
                stack[-1].extend(map(_item, items))
            case "SETITEM" | "SETITEMS" as name:
                items = take(name)
                if not all(isinstance(key, str) for key in items[::2]):
                    raise ValueError("a mapping whose keys are no texts")
                stack[-1].update(zip(items[::2], map(_item, items[1::2]), strict=True))
            case name:
                raise ValueError(f"it has the opcode {name}")
    value = stack.pop()
    if not isinstance(value, dict | list):
        raise ValueError("it holds neither a mapping nor a list")
    return value


# -- what builders call ----------------------------------------------------------------------------


@contextmanager
def _damage_told(name: str | Path) -> Iterator[None]:
    """Raises `UserError` if anything goes wrong in the block: damage may raise nearly anything."""
    try:
        yield
    except Exception as error:
        raise UserError(
            f"{name} is refused: it is damaged, or holds more than arrays, texts and numbers "
            f"({error})",
            "delete it and get it again",
        ) from None


def load(content: bytes, name: str, keys: tuple[str, ...] = ()) -> Any:
    """The mapping, which has these keys, or the list of a pickle; arrays are read-only.

    Bytes, which the strings of Python 2 are, come as texts of as many letters (Latin-1).

    Raises:
        UserError: if the file is damaged, lacks a key or holds anything else.
    """
    with _damage_told(name):
        value = _read(content)
        for key in keys:
            if not isinstance(value, dict) or key not in value:
                raise ValueError(f"it has no {key!r}")
        return value


def byte_strings(path: Path, prefix: bytes) -> Iterator[bytes]:
    """The byte strings of a pickle that begin with `prefix`, in order, one at a time.

    A list of arrays of bytes may be larger than the memory. Nothing is built here: the contents of
    arrays stand among the opcodes, which are read one by one.

    Raises:
        UserError: if the file is damaged.
    """
    with (
        _damage_told(path),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for _, argument, _ in pickletools.genops(content):  # type: ignore[arg-type]
            if isinstance(argument, str) and argument.startswith(prefix.decode("latin1")):
                yield argument.encode("latin1")
            elif isinstance(argument, bytes) and argument.startswith(prefix):
                yield argument


def whole_numbers(value: Any) -> np.ndarray:
    """A loaded list or array of whole numbers `(N,)` as int64.

    Raises:
        ValueError: if it is anything else.
    """
    if isinstance(value, list) and all(isinstance(item, (int, np.integer)) for item in value):
        return np.array(value, dtype=np.int64)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        return value.astype(np.int64)
    raise ValueError("whole numbers are expected")


def texts(value: Any) -> list[str]:
    """A loaded list or array of texts.

    Raises:
        ValueError: if it is anything else.
    """
    if isinstance(value, list | np.ndarray) and all(
        isinstance(item, str | bytes) for item in value
    ):
        return [str(item, "latin1") if isinstance(item, bytes) else str(item) for item in value]
    raise ValueError("texts are expected")
