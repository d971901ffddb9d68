"""Two senders that take turns."""

import time

from support.run import Run, finish, framed

ROUNDS, ORDERS = 100, 5


def send_in_turns(run: Run) -> list[int]:
    """Send quotes and, between them, orders; returns the orders, all of which are to be rejected."""
    sent = list(range(ROUNDS * ORDERS))
    with run.connect(0) as quotes, run.connect(1) as orders:
        for order in sent:
            if order % ORDERS == 0:
                bid = order % 7 + 1
                quotes.sendall(framed([b"GOOG %d.00 %d.50" % (bid, bid)]))
            orders.sendall(framed([b"GOOG %d 10" % order]))
            time.sleep(0.001)  # so that frames of the journal take turns, too
        finish(quotes)
        finish(orders)
    return sent
