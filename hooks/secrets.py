"""Secrets in texts: replaced by a visible placeholder such as `[secret:aws-key]`, while everything around them stays.

Standard library only, any Python >= 3.9; `re` is loaded by the first text that is looked at. A pattern is tried only
where a string stands that every secret of its kind holds, and is bounded or starts there: time is linear in the text.
An assigned value must look like a literal: a type, a variable, a call, a placeholder, a sentence about passwords stays.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from typing import Any

    Span = tuple[int, int, str]  # start, end, kind

# Shapes of tokens, from their issuers' documents: a prefix, then `_` or `-`, then a long run of letters and digits.
_UNDERSCORE_PREFIXES = (
    "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "npm", "hf", "gsk", "sk_live", "rk_live", "sk_test", "rk_test",
    "whsec", "shpat", "shpss", "dckr_pat", "dop_v1", "doo_v1", "dor_v1",
)  # fmt: skip
_HYPHEN_PREFIXES = ("sk", "glpat", "glrt", "pypi", "xoxa", "xoxb", "xoxe", "xoxp", "xoxr", "xoxs", "xapp", "GOCSPX")

# One of these is part of every name or command that says secret (lower case).
_WORDS = ("pass", "pwd", "secret", "token", "key", "credential", "auth", "bearer", "curl", "mysql")

# Before `key`, a word that makes it a secret one.
_KEY_OWNERS = (
    "api", "access", "secret", "private", "account", "signing", "encryption", "encrypt", "master", "auth", "service",
    "shared", "sharedaccess", "storage", "ssh", "deploy", "license", "subscription", "client", "app", "application",
    "webhook", "admin", "hmac", "jwt", "crypto", "project", "anon", "role", "integration", "write", "consumer",
)  # fmt: skip

# Values that say what belongs there, and are none themselves (lower case).
_NO_SECRETS = frozenset(
    """
    a an and any are array as base64 bcrypt bool boolean bot bstr buffer byte bytes changed char client default denied
    disable disabled dict empty enable enabled enum error exists expired external failed false field file float from
    func function has hash hidden hmac identifier if include int integer interface internal invalid is it json jwt
    keyword list literal local map md5 missing mixed must nil no none not nothing null number oauth oauth2 object of
    off omit on optional or password passwd passphrase path pending private prompt public random read redacted
    required same-origin secret secretstr server sha1 sha256 sha512 static str string struct symbol text the this to
    todo token true type undefined unknown unset use used user uuid uuid4 utf8 utf-8 uint8 uint16 uint32 uint64 int8
    int16 int32 int64 u8 u16 u32 u64 i32 i64 f64 float32 float64 valid value varchar void was with word yes your
    basic bearer digest negotiate apikey api-key api_key key keys credentials auth authorization authenticated
    """.split()  # noqa: SIM905 (prose reads better than quotes)
)
_COMMON_WORDS = frozenset(
    """
    a an and are as at be by can cannot change confirm current do does enter field for forgot from has have hide if in
    incorrect invalid is it missing must new no not of old on or password passwords please repeat required reset should
    show the this to token was with wrong you your characters
    """.split()  # noqa: SIM905 (prose reads better than quotes)
)

# How a reference starts: to a variable, a setting, a file, a place to be filled in.
_REFERENCE = (
    r"(?i)(?:\$[({]|\$[A-Za-z_]\w*$|<|\{|%[({A-Za-z]|#\{|\[|[*&]|[.*•_-]+$|[xX]{3,}$"
    r"|(?:process\.env|os\.|env\.|secrets?\.|vars\.|config\.|cfg\.|settings\.|self\.|this\.|args\.|options\.|opts\.)"
    r"|(?:op|vault|arn|file|https?|env|ref):|(?:\.{1,2}|~)/|/(?:etc|run|var|home|usr|tmp|opt|root|users|mnt|dev)/"
    r"|(?:your|insert|replace|enter|put)[-_ ]|redacted|removed|\\[sSwWdDb]|\()"
)
_CODE = (
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|[A-Za-z_][\w.]*\(|[\w./-]*/[\w./-]*\.\w{1,5}$|[A-Za-z_]\w*=(?!=?$)|[A-Za-z]+=$"
)
_SHELL_RUN, _PLAIN_RUN = r"[^\s\"'`;&|<>\\]", r"[^\s\"'`;&|<>(){}\[\],\\]"  # one character of an unquoted value
_TEMPLATE = r"\$\{|\{\{|\{[a-z_.]*\}|%[sdvq]"
_KEBAB = r"[a-z]{1,15}(?:-[a-z]{1,15})*$"
_TIMING = r"(?i)[\d.,:%]+(?:[num?]?s|m|h|d|k|kb|mb|gb|px|x)?$"

# What a text must hold, kind, pattern. The look-behinds keep to the start of a word.
_SHAPES = (
    ("A", "aws-key", r"A(?<![A-Za-z0-9]A)[KS]IA[A-Z0-9]{14,20}(?![A-Za-z0-9])"),
    ("AIza", "google-key", r"A(?<![A-Za-z0-9]A)Iza[\w-]{30,45}"),
    ("SG.", "sendgrid-key", r"S(?<![A-Za-z0-9]S)G\.[\w-]{16,}\.[\w-]{16,}"),
    ("S", "twilio-key", r"S(?<![A-Za-z0-9]S)K[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("eyJ", "jwt", r"eyJ(?<![\w-]eyJ)[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"),
    (":AA", "telegram-token", r":AA(?<=\d{8}:AA)[\w-]{30,40}"),
    ("hooks.slack.com", "slack-webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]+"),
)
# Commands and headers: the word that a pattern starts at, the pattern; its group `secret` is replaced.
_REST = r"(?P<secret>[^\s\"'\\]+)"
_COMMANDS = (
    ("bearer", r"(?i)bearer[ \t]{1,4}(?P<secret>[\w.~+/=-]{6,})"),
    (
        "auth",
        r"(?i)authorization[\"'`\\\]]{0,4}[ \t]?[:=,][ \t\"'`\\]{0,8}[a-z-]{5,9}[ \t]{1,4}(?P<secret>[\w.~+/=:-]{6,})",
    ),
    ("curl", r"(?i)curl\b[^\n]{0,400}?[ \t](?:-[a-z]{0,6}u|--(?:proxy-)?user)[ =]{0,2}[\"']?[^\s:\"']{1,99}:" + _REST),
    ("mysql", r"(?i)mysql[\w-]{0,12}(?=[ \t])[^\n|;&]{0,200}?[ \t](?-i:-p)[\"']?(?![-\\])" + _REST),
    ("pass", r"(?i)(?<=ssh)pass[ \t]{1,4}-p[ \t]{0,4}[\"']?" + _REST),
    ("pass", r"(?i)(?:(?<=-passin )|(?<=-passout )|(?<=-pass ))pass:" + _REST),
)
_NAME_END = (
    r"(?i)(?:word|wd|phrase|code|(?<=credential)s|orization|[_-]?base)?"
    r"(?:[_-]?\d{1,2}|[_-](?:value|prod|dev|test|live))?(?![\w-])"
)
_ASSIGN = (
    r"(?:\[\d{0,4}\])?(?P<close>\\*[\"'`]\]?|\*\*)?(?:"
    r"(?::[ \t]{0,4}[A-Za-z_\[][\w.\[\]| ]{0,40}|[ \t]{1,4}(?:string|str|\[\]byte)[ \t]{0,4})=[ \t]{0,4}(?=[\"'`])"
    r"|(?P<before>[ \t]{0,40})(?P<op>=>|:=|={1,3}|:(?![:=])|,|>(?=[^\s<>]{1,200}</))"
    r"(?:\*\*)?(?P<after>[ \t]{0,40}(?:\r?\n[ \t]{0,40}(?=\"))?)"
    r"|(?P<space>[ \t]{1,4}(?:(?:is|was):?[ \t]{1,4})?))"
    r"(?:[bBrRuUfF@]{1,2}(?=[\"']))?(?P<quote>\\*[\"'`])?"
)
_PEM_HEADER = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END [A-Z0-9 ]{0,60}(?:-----)?"
_PEM_GAP = r"(?:[\s\"'+>|,?-]|\\+[nrt]|\d{1,6}\?)"  # quotes, diff marks, line numbers and arrows
_PEM_RUN = rf"(?:{_PEM_GAP}{{0,40}}[A-Za-z0-9+/=]{{20,}})+(?:{_PEM_GAP}{{1,8}}[A-Za-z0-9+/=]+)?"
_PEM_BODY = r"[A-Za-z0-9+/=\s\\\"'?|,>:.-]+$"

_PLACEHOLDER = "[secret:"
_PASSES = 4  # what a replacement uncovers is looked at again
_LONGEST_NAME, _LONGEST_USERINFO, _LONGEST_QUOTED = 48, 512, 4096
_PLAIN, _SHORT, _LONG = 3, 6, 16  # characters that a plain word, a doubtful value, a word in a doubtful place must have
_SPELLING_ESCAPES = (b"\\u", b"\\/")  # they can stand for any part of a secret
_PASSWORD_WORDS = ("pass", "pwd")
_STRONG_WORDS = (*_PASSWORD_WORDS, "secret", "key")  # such a value is a secret even if it is a plain word
_COMMAND_WORDS = ("bearer", "curl", "mysql")  # part of no name that says secret
_KINDS = {"key": "api-key", "credential": "credentials", "bearer": "token"}
_KINDS.update(dict.fromkeys(("pass", "pwd", "curl", "mysql"), "password"))

_compiled: "dict[str, re.Pattern[str]]" = {}


def redact_text(text: str) -> str:
    """The text with each secret replaced by `[secret:<kind>]`. Redacting twice changes nothing more."""
    for _ in range(_PASSES):
        spans = sorted(_find(text), key=lambda span: (span[0], -span[1]))
        if not spans:
            break
        text = _replace(text, spans)
    return text


def redact_value(name: str, value: str) -> str:
    """The value of a field: redacted as a text, or as a whole if the field's name says secret and it is a literal."""
    word = secret_word(name)
    if word and _is_literal(value, word, quoted=True):
        return f"{_PLACEHOLDER}{_KINDS.get(word, word)}]"
    return redact_text(value)


