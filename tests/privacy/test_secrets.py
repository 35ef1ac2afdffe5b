"""Which texts hold a secret, and which only speak of one. No secret here is real."""

import json

import pytest

from hooks.secret_names import secret_word
from hooks.secrets import may_hold_secret, redact_json_bytes, redact_payload, redact_text
from tests.privacy.growth import is_linear

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
        ("docker login -u me -p X9abc registry", "X9abc"),
        ("docker login -p 'two words' registry", "two words"),
        ("redis-cli -h x -a swordfish ping", "swordfish"),
        ("sshpass -pHidden ssh a", "Hidden"),
        ("mongosh -u a -p swordfish --host x", "swordfish"),
        ("sqlcmd -S h -U sa -P Str0ng", "Str0ng"),
        ("ldapsearch -x -D cn=a -w s3cr3t -b x", "s3cr3t"),
        ("openssl rsa -passin pass:swordfish", "swordfish"),
        ("root:s3cret@tcp(127.0.0.1:3306)/db", "s3cret"),
        ("DATABASE_URL=app:pw1234@db.host:5432/x", "pw1234"),
        ('<property name="password" value="swordfish"/>', "swordfish"),
        ('<add key="ApiKey" value="abc123def"/>', "abc123def"),
        ("- name: DB_PASSWORD\n  value: hunter2", "hunter2"),
        ('requests.get(url, auth=("u", "swordfish"))', "swordfish"),
        ('request.SetBasicAuth("u", "swordfish")', "swordfish"),
        ('source.setPassword("swordfish");', "swordfish"),
        ('os.environ.setdefault("DB_PASSWORD", "swordfish")', "swordfish"),
        ("CREATE USER 'a'@'h' IDENTIFIED BY 'swordfish'", "swordfish"),
        ("ALTER USER a IDENTIFIED WITH mysql_native_password BY 'swordfish'", "swordfish"),
        ("CREATE ROLE a LOGIN PASSWORD 'swordfish'", "swordfish"),
        ("TOKEN='abc123'", "abc123"),
        ("API_TOKEN=abc", "abc"),
        ('{"API_TOKEN": "abc"}', "abc"),
        ('{"passwords": ["a1b2c3", "swordfish"]}', "swordfish"),
        ("mytool --token=abc123def", "abc123def"),
        ("mytool --api-key abc123", "abc123"),
        ('["mytool", "--password", "swordfish"]', "swordfish"),
        ("use Basic dXNlcjpwYXNz now", "dXNlcjpwYXNz"),
        ("Cookie: session=abcdef0123456789abcdef; theme=dark", "abcdef0123456789abcdef"),
        ('curl -H "X-Vault-Token: s.abcdef123456" x', "s.abcdef123456"),
        ("https://x/?api_key=abc123def&x=1", "abc123def"),
        ("https://x/y?sv=1&sig=abcdefABCDEF0123456789%3D", "abcdefABCDEF0123456789"),
        (f"AGE-SECRET-KEY-1{LETTERS.upper()}", LETTERS.upper()),
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
        "3 passed, 1 failed",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQDf0x user@host",
        "Basic authentication is required",
        "docker login -p $PASS registry",
        "docker login --password-stdin",
        "mkdir -p a/b && git push -u origin main",
        "curl -u $USER:$PASS x",
        "npm:foo@1.2.3, image:tag1@sha256:0123",
        "user: admin@example.com:8080",
        '<input type="password" name="pw" value="">',
        "setPassword(newPassword)",
        "auth=(user, password)",
        "IDENTIFIED BY '${PW}'",
        '{"tokens": ["a", "b"], "max_tokens": 5}',
        'TOKEN_KEY = "auth_token"',
        "PASS=0; FAIL=0",
        "PWD=/workspace/foo",
        "TOKEN=$(cat x)",
        "Set-Cookie: session=<id>; HttpOnly",
        "initial HEAD on feature/auth: d5a174d",
        "API_KEY=phc_xxx, or API_KEY=phc_your_key",
        'APIKey: "test-key"',
        "7. **All tests pass**: `make test`",
        "-Pass `sessions` to `print`",
        '[]byte("secret: "+random), "x")',
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


def test_a_name_makes_secrets_of_what_stands_beside_it() -> None:
    payload = {
        "passwords": ["a1b2c3", "swordfish"],
        "args": ["--token", "abc123", "--verbose", "abc"],
        "env": [{"name": "DB_PASSWORD", "value": "swordfish"}, {"name": "HOME", "value": "here"}],
        "headers": {"Authorization": "Bearer abc"},
    }
    expected = {
        "passwords": ["[secret:password]", "[secret:password]"],
        "args": ["--token", "[secret:token]", "--verbose", "abc"],
        "env": [{"name": "DB_PASSWORD", "value": "[secret:password]"}, {"name": "HOME", "value": "here"}],
        "headers": {"Authorization": "Bearer [secret:auth]"},
    }
    assert redact_payload(payload) == expected
    for part in payload.items():
        assert may_hold_secret(json.dumps(dict([part])).encode())


def test_a_secret_is_also_replaced_where_the_payload_repeats_it() -> None:
    payload = {
        "tool_response": {"stdout": "Zx9!fake\nabcZx9!fake", "Zx9!fake": 1},
        "tool_input": {"command": "export PGPASSWORD=Zx9!fake; echo $PGPASSWORD"},
    }
    expected = {
        "tool_response": {"stdout": "[secret:password]\nabcZx9!fake", "[secret:password]": 1},
        "tool_input": {"command": "export PGPASSWORD=[secret:password]; echo $PGPASSWORD"},
    }
    assert redact_payload(payload) == expected
    assert json.loads(redact_json_bytes(json.dumps(payload).encode())) == expected


@pytest.mark.parametrize("value", ["swordfish", "p4ss", "20260101"])
def test_an_ordinary_word_or_number_stays_where_it_is_repeated(value: str) -> None:
    assert redact_text(f"password={value} and {value}") == f"password=[secret:password] and {value}"


@pytest.mark.parametrize("newlines", ["\\r\\n", "\\u000a", "\\t"])
def test_an_escape_before_a_name_hides_nothing_in_raw_bytes(newlines: str) -> None:
    assert may_hold_secret(f'{{"a": "x{newlines}ghp_{LETTERS}"}}'.encode())
    assert may_hold_secret(f'{{"a": "p\\u0061ssword=hunter2{newlines}"}}'.encode())


def test_a_token_after_an_escaped_line_end_is_seen_in_raw_bytes() -> None:
    assert may_hold_secret(json.dumps(f"x\nghp_{LETTERS}").encode())


def test_a_value_in_which_a_secret_was_replaced_stays() -> None:
    text = 'password="a [secret:token] b"'
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "loginByPassword",
        "recover_password",
        "proofToken",
        "DB_PASSWORD",
        "apiKey",
        "x-api-key",
        "access_token",
        "client_secret",
    ],
)
def test_names_that_say_secret(name: str) -> None:
    assert secret_word(name)


@pytest.mark.parametrize(
    "name",
    ["author", "bypass", "next_page_token", "keyboard", "max_tokens", "passed", "cache_key", "token_count", "command"],
)
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
        "docker login -p ",
        "curl -u a:",
        'password=["',
        "a:b1c2@",
        "a:b1c2@tcp(",
        "cookie: a=",
        "identified by ",
        "sig=",
        "SK0",
        "key: value ",
    ],
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    assert is_linear(lambda size: redact_text(hostile * (size // len(hostile))), least=25_000)
