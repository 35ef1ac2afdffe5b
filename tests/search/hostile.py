"""Queries that break search engines, each with whether a memory that holds its words must be found by it."""

import string

NOTE = (
    "retry backoff",
    (
        "The upload worker retries with exponential backoff; it's 50% faster. C++ parser, node.js, don't panic. "
        "The /etc/hosts file, user@example.com, key=value, SELECT name FROM users, résumé naïve."
    ),
)
"""Title and narrative of the memory that is looked for."""

SIGNS = list(string.punctuation)
BETWEEN = [f"upload{sign}worker" for sign in string.punctuation if sign != "_"]
AROUND = [f"{sign}upload{sign}" for sign in string.punctuation]
SPACED = [f"upload {sign} worker" for sign in string.punctuation]

WORDED = [
    *BETWEEN,
    *AROUND,
    *SPACED,
    # quotes and brackets that don't close
    *(
        '"upload',
        'upload"',
        '"""upload',
        'up"load upload',
        "'upload",
        "(upload",
        "upload)",
        "((upload",
        "[upload]",
        "{upload",
    ),
    *('"upload worker', "upload (worker", "`upload`", "“upload”", "«upload»", "upload'; --", 'upload" OR "1"="1'),
    # operators at odd places
    *("AND upload", "upload AND", "OR upload", "upload OR", "upload OR OR worker", "AND OR NOT upload", "NEAR(upload)"),
    *(
        "upload NEAR/3 worker",
        "upload AND OR worker",
        "upload + worker",
        "+upload -faster",
        "^upload",
        "upload ^ worker",
    ),
    *("upload && worker", "upload || worker", "!upload", "upload -- worker", "upload*worker", "upload **", "* upload"),
    # words that look like columns or keys
    *(
        "upload: worker",
        "column:upload",
        "project:upload worker",
        "search_extra:upload",
        "rowid:1 upload",
        "{title}:upload",
    ),
    *("title: : upload", ": upload", "upload:", "-title:upload", "rank:upload", "observations_fts: upload"),
    # SQL, shells, markup, formats
    *(
        "'; DROP TABLE observations; -- upload",
        "upload' UNION SELECT * FROM sessions",
        "SELECT name FROM users",
        "1=1; upload",
    ),
    *("upload/* worker */", "upload -- comment", "$(upload)", "`rm -rf /` upload", "<b>upload</b>", "<!-- upload -->"),
    *(
        "%upload%",
        "upload_",
        "%s %d upload",
        "{{upload}}",
        "${upload}",
        "\\upload",
        "upload\\",
        "\\n upload",
        "//upload//",
    ),
    *(
        "https://example.com/upload?x=1&y=2",
        "user@example.com",
        "key=value",
        "50% faster",
        "C++ parser",
        "node.js",
        "/etc/hosts",
    ),
    *(
        "don't panic",
        "it's faster",
        "it’s faster",
        "re: upload",
        "upload?",
        "upload!?",
        "...upload...",
        "upload…",
        "#upload",
    ),
    # letters, white space and control characters
    *(
        "UPLOAD Worker",
        "uPlOaD",
        "resume",
        "RÉSUMÉ",
        "re\u0301sume\u0301",
        "naive",
        "\u00a0upload\u00a0",
        "upload\tworker",
    ),
    *("upload\nworker", "upload\r\n\r\nworker", "upload\0worker", "\0upload", "\x01\x02upload\x1b[31m", "\ufeffupload"),
    *(
        "upload\ud800",
        "\udfffupload\ud83d",
        "🎉 upload 🎉",
        "upload🎉worker",
        "👩‍👩‍👧‍👦 upload",
        "\u202eupload\u202c",
        "upload \u200b worker",
    ),
    *(
        "upload مرحبا",
        "שלום upload",
        "upload हिन्दी",
        "upload ไทย",
        "upload 数据库",
        "İstanbul upload",
        "ﬁle upload",
        "𝓾 upload",
    ),
    # inflections, stop words, natural language
    *(
        "uploads",
        "uploading",
        "retry",
        "retried with backoff",
        "how does the upload worker retry?",
        "the upload",
        "what is it, upload",
    ),
    "Why did we make the uploads back off instead of retrying at once, and where is that written down?",
    # sizes
    *("upload " * 2_000, "upload " + "word " * 2_000, " ".join(f"w{n}" for n in range(50)) + " upload"),
    *(
        "upload " + "x" * 100_000,
        "upload " + "(" * 50_000,
        "upload " + '"' * 50_001,
        "upload " + "-" * 100_000,
        "a/" * 30_000 + "upload",
    ),
    *(
        '"upload" ' * 3_000,
        "upload OR " * 3_000 + "worker",
        "(" * 300 + "upload" + ")" * 300,
        "upload AND " * 150 + "worker",
    ),
]
"""Each holds a word of the memory in a way that asks for it."""

