"""The published pickles, read without Python's unpickler: it would run what an attacker put in.

They were written by Python 2 or 3 in the protocols 2 to 4, and hold mappings, lists, texts, whole
numbers and arrays of plain numbers or texts. The few opcodes that these take are carried out here;
all others are refused. What a file asks for is in proportion to its own size: no length goes beyond
its end, and nothing of any size is referred to twice.
"""

import math
import pickle  # for the names of its opcodes
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import IO, Any

import numpy as np

from epcore.errors import UserError

# Opcodes followed by a number, and by the length of what follows; with their formats.
NUMBERS = {
    pickle.BININT: "<i", pickle.BININT1: "<B", pickle.BININT2: "<H", pickle.PROTO: "<B",
    pickle.FRAME: "<Q", pickle.BINPUT: "<B", pickle.LONG_BINPUT: "<I", pickle.BINGET: "<B",
    pickle.LONG_BINGET: "<I",
}  # fmt: skip
LENGTHS = {
    pickle.SHORT_BINSTRING: "<B", pickle.BINSTRING: "<I", pickle.SHORT_BINBYTES: "<B",
    pickle.BINBYTES: "<I", pickle.BINBYTES8: "<Q", pickle.SHORT_BINUNICODE: "<B",
    pickle.BINUNICODE: "<I", pickle.BINUNICODE8: "<Q", pickle.LONG1: "<B",
}  # fmt: skip
TEXTS = (pickle.SHORT_BINUNICODE, pickle.BINUNICODE, pickle.BINUNICODE8)
VALUES = {*LENGTHS, pickle.BININT, pickle.BININT1, pickle.BININT2}
CONSTANTS = {
    pickle.NONE: None, pickle.NEWTRUE: True, pickle.NEWFALSE: False, pickle.EMPTY_TUPLE: (),
}  # fmt: skip
TUPLES = {pickle.TUPLE: None, pickle.TUPLE1: 1, pickle.TUPLE2: 2, pickle.TUPLE3: 3}
KNOWN = {
    *LENGTHS, *NUMBERS, *CONSTANTS, *TUPLES, pickle.MARK, pickle.EMPTY_LIST, pickle.EMPTY_DICT,
    pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS, pickle.MEMOIZE, pickle.GLOBAL,
    pickle.STACK_GLOBAL, pickle.REDUCE, pickle.BUILD, pickle.STOP,
}  # fmt: skip
SHORT = 1000  # of names, and of what a file may refer to again


class _Refused(Exception):  # noqa: N818 - it says what is refused
    """What no published pickle holds."""


def _opcodes(file: IO[bytes]) -> Iterator[tuple[bytes, Any]]:
    """Each opcode and what follows it, up to the end of the pickle; see the tables above."""
    start = file.tell()
    end = file.seek(0, 2)
    file.seek(start)

    def read(size: int) -> bytes:
        if size > end - file.tell():
            raise _Refused("it ends too early")
        return file.read(size)

    def number(form: str) -> int:
        value: int = struct.unpack(form, read(struct.calcsize(form)))[0]
        return value

    while True:
        code = read(1)
        if code not in KNOWN:
            raise _Refused(f"it has the opcode {code!r}")
        argument: Any = None
        if code in LENGTHS:
            argument = read(number(LENGTHS[code]))
            if code in TEXTS:
                argument = argument.decode("utf-8")
            elif code == pickle.LONG1:
                if len(argument) > 8:
                    raise _Refused("a number of more than 64 bits")
                argument = int.from_bytes(argument, "little", signed=True)
        elif code in NUMBERS:
            argument = number(NUMBERS[code])
        elif code == pickle.GLOBAL:
            argument = tuple(file.readline(SHORT).decode().removesuffix("\n") for _ in range(2))
        yield code, argument
        if code == pickle.STOP:
            return


# -- arrays --------------------------------------------------------------------------------------

# numpy trusts pickles, so that its own functions are named here and never called: what they would
# make is made anew, of plain layouts, as a view of bytes that nobody changes.


