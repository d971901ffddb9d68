"""Messages between two stages of a task: in a codec if they go to another worker, else in this worker's encoding."""

from collections.abc import Callable, Sequence
from typing import Any

from wallaroo.diagnostic.location import one_line
from wallaroo.message.codec import Codec, codec_of, expected_codec
from wallaroo.message.frame import PLAIN, Frame, FrameError, cut
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.exit import KeyedExit
from wallaroo.worker.value.letter_box import LetterBox, Unread
from wallaroo.worker.value.value import ValueCodec


class CodedValues:
    """Writes and reads messages in a built-in codec, for other workers, with the same methods as `ValueCodec`."""

    def __init__(self, codec: Codec) -> None:
        self.freeze = self.dump = codec.encode
        self.name, self.encoding = codec.name, PLAIN
        self._load = codec.decode

    def encode(self, messages: Sequence[bytes]) -> tuple[int, Sequence[int], bytes]:
        """Return encoding, lengths and bytes of messages that `freeze` has returned."""
        return PLAIN, list(map(len, messages)), b"".join(messages)

    def decode(self, encoding: int, lengths: Sequence[int], data: bytes) -> list[Any]:
        """Return the messages of a frame.

        Raises:
            FrameError: The values are not in a codec.
            ValueError: A value is not in this codec.
        """
        return list(map(self.loader(encoding), cut(data, lengths)))

    def loader(self, encoding: int) -> Callable[[bytes], Any]:
        """Return the function that reads one value in this codec. `encoding` comes from the header of the frame.

        Raises:
            FrameError: The values are not in a codec.
        """
        if encoding != PLAIN:
            msg = f"values have encoding {encoding}; those of a codec have {PLAIN}"
            raise FrameError(msg)
        return self._load


Values = ValueCodec | CodedValues


def read_messages(
    values: Values, frame: Frame, enters: Callable[[int], bool] | None = None
) -> tuple[list[Any], dict[int, Unread]]:
    """Return a frame's messages, with None for each unreadable one, and an `Unread` for each of these by position.

    Args:
        values: Reads the values.
        frame: The frame.
        enters: Called with the position of each message before it is read; False skips it. None reads all at once.

    Raises:
        FrameError: This worker does not know the encoding of the values.
    """
    encoding = frame.header.encoding
    try:
        if enters is None:
            return values.decode(encoding, frame.lengths, frame.data), {}
    except FrameError:
        raise
    except BaseException:
        pass  # the values are read one by one, to find the wrong one
    load = values.loader(encoding)
    messages: list[Any] = []
    unread: dict[int, Unread] = {}
    for position, data in enumerate(frame.values()):
        if enters is not None and not enters(position):
            messages.append(None)
            unread[position] = Unread(data, "", "")
            continue
        try:
            messages.append(load(data))
        except BaseException as err:
            messages.append(None)
            unread[position] = _unread(values, data, err)
    return messages, unread


def _unread(values: Values, data: bytes, error: BaseException) -> Unread:
    if isinstance(values, CodedValues):
        return Unread(data, "C505", f'it is not in codec "{values.name}"; {one_line(error)}')
    return Unread(data, "C504", f"the message cannot be read back; {one_line(error)}")


def values_of(node: pb.Node, own: ValueCodec) -> Values:
    """Return the object that writes and reads the messages at a node where they enter or leave a stage.

    Raises:
        FrameError: The node names a codec that this worker does not have.
    """
    if not node.codec:
        return own
    codec = codec_of(node.codec)
    if codec is None:
        msg = f"{node.path} has codec {node.codec}; expected {expected_codec(node.codec)[0]}"
        raise FrameError(msg)
    return CodedValues(codec)


class SendExit(KeyedExit):
    """The exit at a SEND node: collects messages for other stages of the same task.

    Attributes:
        dead: How many messages became dead letters in this call.
    """

    def __init__(self, node: pb.Node, name: str, stage: pb.Stage, values: Values, box: LetterBox) -> None:
        super().__init__(node, name, stage, box)
        self._codec, self.has_keys, self._has_times = values, node.keys, node.timestamps
        self.dead = 0

    def clear(self) -> None:
        """Forget the messages of this call."""
        super().clear()
        self.dead = 0

    def put(self, message: Any, sequence: int, key: bytes | str = b"", time: int = 0) -> None:
        """Add a message, or make a dead letter of a message that the codec cannot write."""
        key = key.encode() if isinstance(key, str) else key
        try:
            value = self._codec.dump(message)
        except BaseException as err:
            self.dead += 1
            self._box.add(self.path, self.name, message, sequence, err, code="C504")
            return
        if self._box.refuses(self, message, sequence, len(value), key_size=len(key)):
            self.dead += 1
            return
        self.take(value, sequence, key, time)

    def columns(self, more: dict[int, int], positions: range, timestamp_ms: int) -> dict[str, Any]:
        """Return the arguments of `frame_of` for encoding and times. `more` has the times that are not 0."""
        times = [more.get(position, 0) for position in positions] if self._has_times else ()
        return {"encoding": self._codec.encoding, "timestamp_ms": timestamp_ms, "times": times}
