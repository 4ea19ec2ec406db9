"""Bytes become messages, in whatever pieces they arrive, and never fill the memory."""

import json

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError

from toolscout.downstream.process import TOO_LONG, read_line
from toolscout.jsonrpc_lines import LineReader, SkippedLine


def answer(number, text="x"):
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": text}}).encode() + b"\n"


def lines_of(reader, data, step):
    return [line for at in range(0, len(data), step) for line in reader.feed(data[at : at + step])]


@given(st.lists(st.one_of(st.just(b"garbage\n"), st.integers(0, 99).map(answer)), max_size=20), st.integers(1, 50))
def test_messages_arrive_whole_in_whatever_pieces_the_bytes_are_read(lines, step):
    messages = [read_line(line, 1_000) for line in lines_of(LineReader(1_000), b"".join(lines), step)]
    expected = [json.loads(line)["id"] if line[:1] == b"{" else None for line in lines]
    assert [getattr(message, "id", None) for message in messages] == expected


@given(st.binary(max_size=2_000), st.integers(1, 300))
def test_lines_are_those_of_the_bytes_and_the_buffer_is_bounded(data, step):
    reader = LineReader(100)
    lines = []
    for at in range(0, len(data), step):
        lines += reader.feed(data[at : at + step])
        assert reader.buffered_bytes <= 100
    lines += reader.feed(b"\n")
    expected = [line for line in data.split(b"\n") if line.strip()]
    assert [line.size if isinstance(line, SkippedLine) else line for line in lines if not is_blank(line)] == [
        len(line) if len(line) > 100 else line for line in expected
    ]
    assert [getattr(read_line(line, 100), "id", None) for line in reader.feed(answer(7))] == [7]


def is_blank(line):
    """A long line of spaces is skipped before anyone can tell that it is blank."""
    return isinstance(line, SkippedLine) and not line.start.strip() and not line.end.strip()


@given(st.binary(max_size=500))
def test_a_line_of_any_bytes_is_a_message_or_nothing(data):
    read_line(data, 100)


def test_an_answer_that_is_too_long_becomes_an_error_for_its_own_call():
    for line in (answer(5, "y" * 5_000), b'{"result":{"text":"' + b"y" * 5_000 + b'"},"jsonrpc":"2.0","id":5}\n'):
        for step in (700, len(line)):
            reader = LineReader(1_000)
            messages = [read_line(part, 1_000) for part in lines_of(reader, line, step)]
            [message] = messages
            assert isinstance(message, JSONRPCError)
            assert (message.id, message.error.code) == (5, TOO_LONG)
            assert f"{len(line) - 1} bytes" in message.error.message
            assert [getattr(read_line(part, 1_000), "id", None) for part in reader.feed(answer(6))] == [6]


def test_a_long_notification_is_skipped():
    reader = LineReader(100)
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"x": "y" * 500}}).encode()
    assert [read_line(part, 100) for part in reader.feed(line + b"\n")] == [None]


def test_an_endless_line_is_counted_and_not_kept():
    reader = LineReader(100)
    for _ in range(200):
        assert reader.feed(b"z" * 100) == []
        assert reader.buffered_bytes <= 100
    assert reader.skipped_bytes == 20_000
