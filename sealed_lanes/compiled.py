"""Compiles the lanes for this processor. The code must pass a self-test before its first use."""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from nacl._sodium import ffi, lib
from nacl.bindings import crypto_box_SEALBYTES

from sealed_lanes.arrays import BoolArray, Octets, UInt64Array
from sealed_lanes.boxes import KEY_BYTES, KEY_WORDS, SCRATCH, SECRETBOX_OPEN, SECRETBOX_SEAL, module
from sealed_lanes.emit import LANES, VECTOR_BYTES
from sealed_lanes.self_test import fault_of
from sealed_lanes.words import NEEDED, ProofError

_FUNCTIONS = {"write_masks": 2, "multiply": 3, "divide": 2, "open_boxes": 6, "seal_boxes": 7}


class NoLanes(Exception):
    """The lanes cannot be used on this system; the message says why."""


class FaultyLanes(NoLanes):
    """The code fails its proof or its test, although this processor has the needed instructions."""


class Lanes:
    """The compiled code. Calls release the GIL and share no memory, so several threads may call at once."""

    def __init__(self, code: Any) -> None:
        # Kept, because the compiler's object owns the memory of the machine code.
        self._code = code
        self._call = {
            name: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(code.get_function_address(name))
            for name, count in _FUNCTIONS.items()
        }

    def products(self, scalar: bytes, points: Octets) -> Octets:
        """Return uint8[n, 32]: X25519 of a scalar and each point of uint8[n, 32]."""
        made = np.empty_like(points)
        with _Scratch() as scratch:
            masks, points_at, pair, products = map(
                scratch.at, (SCRATCH.masks, SCRATCH.ephemeral, SCRATCH.shared_pair, SCRATCH.shared)
            )
            scratch.broadcast(SCRATCH.scalar, scalar)
            self._call["write_masks"](scratch.at(SCRATCH.scalar), masks)
            for start in range(0, len(points), LANES):
                group = points[start : start + LANES]
                scratch.words(SCRATCH.ephemeral)[:, : len(group)] = np.ascontiguousarray(group).view("<u8").T
                self._call["multiply"](masks, points_at, pair)
                self._call["divide"](pair, products)
                lanes = scratch.words(SCRATCH.shared)[:, : len(group)]
                made[start : start + LANES] = np.ascontiguousarray(lanes.T).view(np.uint8)
        return made

    def open_rows(self, sealed: Octets, public_key: bytes, secret: bytes) -> tuple[Octets, BoolArray]:
        """Open the rows of uint8[n, L + 48]; return uint8[n, L], zeros for failures, and bool[n], the successes."""
        count, size = sealed.shape
        length = size - crypto_box_SEALBYTES
        plain, opened = np.zeros((count, max(0, length)), dtype=np.uint8), np.zeros(count, dtype=np.bool_)
        rows = np.ascontiguousarray(sealed)
        with _Scratch() as scratch:
            scratch.broadcast(SCRATCH.scalar, secret)
            scratch.broadcast(SCRATCH.recipient, public_key)
            if count and length >= 0:
                pointers = (scratch.at(0), rows.ctypes.data, plain.ctypes.data, opened.ctypes.data)
                self._call["open_boxes"](*pointers, count, size)
        plain[~opened] = 0
        return plain, opened

    def seal_rows(self, plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
        """Seal each row of uint8[n, L] with its row of `secrets` as the ephemeral secret; return uint8[n, L + 48].

        Args:
            secrets: uint8[n, 32], random, used in no other call; the caller wipes this array.

        Raises:
            ValueError: the public key does not have 32 bytes, or has small order; or a row has no secret.
        """
        count, length = plain.shape
        if secrets.shape != (count, KEY_BYTES) or not secrets.flags.c_contiguous:
            raise ValueError(f"secrets has shape {secrets.shape}, must have {(count, KEY_BYTES)} and be C-contiguous")
        sealed, good = np.empty((count, length + crypto_box_SEALBYTES), np.uint8), np.ones(count, np.bool_)
        rows = np.ascontiguousarray(plain)
        with _Scratch() as scratch:
            scratch.broadcast(SCRATCH.recipient, public_key)
            if count:
                pointers = (rows.ctypes.data, secrets.ctypes.data, sealed.ctypes.data, good.ctypes.data)
                self._call["seal_boxes"](scratch.at(0), *pointers, count, length)
        if not good.all():
            raise ValueError("public_key is not a valid X25519 public key")
        return sealed


class _Scratch:
    """Memory for one call, wiped at its end."""

    def __enter__(self) -> _Scratch:
        octets = np.zeros((SCRATCH.vectors + 1) * VECTOR_BYTES, dtype=np.uint8)
        first = -octets.ctypes.data % VECTOR_BYTES
        self._octets = octets
        self._vectors: UInt64Array = (
            octets[first : first + SCRATCH.vectors * VECTOR_BYTES].view(np.uint64).reshape(SCRATCH.vectors, LANES)
        )
        return self

    def __exit__(self, *_: object) -> None:
        lib.sodium_memzero(ffi.from_buffer(self._octets), self._octets.nbytes)

    def at(self, first: int) -> int:
        """Return the address of a vector."""
        return self._vectors[first:].ctypes.data

    def words(self, first: int) -> UInt64Array:
        return self._vectors[first : first + KEY_WORDS]

    def broadcast(self, first: int, key: bytes) -> None:
        """Write a key of 32 bytes into all lanes."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"key has {len(key)} bytes, must have {KEY_BYTES}")
        self.words(first)[:] = np.frombuffer(key, dtype="<u8")[:, np.newaxis]


def make_lanes() -> Lanes:
    """Check the processor, prove and compile the code, and compare it with libsodium; all this takes half a second.

    Raises:
        NoLanes: this is not Linux on x86-64 with AVX-512 IFMA.
        FaultyLanes: the code fails its proof or its test.
    """
    if (system := f"{platform.system()} on {platform.machine()}") != "Linux on x86_64" or sys.maxsize < 1 << 32:
        raise NoLanes(f"this is {system}, not 64-bit Linux on x86_64")
    try:
        # Without this check, LLVM would not notice that the system forbids generated code, and the first call would end
        # the process.
        llvm.check_jit_execution()
    except OSError:
        raise NoLanes("this system forbids processes to generate code") from None
    try:
        features = llvm.get_host_cpu_features()
        # This is checked first, because an instruction that the processor lacks would end the process.
        if missing := [name for name in NEEDED if not features.get(name)]:
            raise NoLanes(f"this processor has no {' and no '.join(missing)}")
        lanes = Lanes(_compiled())
        fault = fault_of(lanes)
    except (ProofError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise FaultyLanes(f"the code could not be made ({type(error).__name__})") from error
    if fault is not None:
        raise FaultyLanes(f"the code failed its test: {fault}")
    return lanes


def _compiled() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    parsed = llvm.parse_assembly(str(module()))
    parsed.verify()
    code = llvm.create_mcjit_compiler(parsed, target_machine())
    for name in (SECRETBOX_OPEN, SECRETBOX_SEAL):
        address = int(ffi.cast("uintptr_t", ffi.addressof(lib, name)))
        code.add_global_mapping(parsed.get_function(name), address)
    code.finalize_object()
    return code


def target_machine() -> Any:
    """Return LLVM's code generator for this processor. No pass of LLVM's optimiser runs."""
    # NEEDED comes last: if a hypervisor hides a feature, LLVM removes all features that depend on it.
    features = ",".join([llvm.get_host_cpu_features().flatten(), *(f"+{name}" for name in NEEDED)])
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2
    )
