"""The kinds of secrets as data: tokens by their shape, words of names, flags of commands, values that are no secret."""

DIGITS, LETTERS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HEX, _UPPER = DIGITS + "abcdef", DIGITS + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WORD = DIGITS + LETTERS + "_"
BASE64URL = WORD + "-"
BASE64 = BASE64URL + "+/="

# Tokens by their issuers' documents: a prefix that is a whole word, the sign, and at least 16 more word characters.
UNDERSCORE_PREFIXES = (
    "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "npm", "hf", "gsk", "sk_live", "rk_live", "sk_test", "rk_test",
    "whsec", "shpat", "shpss", "dckr_pat", "dckr_oat", "dop_v1", "doo_v1", "dor_v1", "lin_api", "glsa", "sbp", "figd",
    "ntn", "pscale_tkn", "pscale_pw", "rubygems", "sntrys", "nfp", "r8",
)  # fmt: skip
HYPHEN_PREFIXES = (
    "sk", "glpat", "glrt", "gldt", "glptt", "glcbt", "glsoat", "pypi", "xoxa", "xoxb", "xoxe", "xoxp", "xoxr", "xoxs",
    "xapp", "GOCSPX", "NRAK", "PMAK", "HRKU", "tskey", "sq0atp", "sq0csp", "pplx", "xai", "AGE-SECRET-KEY",
)  # fmt: skip

# Other tokens: the mark that starts a word, kind, the characters of the body, the fewest and the most of them.
SHAPES = (
    ("AKIA", "aws-key", _UPPER, 14, 20),
    ("ASIA", "aws-key", _UPPER, 14, 20),
    ("AIza", "google-key", BASE64URL, 30, 45),
    ("ya29.", "google-token", BASE64URL + ".", 20, 512),
    ("SK", "twilio-key", _HEX, 32, 32),
    ("SG.", "sendgrid-key", BASE64URL + ".", 33, 99),
    ("hvs.", "vault-token", BASE64URL, 20, 512),
    ("ATATT3x", "atlassian-token", BASE64, 20, 512),
    ("hooks.slack.com/", "slack-webhook", BASE64URL + "/", 12, 256),
    ("/api/webhooks/", "discord-webhook", BASE64URL + "/", 30, 256),
)
JWT_MARK, JWT_FEWEST = "eyJ", 5  # characters of each of the parts between its dots
TELEGRAM_MARK, TELEGRAM_BOT, TELEGRAM_FEWEST, TELEGRAM_MOST = ":AA", 8, 30, 40  # after the digits of a bot's id
SIGNATURE_MARK, SIGNATURE_FEWEST = "sig=", 20  # of an Azure URL that is signed for sharing

NO_HOSTS = ("sha256", "sha512", "npm", "workspace")  # after the `@` of an image or package

# One of these is part of every name that says secret (lower case), and how such a name may go on.
WORDS = ("pass", "pwd", "secret", "token", "key", "credential", "auth")
NAME_ENDS = frozenset(("", "word", "wd", "phrase", "code", "orization", "base", "_base"))
PLURAL_ENDS = frozenset(("s", "words", "phrases", "codes"))
NAME_TAILS = frozenset(("value", "prod", "dev", "test", "live"))
PASSWORD_WORDS = ("pass", "pwd")
STRONG_WORDS = (*PASSWORD_WORDS, "secret", "key")  # such a value is a secret even if it is a plain word
KINDS = {"pass": "password", "pwd": "password", "key": "api-key", "credential": "credentials"}

# Before `key`, a word that makes it a secret one; before `token`, one that makes it none; words that end in `pass`.
KEY_OWNERS = (
    "api", "access", "secret", "private", "account", "signing", "encryption", "encrypt", "master", "auth", "service",
    "shared", "sharedaccess", "storage", "ssh", "deploy", "license", "subscription", "client", "app", "application",
    "webhook", "admin", "hmac", "jwt", "crypto", "project", "anon", "role", "integration", "write", "consumer",
)  # fmt: skip
NO_TOKEN_OWNERS = ("page", "next", "continuation", "cancel", "cancellation", "design", "unexpected", "cursor")
NO_NAMES = ("bypass", "compass", "encompass", "trespass", "surpass", "overpass", "underpass")
SETTERS = ("set", "with", "use", "update", "change", "reset")  # setPassword("…")
PUTTERS = ("set", "put", "add", "append", "header", "setdefault", "setenv", "setitem", "setproperty", "insert")

SCHEMES = ("basic", "bearer", "token", "digest", "apikey", "negotiate")  # of an Authorization header

# Commands, the flags that take a password, and whether it may follow its flag at once, must, or stands after a colon.
APART, JOINED, EITHER, AFTER_COLON = "apart", "joined", "either", "after colon"
COMMANDS = (
    ("curl", ("-u", "-U", "--user", "--proxy-user"), AFTER_COLON),
    ("mysql", ("-p",), JOINED),
    ("mariadb", ("-p",), JOINED),
    ("sshpass", ("-p",), EITHER),
    ("login", ("-p",), APART),
    ("mongo", ("-p",), APART),
    ("redis-cli", ("-a",), APART),
    ("sqlcmd", ("-P",), APART),
    ("ldap", ("-w",), APART),
)
LOGIN_OWNERS = ("docker", "podman", "nerdctl", "registry", "skopeo", "buildah", "oras", "crane", "az", "oc", "cf")

# Values that say what belongs there, and are none themselves (lower case).
NO_SECRETS = frozenset(
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
COMMON_WORDS = frozenset(
    """
    a an and are as at be by can cannot change confirm current do does enter field for forgot from has have hide if in
    incorrect invalid is it missing must new no not of old on or password passwords please repeat required reset should
    show the this to token was with wrong you your characters
    """.split()  # noqa: SIM905 (prose reads better than quotes)
)

# How a reference starts (lower case): to a variable, a setting, a file, a place to be filled in.
REFERENCES = (
    "$(", "${", "<", "{", "%(", "%{", "#{", "[", "*", "&", "(", "process.env", "os.", "env.", "secret.", "secrets.",
    "vars.", "config.", "cfg.", "settings.", "self.", "this.", "args.", "options.", "opts.", "op:", "vault:", "arn:",
    "file:", "http:", "https:", "env:", "ref:", "./", "../", "~/", "/etc/", "/run/", "/var/", "/home/", "/usr/",
    "/tmp/", "/opt/", "/root/", "/users/", "/mnt/", "/dev/", "redacted", "removed", "\\s", "\\w", "\\b", "\\d",  # noqa: S108 (not opened)
)  # fmt: skip
INVITATIONS = ("your", "insert", "replace", "enter", "put")  # `your-key-here`
UNITS = frozenset(("", "s", "ms", "ns", "us", "?s", "m", "h", "d", "k", "kb", "mb", "gb", "px", "x"))
