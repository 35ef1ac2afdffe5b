"""What is private, or was put into a text by the host or by us: removed before it leaves the client's process.

Standard library only, any Python >= 3.9. Importing this costs next to nothing: `re` is loaded by the first text that
holds a tag. White space inside a tag is ASCII and at most eight characters, so that `may_hold_private` can see every
spelling in the raw bytes.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

PRIVATE = "private"
TAGS = (
    PRIVATE,
    "claude-mem-context",
    "gapless-context",
    "system_instruction",
    "system-instruction",
    "persisted-output",
    "system-reminder",
)

# Removing a part can bring the halves of a tag together. A text that does so this often was built to, and is dropped.
_PASSES = 8

# Escapes that can spell a letter, a hyphen or a backslash; JSON writers use none of these unasked.
_SPELLING_ESCAPES = (b"\\u004", b"\\u005", b"\\u006", b"\\u007", b"\\u002d", b"\\u002D")
# Every byte of the white space and slashes between `<` and a name, escaped or not. No name starts with one of them.
_FILLING = b" \t\r\n/\\tnru0129adf"
_NAMES = tuple(name.encode() for name in TAGS)
_LONGEST_TAG_BYTES = 160  # two times eight white spaces and a slash, each an escape of six bytes, and the longest name
_MOST_OPENINGS = 20_000  # beyond it a parse is no dearer than the test

_compiled: "list[re.Pattern[str]]" = []


def may_hold_private(raw: bytes) -> bool:
    """False only if no string of this JSON text holds one of `TAGS`, however it is escaped. Costs no parse."""
    if b"\\u00" in raw:
        if any(escape in raw for escape in _SPELLING_ESCAPES):
            return True
        raw = raw.replace(b"\\u003c", b"<").replace(b"\\u003C", b"<")
    at = -1
    for _ in range(_MOST_OPENINGS):
        at = raw.find(b"<", at + 1)
        if at < 0:
            return False
        if raw[at + 1 : at + _LONGEST_TAG_BYTES].lower().lstrip(_FILLING).startswith(_NAMES):
            return True
    return True


def strip_text(text: str) -> "tuple[str, bool]":
    """The text without its tagged parts, and whether one of them was `<private>`. Takes time linear in the text.

    The outermost tag decides where a part ends: its own end tag at the same depth, else the end of the text. An end
    tag without a start is removed alone.
    """
    private = False
    for _ in range(_PASSES):
        if "<" not in text and "\\u003" not in text:
            return text, private
        scan = _Scan(text)
        private = private or scan.private
        if scan.result is text:
            return text, private
        text = scan.result
    return "", private


def strip_payload(payload: object) -> "tuple[object, bool]":
    """A copy without the tagged parts of any string, keys included, and whether this is a private turn.

    A private turn is a UserPromptSubmit whose prompt is empty without its `<private>` parts. A prompt that held nothing
    but the host's reminders is not private.
    """
    root: list[Any] = [payload]
    unvisited: list[Any] = [root]  # copies whose children are still the originals; no recursion, so any depth
    while unvisited:
        node = unvisited.pop()
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, str):
                node[key] = strip_text(value)[0]
            elif isinstance(value, dict):
                node[key] = {strip_text(name)[0]: child for name, child in value.items()}
                unvisited.append(node[key])
            elif isinstance(value, list):
                node[key] = list(value)
                unvisited.append(node[key])
    return root[0], is_private_turn(payload)


def is_private_turn(payload: object) -> bool:
    """Whether this uncleaned payload is a prompt of which nothing stays once its private parts are gone."""
    if not isinstance(payload, dict) or payload.get("hook_event_name") != "UserPromptSubmit":
        return False
    prompt = payload.get("prompt")
    if not isinstance(prompt, str):
        return False
    rest, private = strip_text(prompt)
    return private and not rest.strip()


class _Scan:
    """One walk over the tags of a text. `result` is the very same text if nothing was removed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.private = False
        self._kept: list[str] = []
        self._position = 0
        self._outer = ""  # the tag whose end is looked for
        self._depth = 0
        self._inner_private = 0  # `<private>` still open inside another part
        # Where in `_kept` a part ended while `<private>` was open in it: a later `</private>` hides all since then.
        self._torn = -1
        last_closing = max(text.rfind(">"), text.lower().rfind("\\u003e") if "\\u003" in text else -1)
        for tag in _pattern().finditer(text):
            if tag["end"]:
                self._end(tag["end"].lower(), tag.start(), tag.end())
            elif last_closing >= tag.end():
                self._start(tag["start"].lower(), tag.start())
        if not self._outer and self._position:
            self._keep(len(text))
        self.result = "".join(self._kept) if self._position or self._outer else text

    def _start(self, name: str, position: int) -> None:
        if not self._outer:
            self._keep(position)
            self._outer, self._depth, self._inner_private = name, 1, 0
            self.private = self.private or name == PRIVATE
        elif name == self._outer:
            self._depth += 1
        elif name == PRIVATE:
            self._inner_private += 1

    def _end(self, name: str, start: int, end: int) -> None:
        if not self._outer:
            self._keep(start)
            self._position = end
            if name == PRIVATE and self._torn >= 0:
                del self._kept[self._torn :]
                self._torn, self.private = -1, True
        elif name == self._outer:
            self._depth -= 1
            if not self._depth:
                self._outer, self._position = "", end
                self._torn = len(self._kept) if self._inner_private else self._torn
        elif name == PRIVATE:
            self._inner_private = max(0, self._inner_private - 1)

    def _keep(self, end: int) -> None:
        self._kept.append(self.text[self._position : end])


def _pattern() -> "re.Pattern[str]":
    if not _compiled:
        import re

        names = "|".join(TAGS)
        opening, closing, space = r"(?:<|\\u003c)", r"(?:>|\\u003e)", r"[ \t\r\n]{0,8}"
        start = rf"(?P<start>{names})(?=[\s/>\\])"
        end = rf"\\?/{space}(?P<end>{names})(?:[\s/][^<>\\]*)?{closing}"
        _compiled.append(re.compile(rf"{opening}{space}(?:{start}|{end})", re.IGNORECASE | re.ASCII))
    return _compiled[0]
