"""Whether a value can be a secret itself: a literal, and no type, variable, call, placeholder or sentence.

Plain string work: loading `re` would double the price of a hook. Texts are ASCII here (`hooks.secret_places.as_ascii`).
"""

from hooks.secret_kinds import (
    COMMON_WORDS,
    DIGITS,
    INVITATIONS,
    NO_SECRETS,
    PASSWORD_WORDS,
    REFERENCES,
    STRONG_WORDS,
    UNITS,
    WORD,
)

PLACEHOLDER = "[secret:"
PLAIN, SHORT, LONG = 3, 6, 16  # characters that a plain word, a doubtful value, a word in a doubtful place must have
_REFERENCES = (*REFERENCES, *(word + sign for word in INVITATIONS for sign in "-_ "))
_LONGEST_EXTENSION, _MOST_WORDS = 5, 6
_RANDOM = frozenset(DIGITS + "!@#$%^&*+=~?")  # in a password, seldom in a name


def is_literal(value: str, word: str, *, quoted: bool, constant: bool = False) -> bool:
    """Whether the value of a name with this word can be the secret itself; `constant` names are in capitals."""
    bare = value.strip().rstrip(".!?:,")
    if not bare or PLACEHOLDER in value or _is_said(bare) or is_reference(bare):
        return False
    if not quoted:
        return True
    words = [part.strip(".,!?:'").lower() for part in bare.split(maxsplit=_MOST_WORDS)]
    variable = "_" in bare and bare.isupper() and bare.replace("_", "").isalpha()
    if variable or len(words) > _MOST_WORDS:
        return False
    if word in STRONG_WORDS:
        common = sum(part in COMMON_WORDS for part in words)
        return len(words) == 1 or not (common > 1 or common * 2 >= len(words))
    fewest = PLAIN if constant else SHORT
    telling = constant or len(bare) >= LONG or is_random(bare, word)
    return len(words) == 1 and len(bare) >= fewest and telling and not _is_compound(bare)


def is_reference(value: str) -> bool:
    """Whether the value points to a secret, leaves a place for it, or masks it."""
    low = value.lower()
    if low.startswith(_REFERENCES):
        return True
    if value[:1] in "$%" and value[1:2].isalpha() and (value[0] == "%" or value[1:].isidentifier()):
        return True
    masked = not value.strip(".*_-?") or (len(value) >= PLAIN and not value.strip("xX"))
    return masked or _is_template(value)


def is_random(value: str, word: str) -> bool:
    """Whether letters alone do not make it up; a number or a duration is random only as a password."""
    rest = value.lstrip(DIGITS + ".,:%").lower()
    if rest in UNITS and len(rest) < len(value):
        return word in PASSWORD_WORDS and value.isdigit() and len(value) > PLAIN
    return not _RANDOM.isdisjoint(value)


def is_credential(value: str) -> bool:
    """Whether what follows `Bearer` is a token and not the next word of a sentence."""
    if len(value) < SHORT or is_reference(value):
        return False
    mixed = any(value[at - 1].islower() and value[at].isupper() for at in range(1, len(value)))
    return len(value) >= LONG or mixed or is_random(value, "auth")


def is_code(value: str) -> bool:
    """Whether it reads as an expression: `cfg.Token`, `get(`, `src/auth.py`, `key=`."""
    called, call, _ = value.partition("(")
    if call and called.replace(".", "_").isidentifier():
        return True
    parts = value.split(".")
    if len(parts) > 1 and all(part.isidentifier() for part in parts):
        return True
    stem, _, extension = value.rpartition(".")
    if (
        "/" in stem
        and 0 < len(extension) <= _LONGEST_EXTENSION
        and extension.isalnum()
        and not value.strip(WORD + "./-")
    ):
        return True
    name, sign, argument = value.partition("=")
    return bool(sign) and name.isidentifier() and (argument not in ("", "=") or (name.isalpha() and not argument))


def is_telling(value: str) -> bool:
    """Whether the value is a secret wherever it stands: long enough, no ordinary word and no number."""
    plain = value.isalpha() and (value.islower() or value.isupper() or value.istitle())
    return len(value) >= SHORT and not plain and not value.isdigit() and PLACEHOLDER not in value


def _is_template(value: str) -> bool:
    if "${" in value or "{{" in value or any(f"%{verb}" in value for verb in "sdvq"):
        return True
    inner = (part.partition("}") for part in value.split("{")[1:])
    return any(end and (not name or name.replace(".", "_").isidentifier()) for name, end, _ in inner)


def _is_said(bare: str) -> bool:
    """Whether it only says what stands there: `string`, `test-key`, `phc_your_key`, `sk-xxx`, or goes on with code."""
    low = bare.lower()
    invited = "_your_" in low.replace("-", "_") or low.endswith("xxx")
    spliced = bare[0] == "+" and bare[1:].strip()[:1].isalpha()  # the quote before it closes a literal
    return low in NO_SECRETS or invited or spliced or (low.endswith(("key", "token")) and _is_compound(bare))


def _is_compound(value: str) -> bool:
    """Whether it is made of words: `access-token`, `oauth2.scope`, `auth/login`."""
    parts = value.replace("-", "_").replace(".", "_").replace("/", "_").replace(":", "_").split("_")
    return len(parts) > 1 and all(part.isalpha() for part in parts)
