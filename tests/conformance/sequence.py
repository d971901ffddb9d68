"""The order of messages in a bucket call: that of their sequences, whatever frames hold them."""

from conformance.application import WORDS, WORDS_OUT, bucket_of
from conformance.check import Context, check
from conformance.session import call, keyed
from conformance.stateful import SECOND, fresh


@check("state: frames that overlap, messages run in the order of their sequences")
def overlapping(context: Context) -> None:
    key, store = fresh()
    other = next(name for name in map(str, range(100)) if bucket_of(name.encode()) != store.bucket)
    frames = []
    for first in (0, 1):  # sequences 0, 2, 4, ... and 1, 3, 5, ...
        payloads = [f"{key if number % 2 == 0 else other}:add" for number in range(9)]
        frames += keyed(context.worker, WORDS, payloads, first)[store.bucket]
    for mine in (frames, frames[::-1]):
        for pieces in ([b"".join(mine)], mine):
            answer = call(context.worker, SECOND, store, pieces)
            assert answer.texts(WORDS_OUT) == [(at, f"add:{key}={at + 1};{len(key) + 4}") for at in range(10)], (
                "messages of overlapping frames did not run in the order of their sequences"
            )
