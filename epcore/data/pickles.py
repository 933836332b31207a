"""The published pickles, read without Python's unpickler, so that nothing they name is called.

They hold mappings, lists, texts, whole numbers and arrays of plain numbers or texts. `load` follows
the opcodes that these take, as `pickletools` lists them, and refuses all others. An array is what
numpy writes for one: a call of `_reconstruct`, and a state of which each part is checked.
"""

import math
import mmap
import pickletools
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from epcore.errors import UserError

MARK = object()  # on the stack, below the items of a tuple, a list or a mapping
HIGHEST = 10_000  # of the stack; a pickle puts a thousand items at once into a list or mapping
SHORT = 1000  # the longest text that a pickle may refer to again
STRINGS = {"SHORT_BINSTRING", "BINSTRING"}  # of Python 2: bytes, which pickletools shows as text
ARGUMENTS = {
    "BININT", "BININT1", "BININT2", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
    "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
BEGINNINGS: dict[str, Callable[[], Any]] = {
    "MARK": lambda: MARK, "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict,
}  # fmt: skip
# How many items an opcode takes; others take those above the last mark.
COUNTS = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "APPEND": 1, "SETITEM": 2}
ARRAY = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
SCALAR = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")


class _Refused(Exception):  # noqa: N818 - it says what is refused
    """What no published pickle holds."""


class _Name(str):
    """The dotted name of a function or class."""


class _Dtype:
    """A dtype, whose byte order comes after it."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch(r"[?biufSU]\d{0,9}", text(code), re.ASCII):
            raise _Refused(f"an array of the kind {code!r}")
        self.plain = np.dtype(text(code))

    def build(self, state: Any) -> None:
        """Sets the byte order; the rest of the state is for records."""
        if any(layout is not None for layout in state[2:5]):
            raise _Refused("an array of records")
        order: Any = text(state[1])
        self.plain = self.plain.newbyteorder(order)


class _Array:
    """An array, whose content comes after it: a view of bytes that nobody changes."""

    value: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Takes the content, once, if it fits the shape."""
        if self.value is not None:
            raise _Refused("an array that is filled twice")
        _, shape, dtype, fortran, content = state
        if not (
            isinstance(dtype, _Dtype)
            and isinstance(content, bytes)
            and isinstance(shape, tuple)
            and all(isinstance(length, int) and length >= 0 for length in shape)
            and math.prod(shape) * dtype.plain.itemsize == len(content) > 0
        ):
            raise _Refused("an array whose content does not fit its shape")
        self.value = np.ndarray(shape, dtype.plain, content, order="F" if fortran else "C")


def _call(name: Any, arguments: Any) -> Any:
    """What one of four functions would return."""
    if not isinstance(name, _Name):
        raise _Refused("it calls what is no function")
    if name == "numpy.dtype":
        return _Dtype(*arguments)
    if name in ARRAY:
        return _Array()
    if name in SCALAR:
        dtype, content = arguments
        scalar = _Array()
        scalar.build((1, (), dtype, False, content))
        return _check_item(scalar)[()]
    if name == "_codecs.encode":  # bytes, as Python 3 writes them into pickles of protocol 2
        content, encoding = arguments
        if encoding != "latin1":
            raise _Refused(f"bytes in the encoding {encoding!r}")
        return content.encode("latin1")
    raise _Refused(f"it asks for {name}")


def _check_item(value: Any) -> Any:
    """An item of a list or a mapping, an array in the place of its stand-in; others are refused."""
    if isinstance(value, _Array) and value.value is not None:
        return value.value
    if isinstance(value, int | str | bytes | np.generic | list | dict) and type(value) is not _Name:
        return value
    raise _Refused("more than mappings and lists of texts, numbers and arrays")


def _memo_entry(value: Any) -> Any:
    """A name, dtype or short text, which a pickle may refer to again; a mark for anything else.

    Lists in lists, each referred to a few times, would be a large thing in a small file.
    """
    if isinstance(value, _Dtype) or (isinstance(value, str | bytes) and len(value) <= SHORT):
        return value
    return MARK


