"""Signals as a shell gives them to a program: tests are about those, however they are started themselves."""

import signal

USUAL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def usual_signals() -> None:
    """Undo what a background job, `nohup` or a script has made of signals, for this process and its children."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, USUAL)
    for number in USUAL:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