def redact_payload(payload: object) -> object:
    """A copy of parsed JSON with the secrets of every string replaced, keys included, at any depth."""
    unvisited: list[Any] = [
        root := [payload]
    ]  # copies whose children are still the originals; no recursion, so any depth
    while unvisited:
        node = unvisited.pop()
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, str):
                node[key] = redact_value(key, value) if isinstance(key, str) else redact_text(value)
            elif isinstance(value, dict):
                node[key] = {redact_text(name): child for name, child in value.items()}
                unvisited.append(node[key])
            elif isinstance(value, list):
                node[key] = list(value)
                unvisited.append(node[key])
    return root[0]


def secret_word(name: str) -> str:
    """The word that says that a field of this name holds a secret (`client_secret`, `apiKey`, `DB_PASSWORD`), or ""."""
    low = _ascii(name).lower()
    found = ((word, low.rfind(word)) for word in _WORDS)
    return next((word for word, at in found if at >= 0 and _name_end(name, low, at, word) == len(name)), "")


def holds_secret(text: str) -> bool:
    """Whether `redact_text` would change this text, or one of the texts that it joins by line ends."""
    return any(True for _ in _find(text))


def redact_json_bytes(raw: bytes) -> bytes:
    """The same JSON without secrets; what is no JSON is redacted as text. Never raises."""
    import json

    try:
        return json.dumps(redact_payload(json.loads(raw))).encode()
    except (ValueError, RecursionError):
        return redact_text(raw.decode("utf-8", "replace")).encode("utf-8", "replace")


