"""The published pickles, read by Python's unpickler with stand-ins for everything that it may call.

They hold mappings, lists, texts, whole numbers and arrays of plain numbers or texts. A pass over
the opcodes comes first: it refuses what these do not take, and what would be large in a small file.
Then every name that a pickle gives becomes a stand-in of ours, because numpy's own functions trust
their input, and at the end the stand-ins become arrays.
"""

import io
import math
import mmap
import pickle
import pickletools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from epcore.errors import UserError

TEXTS = {
    "SHORT_BINSTRING", "BINSTRING", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "SHORT_BINUNICODE",
    "BINUNICODE", "BINUNICODE8",
}  # fmt: skip
PUTS, GETS = {"BINPUT", "LONG_BINPUT", "MEMOIZE"}, {"BINGET", "LONG_BINGET"}
NAMES = {"GLOBAL", "STACK_GLOBAL"}
# What a pickle may refer to again after one of these: a name, a dtype, or, as it turns out, an
# array, which is refused at the end. Containers in containers, each a few times, would be a large
# thing in a small file.
REPEATABLE = {*NAMES, "REDUCE", "BUILD"}
KNOWN = {
    *TEXTS, *PUTS, *GETS, *REPEATABLE, "BININT", "BININT1", "BININT2", "LONG1", "PROTO", "FRAME",
    "NONE", "NEWTRUE", "NEWFALSE", "MARK", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
    "EMPTY_LIST", "EMPTY_DICT", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "STOP",
}  # fmt: skip
SHORT = 1000  # of texts that a pickle may refer to again
DEEPEST = 3  # a mapping of mappings of lists
TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
DEEPEST_TUPLE = 10  # Python hashes tuples in tuples until its stack overflows


class _Refused(Exception):  # noqa: N818 - it says what is refused
    """What no published pickle holds."""


def _opcodes(
    content: io.BytesIO | mmap.mmap,
) -> Iterator[tuple[pickletools.OpcodeInfo, Any]]:
    """The opcodes that published pickles take, with their arguments; no length passes the end."""
    for opcode, argument, _ in pickletools.genops(content):  # type: ignore[arg-type]
        if opcode.name not in KNOWN:
            raise _Refused(f"it has the opcode {opcode.name}")
        yield opcode, argument


def _check(content: io.BytesIO | mmap.mmap) -> None:
    """Refuses foreign opcodes, deep tuples, and references to more than names and short texts."""
    memo: dict[int, bool] = {}
    depths: list[int | None] = []
    repeatable = False  # whether what the last opcode left may be referred to again
    for opcode, argument in _opcodes(content):
        name = opcode.name
        if name in PUTS:
            index = len(memo) if name == "MEMOIZE" else argument
            if index > 2 * len(memo) + 1000:
                raise _Refused("a reference by a number that is too large")
            memo[index] = repeatable
        elif name in GETS:
            if not memo.get(argument):
                raise _Refused("it refers to one thing twice")
        else:
            repeatable = name in REPEATABLE or (name in TEXTS and len(argument) <= SHORT)
        if name not in PUTS:
            _stack(opcode, depths)


def _stack(opcode: pickletools.OpcodeInfo, depths: list[int | None]) -> None:
    """What an opcode does to the stack, of whose values `depths` says how deep tuples nest there.

    A mark has no depth.
    """
    arguments: list[Any] = []
    count = len(opcode.stack_before)
    if pickletools.markobject in opcode.stack_before:
        count = opcode.stack_before.index(pickletools.markobject)
        while (depth := depths.pop()) is not None:
            arguments.append(depth)
    arguments += [depths.pop() for _ in range(count)]
    deepest = 0 if opcode.name == "REDUCE" else max(arguments, default=0)
    deepest += opcode.name in TUPLES
    if deepest > DEEPEST_TUPLE:
        raise _Refused("tuples in tuples in tuples")
    depths += [None if made is pickletools.markobject else deepest for made in opcode.stack_after]


# -- stand-ins -----------------------------------------------------------------------------------


class _Function:
    """A name that a pickle gives."""

    __slots__ = ("call",)

    def __init__(self, call: Any) -> None:
        self.call = call

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise _Refused("it sets the state of a function")


