"""Downloaded pickles, read without running what an attacker may have put into them."""

import pickle
import pickletools
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


# All that arrays and containers need; containers of Python itself have opcodes of their own.
# The functions are those that numpy names for its own arrays, under its old module and its new.
ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):
    ALLOWED[f"{_core}.multiarray", "_reconstruct"] = np.empty(0).__reduce__()[0]
    ALLOWED[f"{_core}.multiarray", "scalar"] = np.float64(0).__reduce__()[0]
    ALLOWED[f"{_core}.numeric", "_frombuffer"] = np.empty(1).__reduce_ex__(5)[0]


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
        return _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises nearly anything
        raise UserError(
            f"{name} is refused: it is damaged, or holds more than arrays and containers "
            f"({error}); get it again"
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
    """A text, written by Python 2 or 3."""
    return value.decode() if isinstance(value, bytes) else str(value)


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
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); get it again") from None