def may_hold_secret(raw: "bytes | str") -> bool:
    """False only if neither `redact_text` nor, for the bytes of a JSON text, `redact_payload` would change it."""
    if isinstance(raw, bytes):
        if any(escape in raw for escape in _SPELLING_ESCAPES):
            return True
        raw = raw.decode("utf-8", "replace")
        for escape in ("\\n", "\\t", "\\r", "\\b", "\\f"):  # else their letters join the word that follows
            raw = raw.replace(escape, "\n")
    raw = _ascii(raw)
    low = raw.lower()
    return "@" in raw or any(word in low for word in _WORDS) or any(True for _ in _tokens(raw))


def _find(text: str) -> "Iterator[Span]":
    text = _ascii(text)
    yield from _tokens(text)
    yield from _url_passwords(text)
    low = text.lower()
    for word in _WORDS:
        at = low.find(word)
        while at >= 0:
            span = _at_word(text, low, at, word)
            if span:
                yield span
            at = low.find(word, max(at + 1, span[1] if span else 0))
    if "private key" in low:
        yield from _pem_blocks(text)


def _replace(text: str, spans: "list[Span]") -> str:
    pieces, position = [], 0
    for start, end, kind in spans:
        if start >= position:
            pieces += [text[position:start], _PLACEHOLDER, kind, "]"]
            position = end
    return "".join(pieces) + text[position:]


