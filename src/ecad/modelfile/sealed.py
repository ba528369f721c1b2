"""manifest, arrays <-> one file that proves itself: nothing is half written, and no changed byte goes unnoticed.

    magic, format version, two lengths | manifest (JSON) | arrays, one after another | SHA-256 of all before it

Magic, lengths and hash stay where they are in later versions, so that every version can tell a damaged file from a
newer one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..errors import ModelFileError

Array = np.ndarray[Any, Any]
Pathlike = str | os.PathLike[str]

MAGIC = b"\x89ECAD\r\n\x1a"  # whatever takes the file for text breaks it here already
VERSION = 1
NUMBERS = "biufmM"  # kinds of arrays: truth values, whole numbers, numbers, spans of time, times

_HEAD = struct.Struct("<8sQQQ")  # magic, format version, bytes of the manifest, bytes of the file
_HASH = hashlib.sha256().digest_size


def order_of(array: Array) -> str:
    """In which order the numbers of an array stand in the file."""
    return "C" if array.flags.c_contiguous else "F"


def chunks(manifest: bytes, arrays: list[Array]) -> Iterator[Any]:
    """The file, piece by piece, and at its end the hash of all pieces."""
    length = _HEAD.size + len(manifest) + sum(array.nbytes for array in arrays) + _HASH
    digest = hashlib.sha256()
    head = _HEAD.pack(MAGIC, VERSION, len(manifest), length)
    segments: list[Any] = [array.reshape(-1, order="A").view(np.uint8) for array in arrays]
    for chunk in [head, manifest, *segments]:
        digest.update(chunk)
        yield chunk
    yield digest.digest()


def unpacked(content: Array) -> tuple[dict[str, Any], list[Array]]:
    """Manifest and arrays of the bytes that `read` has proven."""
    _, _, n_manifest, _ = _HEAD.unpack_from(content.data)
    end = _HEAD.size + n_manifest
    manifest = json.loads(content[_HEAD.size : end].tobytes())
    arrays = []
    for name, shape, order in manifest["arrays"]:
        dtype = np.dtype(str(name))
        if dtype.kind not in NUMBERS or order not in ("C", "F"):
            raise ValueError(f"an array of {name!r} in order {order!r} is nothing that a model file may hold")
        start, end = end, end + dtype.itemsize * math.prod(shape)
        flat = content[start:end].view(dtype)
        arrays.append(flat.reshape(shape, order=order).copy(order="K"))  # arrays of their own, aligned
    if end != len(content) - _HASH:
        raise ValueError(f"its arrays end at byte {end} of {len(content) - _HASH}")
    return manifest, arrays


def write(path: Pathlike, chunks: Iterable[Any]) -> None:
    """All or nothing: the file of this name is the old one until the new one is safely on the disk.

    A model takes the place of a model. Anything else of that name is somebody's data, given by mistake.
    """
    target = Path(os.path.realpath(path))
    if _is_something_else(target):
        raise ModelFileError(
            f"The model is not written to {os.fspath(path)!r}: a file of that name is there, and it is no model file."
        )
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        name = repr(os.fspath(path))
        raise ModelFileError(f"The model cannot be written to {name}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _is_something_else(target: Path) -> bool:
    try:
        with open(target, "rb") as file:
            return file.read(len(MAGIC)) not in (MAGIC, b"")
    except OSError:
        return False  # whatever it is, writing will say so


def read(path: Pathlike, name: str) -> Array:
    """The bytes of a model file, proven to be those that were written."""
    try:
        with open(path, "rb") as file:
            begin = file.read(len(MAGIC))
            if begin == MAGIC:
                file.seek(0)
                content: Array = np.fromfile(file, dtype=np.uint8)
    except OSError as error:
        raise ModelFileError(f"The model cannot be read from {name}: {error.strerror or error}.") from error
    if not begin:
        raise ModelFileError(f"{name} is empty: it is no model file, or all of it was lost.")
    if begin != MAGIC:
        what = "is truncated" if MAGIC.startswith(begin) else "is not a model file of ECAD"
        raise ModelFileError(f"{name} {what}: it begins with {begin!r}, and a model file with {MAGIC!r}.")
    _prove(content, name)
    return content


def _prove(content: Array, name: str) -> None:
    if len(content) < _HEAD.size + _HASH:
        raise ModelFileError(f"{name} is truncated: {len(content)} bytes are less than any model file has.")
    _, version, _, length = _HEAD.unpack_from(content.data)
    if len(content) < length:
        raise ModelFileError(
            f"{name} is truncated (or altered): {len(content):,} of its {length:,} bytes are there."
        )
    if len(content) > length:
        raise ModelFileError(
            f"{name} is altered: it has {len(content):,} bytes, and {length:,} were written."
        )
    if hashlib.sha256(content[:-_HASH].data).digest() != content[-_HASH:].tobytes():
        raise ModelFileError(
            f"{name} is altered: its bytes are not those that were written (their SHA-256 differs)."
        )
    if version > VERSION:
        raise ModelFileError(
            f"{name} has format version {version}, and ecad {__version__} reads up to {VERSION}: install a newer ecad."
        )
