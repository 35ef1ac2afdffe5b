"""Which texts hold a secret, and which only speak of one. No secret here is real."""

import json
import time

import pytest

from hooks.secret_names import secret_word
from hooks.secrets import may_hold_secret, redact_json_bytes, redact_payload, redact_text

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0fakefakefakefakefake\nc2VjcmV0\n-----END RSA PRIVATE KEY-----"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("export PGPASSWORD=Zx9!fake; psql", "Zx9!fake"),
        ("id AKIAIOSFODNN7EXAMPLE here", "AKIAIOSFODNN7EXAMPLE"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        ),
        ("key=AIzaSyA-1234567890abcdefghijklmnopqrstu", "AIzaSyA-1234567890abcdefghijklmnopqrstu"),
        ("AccountName=a;AccountKey=abc+/def==;EndpointSuffix=x", "abc+/def=="),
        *((f"git clone {prefix}_{LETTERS} x", LETTERS) for prefix in ("ghp", "gho", "ghu", "ghs", "ghr", "npm", "hf")),
        *((f"key {prefix}_{LETTERS} x", LETTERS) for prefix in ("sk_live", "rk_live", "whsec", "dop_v1", "github_pat")),
        *(
            (f"use {prefix}-{LETTERS} x", LETTERS)
            for prefix in ("glpat", "xoxb", "xoxp", "sk", "sk-proj", "sk-ant", "pypi")
        ),
        ("SG.abcdefghijklmnopqr.abcdefghijklmnopqrstuv", "abcdefghijklmnopqr"),
        ("SK0123456789abcdef0123456789abcdef", "0123456789abcdef"),
        ("123456789:AAabcdefghijklmnopqrstuvwxyzABCDEFG", "AAabcdefghijklmnopqrstuvwxyzABCDEFG"),
        ("https://hooks.slack.com/services/T00/B00/XyZ12", "XyZ12"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_def", "eyJzdWIiOiIxMjM0In0"),
        (PEM, "c2VjcmV0"),
        (PEM.replace("\n", "\\n"), "c2VjcmV0"),
        (PEM.rpartition("\n")[0], "MIIEpAIBAAKCAQEA0fakefakefakefakefake"),
        ("postgres://app:hunter2@db/x", "hunter2"),
        ("redis://:hunter2@cache", "hunter2"),
        ("curl -H 'Authorization: Bearer abc.def.ghi123' https://x", "abc.def.ghi123"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("curl -s -u user:s3cr3t https://x", "s3cr3t"),
        ("mysql -u root -pSecret1 db", "Secret1"),
        ("mysqldump -pSecret1 db", "Secret1"),
        ("<password>swordfish</password>", "swordfish"),
        ("ALTER USER x WITH PASSWORD 'hunter2';", "hunter2"),
        ("Endpoint=x;SharedAccessKey=abcd1234=;", "abcd1234"),
        ("sshpass -p Hidden ssh a", "Hidden"),
        ("machine h login me password foo9bar", "foo9bar"),
        ("x-api-key: abcdef", "abcdef"),
        ('DB_PASSWORD="two words"', "two words"),
        ('"client_secret": "abcDEF"', "abcDEF"),
        (r"{\"password\":\"x1\"}", "x1"),
        (r"{\"password\": \"a1\\\"b2\"}", "b2"),
        ("password: hunter2", "hunter2"),
        ("password: swordfish\nuser: me", "swordfish"),
        ("mytool --password=hunter2 -u x", "hunter2"),
        ("gh --token abc123def", "abc123def"),
        ("SLACK_TOKEN=supersecretvalue", "supersecretvalue"),
        ('const password string = "hunter2"', "hunter2"),
        ('api_key: str = "abcdef123"', "abcdef123"),
        ('os.environ["DB_PASSWORD"] = "swordfish"', "swordfish"),
        ("'password' => 'hunter2',", "hunter2"),
        ("the password is Zx9!fake", "Zx9!fake"),
        ("Server=x;User Id=sa;Password=p4ss;", "p4ss"),
    ],
)
def test_a_secret_is_replaced_by_a_placeholder(text: str, secret: str) -> None:
    redacted = redact_text(text)
    assert secret not in redacted
    assert "[secret:" in redacted
    assert may_hold_secret(text)
    assert may_hold_secret(json.dumps(text).encode())
    assert redact_text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "the password field is required",
        "password: string",
        "password: String!",
        "password: z.string().min(8)",
        'password = os.environ["X"]',
        'password := os.Getenv("DB_PASSWORD")',
        "const apiKey = process.env.API_KEY;",
        "token = get_token()",
        "api_key: str | None = None",
        "password: Optional[str] = None",
        "password=$PGPASSWORD",
        "password: ${DB_PASSWORD}",
        "postgres://app:${PASS}@db",
        "token: <your token>",
        "password: ***",
        "Token:     token,",
        "Password: cfg.Password,",
        "connect(password=password)",
        "--token <TOKEN>",
        "--- PASS: TestFoo/7_cases (0.00s)",
        "PWD=/root/x",
        "author: me2",
        "bypass=true1",
        "<password>${env.PASS}</password>",
        "log in with password authentication",
        "max_tokens: 4096",
        '"password": {"type": "string"}',
        '"password": "Password is required"',
        'credentials: "include"',
        'if password == "":',
        "git@github.com:foo/bar",
        "https://host:8080/@scope/pkg",
        "primary key: id1",
        '"-----BEGIN PRIVATE KEY-----") && strings.HasSuffix(s, "-----END PRIVATE KEY-----")',
        "`MACOS_SIGN_PASSWORD`, `MACOS_NOTARY_PROFILE`",
        "password=[secret:password]",
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redact_text(text) == text