def _tokens(text: str) -> "Iterator[Span]":
    for mark, kind, shape in _SHAPES:
        if mark in text:
            yield from ((*found.span(), kind) for found in _regex(shape).finditer(text))
    for prefixes, gate in ((_UNDERSCORE_PREFIXES, r"_(?=[A-Za-z0-9]{16})"), (_HYPHEN_PREFIXES, r"-(?=[\w-]{16})")):
        for found in _regex(gate).finditer(text):
            at = found.start()
            if text.endswith(prefixes, 0, at):
                prefix = _regex(r"(?<![\w-])[A-Za-z0-9_]{2,10}$").search(text, max(0, at - 11), at)
                body = _regex(r"[\w-]+").match(text, at + 1)
                if prefix and prefix[0] in prefixes and body and not _regex(_KEBAB).match(body[0]):
                    yield prefix.start(), body.end(), "token"


def _url_passwords(text: str) -> "Iterator[Span]":
    at = text.find("@")
    while at >= 0:
        slashes = text.rfind("//", max(0, at - _LONGEST_USERINFO), at)
        found = _regex(r"//[^\s/:@\"'<>]*:([^\s/\"'<>]+)@").match(text, slashes, at + 1) if slashes >= 0 else None
        if found and not _is_reference(found[1]):
            yield *found.span(1), "url-password"
        at = text.find("@", at + 1)


def _at_word(text: str, low: str, at: int, word: str) -> "Span | None":
    """The secret that is told by the word at this place, if any: by a command or header, or by an assignment."""
    inside = low.rfind(_PLACEHOLDER, max(0, at - _LONGEST_NAME), at + len(_PLACEHOLDER))
    if inside >= 0 and "]" not in low[inside:at]:
        return None
    for found in (_regex(command).match(text, at) for start, command in _COMMANDS if start == word):
        secret = str(found["secret"]) if found else ""
        plain = len(secret) < _LONG and not _is_random(secret, word) and not _regex(r"[a-z][A-Z]").search(secret)
        if found and not (plain and word in ("bearer", "auth")) and not _is_reference(secret):
            return *found.span("secret"), _KINDS.get(word, word)
    end = _name_end(text, low, at, word)
    assigned = _regex(_ASSIGN).match(text, end) if end >= 0 else None
    span = _value(text, at, word, assigned) if assigned else None
    return (*span, _KINDS.get(word, word)) if span else None


def _name_end(text: str, low: str, at: int, word: str) -> int:
    """Where the name that holds this word ends, or -1 if it says no secret: `author`, `keyboard`, `passed`."""
    if word in _COMMAND_WORDS or low.endswith(("bypass", "compass"), 0, at + len(word)):
        return -1
    if word == "key" and not low[max(0, at - 16) : at].rstrip(" _-.").endswith(_KEY_OWNERS):
        return -1
    found = _regex(_NAME_END).match(text, at + len(word))
    return found.end() if found else -1


def _value(text: str, at: int, word: str, found: "re.Match[str]") -> "tuple[int, int] | None":
    """Start and end of the literal that is assigned to the name with the word at `at`; `found` is by `_ASSIGN`."""
    before = _regex(r"[\w.-]*").match(text[max(0, at - _LONGEST_NAME) : at][::-1])
    name = (before[0][::-1] if before else "") + text[at : found.start()]
    start, quote, op = found.end(), found["quote"], found["op"] or ""
    if found["space"] and not (name.startswith("-") or _introduced(text, at, word, found)):
        return None
    environment = bool(found["close"] and quote and name.isupper())  # ("DB_PASSWORD", "X")
    if (op == "," and not environment) or (op == ":" and name.lower() == "pass" and not found["close"]):
        return None
    end = _quote_end(text, start, quote) if quote else -1
    if end < 0:
        return _unquoted(text, start, word, name, found)
    return (start, end) if _is_literal(text[start:end], word, quoted=True) else None


def _introduced(text: str, at: int, word: str, found: "re.Match[str]") -> bool:
    """Whether white space alone assigns here: `login me password X`, `ENV API_KEY X`, `with password 'X'`."""
    before = text[max(0, at - 120) : at].lower()
    if word in _PASSWORD_WORDS and _regex(r"login\s+\S+\s+$").search(before):
        return True
    told = before.rpartition("\n")[2].lstrip().startswith(("env ", "setenv ", "setx "))
    return (
        told
        or (bool(found["quote"]) and before.endswith("with "))
        or (word in _PASSWORD_WORDS and bool(found["space"].split()))
    )


def _quote_end(text: str, start: int, quote: str) -> int:
    """Where the closing quote stands on the same line, or -1. `quote` holds the backslashes before it, if escaped."""
    newline = text.find("\n", start, limit := min(len(text), start + _LONGEST_QUOTED))
    end = text.find(quote, start, limit := newline if newline >= 0 else limit)
    while end > start and text[end - 1] == "\\":
        backslashes = end - len(text[start:end].rstrip("\\")) - start
        if len(quote) == 1 and backslashes % 2 == 0:
            break
        end = text.find(quote, end + 1, limit)
    return end


