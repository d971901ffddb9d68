"""The errors of callbacks, emitters and views."""


class CallbackError(Exception):
    """A callback used its context in a way that Goka does not allow, or called `ctx.fail`. Texts are as in Goka."""


class CodecError(CallbackError):
    """A codec cannot read or write a value."""


class EmitterClosedError(Exception):
    """The emitter has finished."""

    def __init__(self) -> None:
        super().__init__("emitter already closed")


class ViewError(Exception):
    """A view cannot answer now, or its table cannot be read."""