WORDLESS = [
    *SIGNS,
    *(
        '""',
        '"" ""',
        "()",
        "(())",
        "''",
        "``",
        "--",
        "/*",
        "*/",
        "**",
        "* *",
        '"*"',
        "***",
        "OR",
        "AND",
        "NOT",
        "NEAR",
        "NOT NOT",
    ),
    *(
        "AND AND",
        "OR OR OR",
        '"',
        '"""',
        "\0\0",
        "\ud800",
        "🎉",
        "👩‍👩‍👧‍👦",
        "\u202e",
        "\u200b",
        "…",
        "—",
        "¿?",
        "%",
        "%%",
        "_",
        "\\",
        "\n",
    ),
    *(
        "(" * 10_000,
        '"' * 10_001,
        "*" * 10_000,
        "🎉" * 20_000,
        "\0" * 10_000,
        "{}",
        "{title}",
        "title:",
        "title:*",
        '^"',
        "+",
        "a" * 100_000,
    ),
    *(
        "zzqx",
        "zzqx AND vvkw",
        "title:zzqx",
        "zzqx*",
        '"zzqx vvkw"',
        "zzqx NOT upload",
        "0x00",
        "1e999",
        "NULL",
        "None",
        "undefined",
    ),
]
"""Nothing to find, and nothing to break."""

OPERATORS = ("AND", "OR", "NOT", "NEAR", "and", "Or")
WORDED += [
    *(f"{operator} upload" for operator in OPERATORS),
    *(f"upload {operator}" for operator in OPERATORS),
    *(f"upload {operator} {operator} worker" for operator in OPERATORS),
    *(f"({operator}) upload {operator}(" for operator in OPERATORS),
    *(f"{column}:upload:" for column in ("title", "facts", "files", "concepts", "narrative", "rank", "rowid")),
    *(f"{column}: {column}: upload ((" for column in ("title", "facts", "files", "rank")),
    *(f"upload{mark}" for mark in ("\u2028", "\u2029", "\x85", "\u00ad", "\u200d", "\u2060", "\ufe0f", "\u0301")),
    *(f"{mark}upload worker{mark}" for mark in ("‘", "’", "„", "‚", "—", "–", "·", "•", "→", "≠", "“", "‹")),
    *(f"upload {word}" for word in ("NULL", "nan", "-0", "1e309", "0x1F", "${jndi:ldap://x}", "../../../etc/passwd")),
    *(f"upload{sign * 3}worker" for sign in string.punctuation if sign != "_"),
]
"""Operators in every place, column names, separators that no keyboard has, what other systems take for commands."""

IDEOGRAPHIC = [
    *(
        "数据库",
        "连接池",
        "修复 连接",
        "修复数据库连接池的问题",
        "如何修复数据库?",
        "「数据库」",
        "数据库,连接",
        "数据库。",
    ),
    *("数据库 upload", "题", "池的", '"数据库"', "数据库*", "数据库 AND 连接", "数据库 OR zzqx", "数据库 NOT zzqx"),
    *(
        "データベース",
        "接続エラー",
        "データベース接続",
        "のエラー",
        "接続 エラー",
        "데이터베이스",
        "연결",
        "데이터 오류",
    ),
]
"""Each holds a word of IDEOGRAPHS."""
IDEOGRAPHS = ("数据库", "修复数据库连接池的问题。データベース接続のエラー。데이터베이스 연결 오류")
"""Title and narrative of the memory that is looked for."""