def _unquoted(text: str, start: int, word: str, name: str, found: "re.Match[str]") -> "tuple[int, int] | None":
    op = found["op"] or " "
    compact = op == "=" and not found["before"] and not found["after"]
    constant = compact and name.isupper()
    shell = constant or name.startswith("-")
    run = _SHELL_RUN if shell else _PLAIN_RUN
    value = _regex(run + "{1,128}").match(text, start)  # enough to judge by, so that each try costs no more
    if op not in {"=", ":", " ", ">"} or not value:
        return None
    literal = value[0] if shell else value[0].rstrip(".,!?:")
    rest = text[value.end() : value.end() + 40]
    code = _regex(_CODE).match(literal) and not (constant and "(" not in literal)
    code = code or rest.startswith(("(", "[", "{") if op == ">" else ("(", "[", "{", "<"))
    if code or not _is_literal(literal, word, quoted=False):
        return None
    random, plain = _is_random(literal, word), word in _STRONG_WORDS and len(literal) >= _PLAIN
    if op == ">":  # an element of XML
        accepted = random or plain
    elif compact:
        accepted = random or (plain and not rest.startswith((",", ")"))) or (constant and len(literal) >= _SHORT)
    elif op == "=":
        accepted = random and len(literal) >= _SHORT and not _regex(r"[A-Za-z]+_\w*$").match(literal)
    else:
        alone = not rest.partition("\n")[0].strip() or rest.startswith((" -", " &", " |", '"', "'"))
        alone = alone and word in _PASSWORD_WORDS and literal.islower()
        header = name.lower().startswith("x-") and len(literal) >= _SHORT
        accepted = (random and len(literal) > _PLAIN) or (plain and alone) or header
    more = _regex(run + "+").match(text, value.end()) if accepted else None
    return (start, more.end() if more else start + len(literal)) if accepted else None


def _is_literal(value: str, word: str, *, quoted: bool) -> bool:
    """Whether a value can be the secret itself, and no type, reference, placeholder or sentence."""
    bare = value.strip().rstrip(".!?:,")
    if not bare or bare.lower() in _NO_SECRETS or _is_reference(bare) or _PLACEHOLDER in value:
        return False
    if not quoted or _regex(r"[A-Z]+(?:_[A-Z]+)+$").match(bare):  # a quoted one of this kind names a variable
        return not quoted
    words = [part.strip(".,!?:'").lower() for part in bare.split()]
    if word not in _STRONG_WORDS:
        separated = _regex(r"[A-Za-z]+(?:[-_./:][A-Za-z]+)+$").match(bare)
        return (
            len(words) == 1 and not separated and (_is_random(bare, word) or len(bare) >= _LONG) and len(bare) >= _SHORT
        )
    common = sum(part in _COMMON_WORDS for part in words)
    return len(words) == 1 or not (common > 1 or common * 2 >= len(words))


def _is_reference(value: str) -> bool:
    return bool(_regex(_REFERENCE).match(value) or _regex(_TEMPLATE).search(value))


def _is_random(value: str, word: str) -> bool:
    """Whether letters alone do not make it up; a number or a duration is random only as a password."""
    if _regex(_TIMING).match(value):
        return word in _PASSWORD_WORDS and value.isdigit() and len(value) > _PLAIN
    return bool(_regex(r"[\d!@#$%^&*+=~?]").search(value))


def _pem_blocks(text: str) -> "Iterator[Span]":
    begin = text.find("-----BEGIN ")
    while begin >= 0:
        following = text.find("-----BEGIN ", begin + 1)
        limit = following if following >= 0 else len(text)
        header = _regex(_PEM_HEADER).match(text, begin)
        if header:
            footer = _regex(_PEM_END).search(text, header.end(), limit)
            run = _regex(_PEM_RUN).match(text, header.end(), limit)
            if footer and _regex(_PEM_BODY).match(text, header.end(), footer.start()):
                yield begin, footer.end(), "private-key"
            elif run:
                yield begin, run.end(), "private-key"
        begin = following


def _ascii(text: str) -> str:
    """The text with `?` for what is not ASCII: every character keeps its place, and searching is fast."""
    return text if text.isascii() else text.encode("ascii", "replace").decode("ascii")


def _regex(pattern: str) -> "re.Pattern[str]":
    compiled = _compiled.get(pattern)
    if compiled is None:
        import re

        compiled = _compiled[pattern] = re.compile(pattern, re.ASCII)
    return compiled