class _Dtype:
    """What a pickle says of a dtype; its byte order comes later, once."""

    __slots__ = ("complete", "plain")

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch(r"[?biufSU]\d{0,9}", text(code), re.ASCII):
            raise _Refused(f"an array of the kind {code!r}")
        self.plain, self.complete = np.dtype(text(code)), False

    def __setstate__(self, state: Any) -> None:
        if self.complete or any(layout is not None for layout in state[2:5]):
            raise _Refused("an array of records, or a dtype that is set twice")
        order: Any = text(state[1])
        self.plain, self.complete = self.plain.newbyteorder(order), True


class _Array:
    """An array, once its content came; a view of bytes that nobody changes."""

    __slots__ = ("value",)

    def __init__(self, *_: Any) -> None:
        self.value: Any = None

    def __setstate__(self, state: Any) -> None:
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


def _scalar(dtype: Any, content: Any) -> Any:
    array = _Array()
    array.__setstate__((1, (), dtype, False, content))
    array.value = array.value[()]
    return array


def _encode(content: Any, encoding: Any) -> bytes:
    """Bytes as Python 3 writes them into pickles of protocol 2."""
    if not isinstance(content, str) or text(encoding) != "latin1":
        raise _Refused(f"bytes in the encoding {encoding!r}")
    return content.encode("latin1")


def _named_only(*_: Any) -> None:
    raise _Refused("it calls numpy.ndarray")


FUNCTIONS = {"numpy.ndarray": _named_only, "numpy.dtype": _Dtype, "_codecs.encode": _encode}
for _core in ("numpy.core", "numpy._core"):  # its old module and its new
    FUNCTIONS[f"{_core}.multiarray._reconstruct"] = _Array
    FUNCTIONS[f"{_core}.multiarray.scalar"] = _scalar


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in FUNCTIONS:
            raise _Refused(f"it asks for {module}.{name}")
        return _Function(FUNCTIONS[f"{module}.{name}"])


def _plain(value: Any, containers: set[int], depth: int = 0) -> Any:
    """A value with arrays for their stand-ins; nothing large may be in it twice."""
    short = isinstance(value, str | bytes) and len(value) <= SHORT
    if not (short or isinstance(value, int)):
        if id(value) in containers:
            raise _Refused("it refers to one thing twice")
        containers.add(id(value))
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise _Refused("a number of more than 64 bits")
    if isinstance(value, int | str | bytes):
        return value
    if isinstance(value, _Array) and value.value is not None:
        return value.value
    if depth < DEEPEST and isinstance(value, list):
        return [_plain(item, containers, DEEPEST) for item in value]
    if depth < DEEPEST and isinstance(value, dict):
        if not all(isinstance(key, str | bytes) for key in value):
            raise _Refused("a mapping whose keys are no texts")
        return {key: _plain(item, containers, depth + 1) for key, item in value.items()}
    raise _Refused("more than mappings and lists of texts, numbers and arrays")


# -- what builders call --------------------------------------------------------------------------


def load(content: bytes | mmap.mmap, name: str) -> Any:
    """The mapping or list of a pickle; strings of Python 2 come as bytes, arrays are read-only.

    Raises:
        UserError: if the file is damaged or holds anything else.
    """
    stream = io.BytesIO(content) if isinstance(content, bytes) else content
    try:
        _check(stream)
        stream.seek(0)
        value = _plain(_Unpickler(stream, encoding="bytes").load(), set())
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

    A list of arrays of bytes may be larger than the memory. Nothing is built here: the opcodes are
    read one by one, and the contents of arrays stand among them.

    Raises:
        UserError: if the file is damaged.
    """
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            for _, argument in _opcodes(content):
                if isinstance(argument, str) and argument.startswith(prefix.decode("latin1")):
                    yield argument.encode("latin1")
                elif isinstance(argument, bytes) and argument.startswith(prefix):
                    yield argument
    except (_Refused, ValueError, MemoryError) as error:
        raise UserError(f"{path} is damaged ({error})", "delete it and get it again") from None
