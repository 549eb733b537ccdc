# SPDX-License-Identifier: Apache-2.0
"""Frames between the host and the agent in the guest, over one virtio serial port. Standard library only: both import it.

A frame is two big-endian 32-bit lengths, a JSON object and raw bytes. Host to guest: `run`, `put`, `get`, `kill`, `off`;
guest to host: `hello`, `out`, `err`, `exit`, `data`, `fail`. All but `hello` and `off` carry the `id` of their request.
"""

import json
import struct
from typing import Any

PREFIX = struct.Struct(">II")
LARGEST = 1 << 30


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """One frame as bytes."""
    text = json.dumps(header).encode()
    return PREFIX.pack(len(text), len(body)) + text + body


class Decoder:
    """Turns bytes as they arrive into frames."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Takes bytes and returns the frames that they complete; ValueError when they cannot be frames."""
        self.buffer += data
        frames = []
        while len(self.buffer) >= PREFIX.size:
            head, body = PREFIX.unpack_from(self.buffer)
            if head + body > LARGEST:
                raise ValueError(f"a frame of {head + body} bytes: the port carries something else")
            end = PREFIX.size + head + body
            if len(self.buffer) < end:
                break
            header = json.loads(bytes(self.buffer[PREFIX.size : PREFIX.size + head]))
            frames.append((header, bytes(self.buffer[PREFIX.size + head : end])))
            del self.buffer[:end]
        return frames