def test_everything_around_a_secret_stays() -> None:
    text = f"before export PGPASSWORD=Zx9!fake; psql\n{PEM}\nafter: the password field is required"
    expected = (
        "before export PGPASSWORD=[secret:password]; psql\n[secret:private-key]\nafter: the password field is required"
    )
    assert redact_text(text) == expected


def test_a_field_whose_name_says_secret_is_redacted_as_a_whole() -> None:
    payload = {
        "password": "correct horse battery",
        "nested": [{"clientSecret": "abc"}],
        "max_tokens": 5,
        "auth": "basic",
    }
    expected = {
        "password": "[secret:password]",
        "nested": [{"clientSecret": "[secret:secret]"}],
        "max_tokens": 5,
        "auth": "basic",
    }
    assert redact_payload(payload) == expected


def test_a_token_after_an_escaped_line_end_is_seen_in_raw_bytes() -> None:
    assert may_hold_secret(json.dumps(f"x\nghp_{LETTERS}").encode())


def test_a_value_in_which_a_secret_was_replaced_stays() -> None:
    text = 'password="a [secret:token] b"'
    assert redact_text(text) == text


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "apiKey", "x-api-key", "access_token", "client_secret"])
def test_names_that_say_secret(name: str) -> None:
    assert secret_word(name)


@pytest.mark.parametrize("name", ["author", "keyboard", "max_tokens", "passed", "cache_key", "token_count", "command"])
def test_names_that_do_not(name: str) -> None:
    assert not secret_word(name)


@pytest.mark.parametrize(
    "raw", [b'{"password": "hunter2"}', b'password: hunter2 \xff {"', b"[" * 100_000 + b' password="hunter2"']
)
def test_bytes_are_redacted_whatever_they_hold(raw: bytes) -> None:
    redacted = redact_json_bytes(raw)
    assert b"hunter2" not in redacted
    assert b"[secret:password]" in redacted


@pytest.mark.parametrize(
    "hostile",
    [
        "password=",
        "password='",
        'password="',
        "-----BEGIN PRIVATE KEY-----",
        "curl ",
        "mysql ",
        "eyJ",
        "eyJaaaaaa.",
        "//a:b@",
        "_",
        "-",
        "login ",
    ],
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    started = time.perf_counter()
    redact_text(hostile * (400_000 // len(hostile)))
    assert time.perf_counter() - started < 10
