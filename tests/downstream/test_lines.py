"""Bytes become messages, whatever their order, and never fill the memory."""

import json

from hypothesis import given
from hypothesis import strategies as st

from toolscout.downstream.lines import TOO_LONG, LineReader


def answer(number, text="x"):
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": text}}).encode() + b"\n"


@given(st.lists(st.one_of(st.just(b"garbage\n"), st.integers(0, 99).map(answer)), max_size=20), st.integers(1, 50))
def test_messages_arrive_whole_however_the_bytes_are_cut(lines, step):
    reader = LineReader(1_000)
    data = b"".join(lines)
    found = [message for at in range(0, len(data), step) for message in reader.feed(data[at : at + step])]
    assert [message.id for message in found] == [json.loads(line)["id"] for line in lines if line[:1] == b"{"]
    assert reader.garbage == lines.count(b"garbage\n")


@given(st.binary(max_size=2_000), st.integers(1, 300))
def test_no_bytes_do_harm(data, step):
    reader = LineReader(100)
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])
        assert len(reader._buffer) <= 100 + step
    reader.feed(b"\n")
    assert [message.id for message in reader.feed(answer(7))] == [7]


def test_a_line_that_is_too_long_answers_its_own_call():
    for line in (answer(5, "y" * 5_000), b'{"result":{"text":"' + b"y" * 5_000 + b'"},"jsonrpc":"2.0","id":5}\n'):
        reader = LineReader(1_000)
        found = [message for at in range(0, len(line), 700) for message in reader.feed(line[at : at + 700])]
        assert [(message.id, message.error.code) for message in found] == [(5, TOO_LONG)]
        assert [message.id for message in reader.feed(answer(6))] == [6]


def test_a_long_notice_is_dropped_and_counted():
    reader = LineReader(100)
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"x": "y" * 500}}).encode()
    assert reader.feed(line + b"\n") == []
    assert reader.garbage == 1
    assert not reader.flooded
    for _ in range(200):
        reader.feed(b"z" * 100)
    assert reader.flooded
