"""Letters that another thread takes to the post: a message counts when its letter is there."""

import threading
import time

from wallaroo import goka

POST: list[str] = []  # what the post has


def write(ctx, text):
    """Count a letter of a user, say what the post has, and let a thread take the letter there."""
    ctx.set_value((ctx.value() or 0) + 1)
    ctx.emit("receipts", ctx.key, f"{text} comes after {len(POST)}")
    commit = ctx.defer_commit()
    threading.Thread(target=carry, args=(text, commit)).start()


def carry(text, commit):
    """Take a letter to the post; the message counts then."""
    time.sleep(0.05)
    POST.append(text)
    commit()


def application_setup(args):
    group = goka.define_group(
        "letters",
        goka.input("written", goka.String(), write),
        goka.persist(goka.Int64()),
        goka.output("receipts", goka.String()),
    )
    return goka.application([args[1]], group, name="Letters")