def _read(content: BytesIO | mmap.mmap) -> Any:
    """The value of a pickle."""
    stack: list[Any] = []
    memo: dict[Any, Any] = {}

    def pop_items(name: str) -> list[Any]:
        """Takes the items of an opcode off the stack: as many as COUNTS says, or to the mark."""
        count = COUNTS.get(name) or 1 + next(n for n, v in enumerate(stack[::-1]) if v is MARK)
        items = stack[-count:]
        del stack[-count:]
        return items if name in COUNTS else items[1:]

    argument: Any
    for opcode, argument, _ in pickletools.genops(content):  # type: ignore[arg-type]
        if len(stack) > HIGHEST:
            raise _Refused("lists in lists in lists")
        match opcode.name:
            case "PROTO" | "FRAME":
                pass
            case name if name in ARGUMENTS:
                stack.append(argument)
            case name if name in STRINGS:
                stack.append(argument.encode("latin1"))
            case name if name in BEGINNINGS:
                stack.append(BEGINNINGS[name]())
            case "LONG1":
                if abs(argument) >= 1 << 63:
                    raise _Refused("a number of more than 64 bits")
                stack.append(argument)
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = _memo_entry(stack[-1])
            case "MEMOIZE":
                memo[len(memo)] = _memo_entry(stack[-1])
            case "BINGET" | "LONG_BINGET":
                if memo[argument] is MARK:
                    raise _Refused("it refers to one thing twice")
                stack.append(memo[argument])
            case "GLOBAL":
                stack.append(_Name(argument.replace(" ", ".")))
            case "STACK_GLOBAL":
                name = stack.pop()
                stack.append(_Name(f"{stack.pop()}.{name}"))
            case "REDUCE":
                arguments = stack.pop()
                stack.append(_call(stack.pop(), arguments))
            case "BUILD":
                state = stack.pop()
                stack[-1].build(state)
            case "TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(pop_items(opcode.name)))
            case "APPEND" | "APPENDS":
                items = pop_items(opcode.name)
                stack[-1].extend(map(_check_item, items))
            case "SETITEM" | "SETITEMS":
                items = pop_items(opcode.name)
                if not all(isinstance(key, str | bytes) for key in items[::2]):
                    raise _Refused("a mapping whose keys are no texts")
                stack[-1].update(zip(items[::2], map(_check_item, items[1::2]), strict=True))
            case "STOP":
                break
            case name:
                raise _Refused(f"it has the opcode {name}")
    return stack.pop()


# -- what builders call --------------------------------------------------------------------------


def load(content: bytes | mmap.mmap, name: str) -> Any:
    """The mapping or list of a pickle; strings of Python 2 come as bytes, arrays are read-only.

    Raises:
        UserError: if the file is damaged or holds anything else.
    """
    try:
        value = _read(BytesIO(content) if isinstance(content, bytes) else content)
        if not isinstance(value, dict | list):
            raise _Refused("it holds neither a mapping nor a list")
        return value
    except Exception as error:  # a damaged pickle raises nearly anything
        raise UserError(
            f"{name} is refused: it is damaged, or holds more than arrays, texts and numbers "
            f"({error})",
            "delete it and get it again",
        ) from None


def load_file(path: Path) -> Any:
    """`load` of a file, of which the arrays are the one copy in memory."""
    if not path.stat().st_size:
        return load(b"", str(path))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return load(content, str(path))


def text_keys(mapping: Any, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """A loaded mapping with texts for keys, which must include `keys`.

    Raises:
        UserError: if it is none, or lacks one.
    """
    if not isinstance(mapping, dict):
        raise UserError(f"{name} holds no mapping", "is it the right file?")
    texts = {text(key): value for key, value in mapping.items()}
    missing = [key for key in keys if key not in texts]
    if missing:
        raise UserError(f"{name} has no {missing[0]!r}", "is it the right file?")
    return texts


def text(value: Any) -> str:
    """A text, written by Python 2 or 3.

    Raises:
        TypeError: if it is none.
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a text is expected, not {type(value).__name__}")


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


def byte_strings(path: Path, prefix: bytes) -> Iterator[bytes]:
    """The byte strings of a pickle that begin with `prefix`, in order, one at a time.

    A list of arrays of bytes may be larger than the memory. Nothing is built here: the contents of
    arrays stand among the opcodes, which are read one by one.

    Raises:
        UserError: if the file is damaged.
    """
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            for _, argument, _ in pickletools.genops(content):  # type: ignore[arg-type]
                if isinstance(argument, str) and argument.startswith(prefix.decode("latin1")):
                    yield argument.encode("latin1")
                elif isinstance(argument, bytes) and argument.startswith(prefix):
                    yield argument
    except (ValueError, MemoryError) as error:
        raise UserError(f"{path} is damaged ({error})", "delete it and get it again") from None
