# SPDX-License-Identifier: Apache-2.0
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.sandbox.wire import Decoder, encode

HEADERS = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8), max_size=3)


@given(st.lists(st.tuples(HEADERS, st.binary(max_size=40)), max_size=4), st.integers(1, 9))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(frames, step):
    stream = b"".join(encode(header, body) for header, body in frames)
    decoder = Decoder()

    got = [frame for at in range(0, len(stream), step) for frame in decoder.feed(stream[at : at + step])]

    assert frames == got
    assert not decoder.buffer


def test_a_stream_of_something_else_is_refused():
    with pytest.raises(ValueError, match="carries something else"):
        Decoder().feed(struct.pack(">II", 1 << 31, 0))
