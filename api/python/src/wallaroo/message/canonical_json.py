"""Canonical JSON of the codec `json`: each value has exactly one text, the same in every language."""

import json
import math
import re
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from operator import itemgetter
from typing import Any

# Parts that the library writes in another form: floats, and keys that are numbers. A false match only costs time.
_DIFFERS = re.compile(r'[0-9][.e]|[0-9]":')


def write_json(value: Any) -> str:
    r"""Return the canonical text of a value.

    Raises:
        TypeError: A part of the value cannot be written in JSON, or a dict has keys of several types.
        ValueError: A float is infinite or NaN, or a value contains itself.

    Example:
        >>> write_json({"b": 1.0, "a": [1e21, 0.1, 2**53 + 1]})
        '{"a":[1e+21,0.1,9007199254740993],"b":1}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return _written(value) if _DIFFERS.search(text) else text


def read_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: The text is not JSON, a number is too large for a float, or a string has a lone surrogate.
    """
    value = json.loads(text, parse_constant=_no_number, parse_float=_float)
    if "\\u" in text:  # lone surrogates can only come from escapes
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            msg = "a text has a lone surrogate"
            raise ValueError(msg) from None
    return value


def number_text(number: float) -> str:
    """Return the text of a float in canonical JSON: the form in which ECMAScript (JavaScript) writes it.

    Example:
        >>> [number_text(each) for each in (1.0, -0.0, 1e16, 1e-5, 1e-7)]
        ['1', '0', '10000000000000000', '0.00001', '1e-7']
    """
    mantissa, _, exponent = float.__repr__(number).removesuffix(".0").partition("e")
    if not exponent:
        return "0" if mantissa == "-0" else mantissa
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    point = int(exponent) + 1
    if point <= -6 or point > 21:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{point - 1:+d}"
    # ECMAScript has no exponent here. Python has one only if all digits are on one side of the point.
    return sign + ("0." + "0" * -point + digits if point <= 0 else digits.ljust(point, "0"))


def _written(value: Any) -> str:
    # `json` has already written the value, so it has only known types and does not contain itself.
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, Mapping):
        texts = (key if isinstance(key, str) else _written(key) for key in value)
        members = sorted(zip(texts, value.values(), strict=True), key=itemgetter(0))
        return f"{{{','.join(f'{quoted(key)}:{_written(item)}' for key, item in members)}}}"
    return json.dumps(value)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        msg = f"{text} is too large for a float"
        raise ValueError(msg)
    return number


def _no_number(text: str) -> Any:
    msg = f"{text} is not JSON"
    raise ValueError(msg)
