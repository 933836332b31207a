"""Downloaded pickles, read without running what an attacker may have put into them."""

import math
import pickle
import pickletools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from epcore.errors import UserError


def _encode(text: str, encoding: str) -> bytes:
    """Bytes as Python 3 writes them into pickles of protocol 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


# numpy trusts pickles: it takes a layout with fields outside the array, or bytes for the addresses
# of objects, and whoever reads that array then reads any memory. So what a pickle gets in the
# place of numpy's names takes plain layouts only, and never hands out a dtype to be changed.


class _Dtype:
    """What a pickle says of a dtype."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch(r"[?biufcSUO]\d*", text(code)):
            raise pickle.UnpicklingError(f"an array of the kind {code!r}")
        self.plain = np.dtype(text(code))

    def __setstate__(self, state: Any) -> None:
        if any(layout is not None for layout in state[2:5]):
            raise pickle.UnpicklingError("an array of records")
        order: Any = text(state[1])
        self.plain = self.plain.newbyteorder(order)


class _Array(np.ndarray):
    """An array that is about to get its content, once: a view of it would keep freed memory."""

    filled = False

    def __setstate__(self, state: Any) -> None:
        if self.filled:
            raise pickle.UnpicklingError("an array that is filled twice")
        self.filled = True
        version, shape, dtype, fortran, content = state
        if dtype.plain.hasobject and len(content) != math.prod(shape):
            raise pickle.UnpicklingError("an array with more or fewer objects than its shape")
        super().__setstate__((version, shape, dtype.plain, fortran, content))


_numpy_scalar: Any = np.float64(0).__reduce__()[0]
_numpy_frombuffer: Any = np.empty(1).__reduce_ex__(5)[0]


def _scalar(dtype: _Dtype, content: Any) -> Any:
    return _numpy_scalar(dtype.plain, content)


def _frombuffer(content: Any, dtype: _Dtype, *layout: Any) -> np.ndarray:
    if type(content) not in (bytes, bytearray):
        raise pickle.UnpicklingError(f"an array out of {type(content).__name__}")
    # Of a copy, which nobody else changes.
    array: np.ndarray = _numpy_frombuffer(bytes(content), dtype.plain, *layout)
    return array


# All that arrays and containers need; most of Python's own have opcodes.
ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "only named, never called",
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):  # its old module and its new
    ALLOWED[f"{_core}.multiarray", "_reconstruct"] = lambda *_: _Array(0)
    ALLOWED[f"{_core}.multiarray", "scalar"] = _scalar
    ALLOWED[f"{_core}.numeric", "_frombuffer"] = _frombuffer
for _own in ("__builtin__", "builtins"):  # what old protocols have no opcodes for
    ALLOWED[_own, "bytes"] = lambda: b""  # as in an array without elements
    ALLOWED[_own, "set"] = set


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None

    def persistent_load(self, identifier: Any) -> Any:
        raise pickle.UnpicklingError("it refers to objects outside itself")


def load(file: IO[bytes], name: str) -> Any:
    """Arrays, numbers, texts and containers of them; strings of Python 2 come as bytes.

    Raises:
        UserError: if the file is damaged or holds anything else.
    """
    try:
        _check_memo(file)
        return _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises nearly anything
        raise UserError(
            f"{name} is refused: it is damaged, or holds more than arrays and containers "
            f"({error}); delete it and get it again"
        ) from None


def _check_memo(file: IO[bytes]) -> None:
    """A few bytes may ask for a memo of many gigabytes; nothing is built here."""
    begin = file.tell()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > count:
            raise pickle.UnpicklingError(f"an object with the number {argument}")
    file.seek(begin)


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
    """A text, written by Python 2 or 3."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def byte_strings(path: Path, prefix: bytes) -> Iterator[bytes]:
    """The byte strings of a pickle that begin with `prefix`, in order, one at a time.

    A list of arrays of bytes may be larger than the memory. Nothing is built or run here: the
    opcodes are read one by one, and the contents of arrays stand among them.

    Raises:
        UserError: if the file is damaged.
    """
    try:
        with path.open("rb") as file:
            for _, argument, _ in pickletools.genops(file):
                if isinstance(argument, str) and argument.startswith(prefix.decode("latin1")):
                    yield argument.encode("latin1")
                elif isinstance(argument, (bytes, bytearray)) and argument.startswith(prefix):
                    yield bytes(argument)
    except (ValueError, MemoryError, OverflowError) as error:  # a wrong length may be huge
        raise UserError(f"{path} is damaged ({error!r}); delete it and get it again") from None
