"""A frame comes out as it went in; what is no frame costs nothing but itself."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from attnlib.grading.channel import HEAD, MAGIC, Also, Caps, Channel, Lost


@pytest.fixture
def ends():
    """A channel, and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours, Caps(header=1000, numbers=1 << 16, arrays=3))
    yield channel, theirs
    channel.close()
    theirs.close()


def frame(header, about, numbers=b"", magic=MAGIC):
    text = json.dumps([header, about]).encode()
    return HEAD.pack(magic, len(text), len(numbers)) + text + numbers


def carried(header, arrays):
    """What comes out at the other end."""
    ours, theirs = socket.socketpair()
    sender, reader = Channel(ours), Channel(theirs)
    thread = threading.Thread(target=sender.send, args=(header, arrays))
    thread.start()
    try:
        return reader.receive(10)
    finally:
        thread.join()
        sender.close()
        reader.close()


NUMBERS = st.sampled_from(["?", "i1", "<i4", "<i8", "u1", "<f2", "<f4", "<f8", "<c16"])


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(
        NUMBERS.flatmap(
            lambda dtype: arrays_of.arrays(
                dtype, arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4)
            )
        ),
        max_size=4,
    )
)
def test_arrays_come_out_as_they_went_in(arrays):
    header, back = carried({"n": 1}, arrays)
    assert header == {"n": 1}
    assert len(back) == len(arrays)
    for one, other in zip(arrays, back, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
        assert other.flags.writeable


def test_no_axes_strides_and_the_other_byte_order_are_carried_too():
    odd = [
        np.array(2.5),
        np.arange(12.0).reshape(3, 4).T[::2],
        np.arange(3, dtype=">i4"),
    ]
    for one, other in zip(odd, carried({}, odd)[1], strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none()))
def test_headers_come_out_as_they_went_in(header):
    assert carried(header, [])[0] == header


def test_not_a_number_and_infinity_stay_in_a_header():
    header, _ = carried({"a": float("inf"), "b": [float("nan")]}, [])
    assert header["a"] == float("inf")
    assert header["b"][0] != header["b"][0]


def test_half_a_character_becomes_a_question_mark():
    assert carried({"text": "a\ud800b"}, [])[0] == {"text": "a?b"}


def test_an_array_of_objects_is_not_sent(ends):
    with pytest.raises(TypeError, match="An array of object cannot be sent"):
        ends[0].send({}, [np.array([{}])])


def test_more_than_a_socket_holds_goes_through():
    large = np.arange(3_000_000.0)
    assert np.array_equal(carried({}, [large])[1][0], large)


