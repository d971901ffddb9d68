"""The errors of callbacks, emitters and views."""


class CallbackError(Exception):
    """A callback used its context in a way that Goka does not allow, or called `ctx.fail`. Texts are as in Goka."""


class CodecError(CallbackError):
    """A codec cannot read or write a value."""


class EmitterClosedError(Exception):
    """A message was emitted after `finish` of its emitter."""

    def __init__(self) -> None:
        super().__init__("emitter already closed")


class ViewError(Exception):
    """A view does not run, or cannot read its table or a value."""
