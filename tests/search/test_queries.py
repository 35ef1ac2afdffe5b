"""Any text is a query: nothing that is typed fails, and what is in a memory is found."""

import pytest

from service.searching.request import Kind
from tests.search.conftest import Memory
from tests.search.hostile import NOTE, WORDED, WORDLESS


async def shelf(memory: Memory) -> int:
    """A memory among others, with a neighbour project that holds the same words; its id."""
    await memory.observation("elsewhere", "about other matters", concepts=["other"])
    await memory.observation(*NOTE, project="neighbour", session_id="s2")
    return await memory.observation(*NOTE, files_modified=["src/upload/worker.py"])


async def test_words_are_found_whatever_stands_between_them(memory: Memory) -> None:
    wanted = await shelf(memory)
    for query in WORDED:
        answer = await memory.find(query, project="shop")
        assert wanted in [hit.id for hit in answer.results], ascii(query)[:200]
        assert {hit.project for hit in answer.results} == {"shop"}, ascii(query)[:200]
        assert answer.degraded is None, ascii(query)[:200]


async def test_a_query_of_nothing_is_answered_with_nothing(memory: Memory) -> None:
    await shelf(memory)
    for query in WORDLESS:
        answer = await memory.find(query, project="shop", type="all")
        assert answer.mode == "filter" or not answer.results, ascii(query)[:200]


async def test_the_same_queries_are_safe_without_fts5(plain_memory: Memory) -> None:
    await shelf(plain_memory)
    for query in (*WORDED, *WORDLESS):
        answer = await plain_memory.find(query, project="shop", type="all")
        assert {hit.project for hit in answer.results} <= {"shop"}, ascii(query)[:200]


IDENTIFIERS = [
    ("getUserById", "the getUserById call"),
    ("getUserById", "the get_user_by_id call"),
    ("get_user_by_id", "the getUserById call"),
    ("get_user_by_id", "GET_USER_BY_ID"),
    ("getuserbyid", "the getUserById call"),
    ("user id", "the getUserById call"),
    ("parse reply", "class HTTPReplyParser"),
    ("HTTPReplyParser", "class HTTPReplyParser"),
    ("json", "many parseJSONs here"),
    ("UserById", "see repo.getUserById()"),
    ("setup.go", "changed cmd/cli/setup.go"),
    ("cmd/cli/setup.go", "changed cmd/cli/setup.go"),
    ("/home/me/work/cmd/cli/setup.go", "changed cmd/cli/setup.go"),
    ("C:\\work\\cli\\setup.go", "changed cmd/cli/setup.go"),
    ("service.core.Core", "opened by service.core.Core"),
    ("core", "opened by service.core.Core"),
    ("std::vec::Vec", "a std::vec::Vec of them"),
    ("ENT-260", "fixes ENT-260"),
    ("#4711", "see #4711"),
    ("--no-verify", "skipped with --no-verify"),
    ("e94d271f", "commit e94d271f"),
    ("v1.25.6", "updated to 1.25.6"),
    ("db", "the db is locked"),
    ("go", "a go file"),
    ("C", "written in C"),
    ("x86_64", "built for x86_64"),
]


@pytest.mark.parametrize(("query", "text"), IDENTIFIERS)
async def test_code_is_found_whole_and_in_parts(memory: Memory, query: str, text: str) -> None:
    await memory.observation("something else", "about other matters")
    wanted = await memory.observation("title", text)
    assert await memory.ids(query) == [wanted]


CJK = [
    ("数据库", "修复数据库连接池的问题"),
    ("连接", "修复数据库连接池的问题"),
    ("题", "修复数据库连接池的问题"),
    ("池", "修复数据库连接池的问题"),
    ("修复数据库连接池的问题", "修复数据库连接池的问题"),
    ("数据库 问题", "修复数据库连接池的问题"),
    ("如何修复数据库?", "修复数据库连接池的问题"),
    ("bug", "修复bug问题"),
    ("问题", "修复bug问题"),
    ("修复bug", "修复bug问题"),
    ("データベース", "データベース接続のエラー"),
    ("接続", "データベース接続のエラー"),
    ("エラー", "データベース接続のエラー"),
    ("데이터", "데이터베이스 연결 오류"),
    ("베이스", "데이터베이스 연결 오류"),
    ("数据 数据库", "数据在数据库里"),
]


@pytest.mark.parametrize(("query", "text"), CJK)
async def test_chinese_japanese_and_korean_words_are_found(memory: Memory, query: str, text: str) -> None:
    await memory.observation("其他", "完全不同")
    wanted = await memory.observation("title", text)
    prompt = await memory.prompt(text)
    found = [(hit.kind, hit.id) for hit in (await memory.find(query, type="all")).results]
    assert sorted(found) == [(Kind.OBSERVATION, wanted), (Kind.PROMPT, prompt)]


async def test_the_end_of_a_long_chinese_prompt_is_found(memory: Memory) -> None:
    filler = "".join(chr(0x4E00 + n) for n in range(5_000))
    wanted = await memory.prompt(f"{filler},修复龘靐齉爩")
    assert [hit.id for hit in (await memory.find("靐齉", type="prompts")).results] == [wanted]


@pytest.mark.parametrize("query", ["who are you", "what is the", "it is not", "AND the OR"])
async def test_stop_words_count_when_there_is_nothing_else(memory: Memory, query: str) -> None:
    await memory.observation("cats")
    wanted = await memory.observation("who they are", "and what it is not, the or, you")
    assert await memory.ids(query) == [wanted]


async def test_a_row_that_holds_some_of_the_words_is_found_after_those_with_all(memory: Memory) -> None:
    some = await memory.observation("migration migration migration", "about the migration of schemas")
    whole = await memory.observation("note", "a long text where, among much else, the schema migration is blocked")
    await memory.observation("elsewhere")
    assert await memory.ids("blocked schema migration zzqx") == [whole, some]


async def test_nothing_relevant_finds_nothing(memory: Memory) -> None:
    for n in range(50):
        await memory.observation(f"web handler {n}", "routes and templates")
    answer = await memory.find("zxqv plumbus 9911", type="all")
    assert (answer.total, answer.results) == (0, ())