class _Dtype:
    """What a pickle says of a dtype; its byte order comes later, once."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch(r"[?biufSU]\d{0,9}", text(code), re.ASCII):
            raise _Refused(f"an array of the kind {code!r}")
        self.plain, self.complete = np.dtype(text(code)), False

    def complete_with(self, state: Any) -> None:
        if self.complete or any(layout is not None for layout in state[2:5]):
            raise _Refused("an array of records, or a dtype that is set twice")
        order: Any = text(state[1])
        self.plain, self.complete = self.plain.newbyteorder(order), True


class _Promised:
    """An array that is about to get its content."""


def _array(shape: Any, dtype: Any, fortran: Any, content: Any) -> np.ndarray:
    """Raises `_Refused` unless the bytes are exactly those of the array."""
    if not (
        isinstance(dtype, _Dtype)
        and isinstance(content, bytes)
        and isinstance(shape, tuple)
        and all(isinstance(length, int) and length >= 0 for length in shape)
        and math.prod(shape) * dtype.plain.itemsize == len(content) > 0
    ):
        raise _Refused("an array whose content does not fit its shape")
    return np.ndarray(shape, dtype.plain, content, order="F" if fortran else "C")


def _ndarray(*_: Any) -> None:
    raise _Refused("it calls numpy.ndarray")  # it is only named


def _dtype(*arguments: Any) -> _Dtype:
    return _Dtype(*arguments)


def _reconstruct(*_: Any) -> _Promised:
    return _Promised()


def _scalar(dtype: Any, content: Any) -> Any:
    return _array((), dtype, False, content)[()]


def _encode(content: Any, encoding: Any) -> bytes:
    """Bytes as Python 3 writes them into pickles of protocol 2."""
    if not isinstance(content, str) or text(encoding) != "latin1":
        raise _Refused(f"bytes in the encoding {encoding!r}")
    return content.encode("latin1")


FUNCTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _ndarray,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):  # its old module and its new
    FUNCTIONS[f"{_core}.multiarray", "_reconstruct"] = _reconstruct
    FUNCTIONS[f"{_core}.multiarray", "scalar"] = _scalar


def _function(module: Any, name: Any) -> Callable[..., Any]:
    function = FUNCTIONS.get((text(module), text(name)))
    if function is None:
        raise _Refused(f"it asks for {text(module)}.{text(name)}")
    return function


# -- mappings and lists --------------------------------------------------------------------------

LEAVES = (int, str, bytes, np.ndarray, np.generic)


def _extend(items: Any, more: list[Any]) -> None:
    if not isinstance(items, list) or not all(isinstance(item, LEAVES) for item in more):
        raise _Refused("a list of more than texts, numbers and arrays")
    items.extend(more)


def _update(mapping: Any, more: list[Any]) -> None:
    for key, value in zip(more[::2], more[1::2], strict=True):
        if not isinstance(mapping, dict) or not isinstance(key, (str, bytes)):
            raise _Refused("a mapping whose keys are no texts")
        inner = isinstance(value, dict) and not any(isinstance(v, dict) for v in value.values())
        if not (inner or isinstance(value, (*LEAVES, list))):
            raise _Refused("a mapping of more than texts, numbers, arrays and lists")
        mapping[key] = value


def _again(value: Any) -> Any:
    """Something that was there before: a function, a dtype or something short, never a container.

    Containers in containers, each a few times, would be a large thing in a small file.
    """
    short = isinstance(value, (str, bytes)) and len(value) <= SHORT
    if short or isinstance(value, (int, _Dtype, FunctionType)):
        return value
    raise _Refused("it refers to one thing twice")


def _built(value: Any, state: Any) -> Any:
    """A promised array with its content, or a dtype with its byte order."""
    if isinstance(value, _Promised):
        return _array(*state[1:5])
    if isinstance(value, _Dtype):
        value.complete_with(state)
        return value
    raise _Refused("it sets the state of what has none, or twice")


def _value(file: IO[bytes]) -> Any:
    """What a pickle holds."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def taken(count: int | None = None) -> list[Any]:
        """The last `count` values, or those since the last mark."""
        start = marks.pop() if count is None else len(stack) - count
        values = stack[start:]
        if len(values) < (count or 0):
            raise _Refused("it takes what is not there")
        del stack[start:]
        return values

    for code, argument in _opcodes(file):
        if code in VALUES:
            stack.append(argument)
        elif code in (pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE):
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif code in (pickle.BINGET, pickle.LONG_BINGET):
            stack.append(_again(memo[argument]))
        elif code == pickle.MARK:
            marks.append(len(stack))
        elif code in (pickle.APPEND, pickle.APPENDS):
            more = taken(1 if code == pickle.APPEND else None)
            _extend(stack[-1], more)
        elif code in (pickle.SETITEM, pickle.SETITEMS):
            more = taken(2 if code == pickle.SETITEM else None)
            _update(stack[-1], more)
        elif code in TUPLES:
            stack.append(tuple(taken(TUPLES[code])))
        elif code == pickle.EMPTY_LIST:
            stack.append([])
        elif code == pickle.EMPTY_DICT:
            stack.append({})
        elif code in CONSTANTS:
            stack.append(CONSTANTS[code])
        elif code == pickle.GLOBAL:
            stack.append(_function(*argument))
        elif code == pickle.STACK_GLOBAL:
            stack.append(_function(*taken(2)))
        elif code == pickle.REDUCE:
            function, arguments = taken(2)
            if not isinstance(function, FunctionType):
                raise _Refused("it calls what is no function")
            stack.append(function(*arguments))
        elif code == pickle.BUILD:
            value, state = taken(2)
            stack.append(_built(value, state))
    [value] = stack
    if not isinstance(value, (dict, list)):
        raise _Refused("it holds neither a mapping nor a list")
    return value


# -- what builders call --------------------------------------------------------------------------


def load(file: IO[bytes], name: str) -> Any:
    """The mapping or list of a pickle; strings of Python 2 come as bytes, arrays are read-only.

    Raises:
        UserError: if the file is damaged or holds anything else.
    """
    try:
        return _value(file)
    except Exception as error:  # a damaged pickle raises nearly anything
        raise UserError(
            f"{name} is refused: it is damaged, or holds more than arrays, texts and numbers "
            f"({error}); delete it and get it again"
        ) from None


def text_keys(mapping: Any, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """A loaded mapping with texts for keys, which must include `keys`.

    Raises:
        UserError: if it is none, or lacks one.
    """
    if not isinstance(mapping, dict):
        raise UserError(f"{name} holds no mapping; is it the right file?")
    texts = {text(key): value for key, value in mapping.items()}
    missing = [key for key in keys if key not in texts]
    if missing:
        raise UserError(f"{name} has no {missing[0]!r}; is it the right file?")
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

    A list of arrays of bytes may be larger than the memory. Nothing is built here: the opcodes are
    read one by one, and the contents of arrays stand among them.

    Raises:
        UserError: if the file is damaged.
    """
    try:
        with path.open("rb") as file:
            for _, argument in _opcodes(file):
                if isinstance(argument, str) and argument.startswith(prefix.decode("latin1")):
                    yield argument.encode("latin1")
                elif isinstance(argument, bytes) and argument.startswith(prefix):
                    yield argument
    except (_Refused, ValueError, MemoryError) as error:
        raise UserError(f"{path} is damaged ({error}); delete it and get it again") from None
