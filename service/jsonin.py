"""JSON from outside: strict, bounded, and forgiving only where real clients are odd (half surrogates)."""

import json
import re
from typing import Any, NoReturn

import orjson

from service.errors import InvalidInput

HALF_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(raw: bytes) -> Any:
    """Raises `InvalidInput` with status 400 for anything that is not one JSON document in UTF-8, for NaN and Infinity,
    and for nesting beyond the parser's 1,024 levels. Half a surrogate pair becomes U+FFFD."""
    if not raw.strip():
        raise InvalidInput("the body is empty; send one JSON document", status=400)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if b"\\ud" in raw or b"\\uD" in raw:
            return _parse_half_surrogates(raw)
        raise InvalidInput(f"the body is not JSON in UTF-8: {error}", status=400) from None


def _parse_half_surrogates(raw: bytes) -> Any:
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse)
        whole = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return orjson.loads(HALF_SURROGATE.sub("\ufffd", whole))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the body is not JSON in UTF-8: {error}", status=400) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
