# SPDX-License-Identifier: Apache-2.0
"""Sends bare ioctls and tells what came back: rows of [node, command, bytes] as JSON; errno and the words that changed.

Needs nothing of NVIDIA's, so that branches are played whose libraries are not at hand.
"""

import fcntl
import json
import os
import sys

FILL = 0xAA


def send(node: str, command: int, size: int) -> list[object]:
    """One call with an argument full of FILL: [0 or errno, offsets of the words that the driver wrote]."""
    argument = bytearray([FILL] * size)
    descriptor = os.open(node, os.O_RDWR)
    try:
        fcntl.ioctl(descriptor, command, argument)
    except OSError as error:
        return [error.errno, []]
    finally:
        os.close(descriptor)
    return [0, [at for at in range(0, size - 3, 4) if argument[at : at + 4] != bytes([FILL] * 4)]]


if __name__ == "__main__":
    print(json.dumps([send(*row) for row in json.loads(sys.argv[1])]))
