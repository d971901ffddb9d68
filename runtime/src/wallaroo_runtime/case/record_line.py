r"""Converts records of topics to lines of text and back: `TOPIC KEY VALUE`, and `HEADER=VALUE` for each header.

A value may have spaces, and `-` means no value. A word in double quotes is a JSON string: for an empty key, a key with
spaces, or a value that would otherwise be read as something else. A word that begins with `0x` has bytes in hexadecimal
digits.
"""

import json

from wallaroo.message.kafka_record import KafkaRecord

NOTHING, QUOTE, HEX = "-", '"', "0x"
EXAMPLE = "user-clicks Ann clicked"


def parse_record(line: str) -> KafkaRecord:
    r"""Return the record that a line describes.

    Raises:
        ValueError: The line is no record. The text is the reason.

    Example:
        >>> parse_record("deposits Bob 10 currency=USD")
        KafkaRecord(topic='deposits', key=b'Bob', value=b'10', headers=(('currency', b'USD'),), timestamp_ms=0, partition=None, offset=0)
        >>> parse_record('notes "" two words').value
        b'two words'
    """  # noqa: E501
    words = _words(line)
    if len(words) < 3:
        reason = f"it has {len(words)} of three words, as in `{EXAMPLE}`"
        raise ValueError(reason)
    topic, key, *rest = words
    headers = []
    while len(rest) > 1 and not rest[-1].startswith(QUOTE) and "=" in rest[-1]:
        name, _, value = rest.pop().partition("=")
        headers.append((name, _bytes(value)))
    value = " ".join(rest)
    kept = None if value == NOTHING else _bytes(value)
    return KafkaRecord(_bytes(topic).decode(), None if key == NOTHING else _bytes(key), kept, tuple(reversed(headers)))


def record_line(record: KafkaRecord) -> str:
    """Return a record as the line that `parse_record` reads.

    Example:
        >>> record_line(KafkaRecord("sums-table", b"Ann", None)), record_line(KafkaRecord("t", b"", b"a=b c=d"))
        ('sums-table Ann -', 't "" "a=b c=d"')
    """
    key = NOTHING if record.key is None else _word(record.key)
    value = NOTHING if record.value is None else _value(record.value)
    headers = [f"{_word(name.encode())}={_word(data or b'')}" for name, data in record.headers]
    return " ".join([_word(record.topic.encode()), key, value, *headers])


def topic_and_key(line: str) -> tuple[str, ...]:
    r"""Return topic and key of the record in a line. A case keeps lines with one topic and key in their order.

    Example:
        >>> topic_and_key('notes "two words" more'), topic_and_key("notes"), topic_and_key('notes "')
        (('notes', '"two words"'), ('notes',), ('notes "',))
    """
    try:
        return tuple(_words(line)[:2])
    except ValueError:
        return (line,)  # the line is no record


def _words(line: str) -> list[str]:
    """Split a line at spaces outside quotes. Two spaces in a row give an empty word, so joining restores the line."""
    words, start, at = [], 0, 0
    while at < len(line):
        if line[at] == QUOTE and (at == start or line[at - 1] == "="):
            at = _end_of_text(line, at)
        if at < len(line) and line[at] == " ":
            words.append(line[start:at])
            start = at + 1
        at += 1
    return [*words, line[start:]] if line else []


def _end_of_text(line: str, start: int) -> int:
    """Return the column after the JSON string that begins at column `start`."""
    try:
        return json.JSONDecoder().raw_decode(line, start)[1]
    except ValueError:
        reason = f"the text that begins at column {start + 1} does not end"
        raise ValueError(reason) from None


def _bytes(word: str) -> bytes:
    """Return the bytes that a word of a line stands for."""
    if word.startswith(QUOTE):
        return str(json.loads(word)).encode("utf-8", "surrogateescape")
    return bytes.fromhex(word.removeprefix(HEX)) if word.startswith(HEX) else word.encode("utf-8", "surrogateescape")


def _word(data: bytes) -> str:
    """Return bytes as one word of a line, in quotes if necessary."""
    text = _plain(data)
    return json.dumps(text, ensure_ascii=False) if text is not None and " " in text else _value(data, text)


def _value(data: bytes, text: str | None = None) -> str:
    """Return the value of a record as the last part of a line, in quotes or hexadecimal digits if necessary."""
    text = _plain(data) if text is None else text
    if text is None:
        return HEX + data.hex()
    is_odd = text in ("", NOTHING) or text.startswith((QUOTE, HEX)) or "=" in text or QUOTE in text or "  " in text
    return json.dumps(text, ensure_ascii=False) if is_odd or text != text.strip() else text


def _plain(data: bytes) -> str | None:
    """Return bytes as text; None if they are not UTF-8, or contain characters that cannot be printed in a line."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None