FORGED = {
    "junk": (b"\x00\xff" * 50, "broke"),
    "other magic": (frame({}, [], magic=b"AbH2"), "broke"),
    "no json": (HEAD.pack(MAGIC, 3, 0) + b"{{{", "broke"),
    "no utf-8": (HEAD.pack(MAGIC, 2, 0) + b"\xff\xff", "broke"),
    "deep json": (HEAD.pack(MAGIC, 1000, 0) + b"[" * 1000, "broke"),
    "long integer": (HEAD.pack(MAGIC, 900, 0) + b"9" * 900, "broke"),
    "not a pair": (frame({}, [])[:16] + b"[]".ljust(8), "broke"),
    "header is a list": (frame([], []), "broke"),
    "half a character": (frame({"a": "\ud800"}, []), "broke"),
    "no shape": (frame({}, ["<f8"]), "broke"),
    "shape is text": (frame({}, [["<f8", "12"]]), "broke"),
    "negative side": (frame({}, [["<f8", [-1]]], b"12345678"), "broke"),
    "side is true": (frame({}, [["<f8", [True]]], b"12345678"), "broke"),
    "side is a half": (frame({}, [["<f8", [1.0]]], b"12345678"), "broke"),
    "too many axes": (frame({}, [["<f8", [1] * 33]], b"12345678"), "broke"),
    "too few numbers": (frame({}, [["<f8", [2]]], b"12345678"), "broke"),
    "too many numbers": (frame({}, [["<f8", [1]]], b"123456789"), "broke"),
    "nothing, but huge": (frame({}, [["<f8", [2**31 - 1] * 4 + [0]]]), "broke"),
    "objects": (frame({}, [["|O", [1]]], b"12345678"), "broke"),
    "fields": (frame({}, [["f8,O", [1]]], b"12345678"), "broke"),
    "text array": (frame({}, [["<U2", [1]]], b"12345678"), "broke"),
    "dates": (frame({}, [["<M8", [1]]], b"12345678"), "broke"),
    "no type": (frame({}, [["", [1]]], b"12345678"), "broke"),
    "type of one letter": (frame({}, [["f", [1]]], b"1234"), "broke"),
    "long header": (HEAD.pack(MAGIC, 1001, 0), "output"),
    "much": (HEAD.pack(MAGIC, 10, 1 << 60), "output"),
    "most": (HEAD.pack(MAGIC, 2**32 - 1, 2**64 - 1), "output"),
    "many arrays": (frame({}, [["<f8", [0]]] * 4), "output"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_frame_is_refused(ends, name):
    channel, theirs = ends
    forged, reason = FORGED[name]
    theirs.sendall(forged)
    with pytest.raises(Lost) as caught:
        channel.receive(5)
    assert caught.value.reason == reason


def test_a_forged_truth_value_is_true_or_false(ends):
    channel, theirs = ends
    theirs.sendall(frame({}, [["|b1", [3]]], b"\x00\x01\x02"))
    (truth,) = channel.receive(5)[1]
    assert truth.tolist() == [False, True, True]
    assert truth.view(np.uint8).tolist() == [0, 1, 1]


def test_two_frames_in_one_piece_are_two(ends):
    channel, theirs = ends
    theirs.sendall(frame({"n": 1}, []) + frame({"n": 2}, []))
    assert channel.receive(5)[0] == {"n": 1}
    assert channel.receive(5)[0] == {"n": 2}


@pytest.mark.parametrize("cut", [1, 10, 20, 30])
def test_half_a_frame_is_waited_for_no_longer_than_said(ends, cut):
    channel, theirs = ends
    theirs.sendall(frame({"n": 1}, [["<f8", [1]]], b"12345678")[:cut])
    with pytest.raises(Lost) as caught:
        channel.receive(0.05)
    assert caught.value.reason == "timeout"


def test_who_sends_byte_by_byte_gets_no_more_time(ends):
    channel, theirs = ends
    stop = threading.Event()

    def drip():
        while not stop.wait(0.02):
            theirs.send(b"A")

    theirs.sendall(HEAD.pack(MAGIC, 999, 0))
    thread = threading.Thread(target=drip)
    thread.start()
    start = time.monotonic()
    with pytest.raises(Lost) as caught:
        channel.receive(0.3)
    stop.set()
    thread.join()
    assert caught.value.reason == "timeout"
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("sent", [b"", b"AbH1", frame({"n": 1}, [])[:-1]])
def test_a_closed_line_has_ended(ends, sent):
    channel, theirs = ends
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(Lost) as caught:
        channel.receive(5)
    assert caught.value.reason == "ended"


def test_what_was_said_before_the_line_was_closed_counts(ends):
    channel, theirs = ends
    theirs.sendall(frame({"n": 1}, []))
    theirs.close()
    assert channel.receive(5)[0] == {"n": 1}


def test_who_does_not_read_is_not_waited_for(ends):
    with pytest.raises(Lost) as caught:
        ends[0].send({}, [np.zeros(5_000_000)], 0.1)
    assert caught.value.reason == "timeout"


def test_who_has_gone_is_not_sent_to(ends):
    channel, theirs = ends
    theirs.close()
    with pytest.raises(Lost) as caught:
        channel.send({}, [np.zeros(5_000_000)], 5)
    assert caught.value.reason == "ended"


def test_a_second_socket_may_end_the_wait(ends):
    news, sender = socket.socketpair()

    def act():
        raise Lost("memory", news.recv(10).decode())

    sender.sendall(b"too much")
    with news, sender, pytest.raises(Lost, match="memory: too much"):
        ends[0].receive(5, Also(news, act))


def test_the_head_of_a_frame_is_sixteen_bytes():
    assert struct.calcsize(">4sIQ") == HEAD.size == 16
