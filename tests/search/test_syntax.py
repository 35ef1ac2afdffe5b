"""FTS5's own syntax works when it is valid, and is plain text when it is not."""

import pytest

from service.searching.request import Kind
from tests.search.conftest import Memory

ROWS = {
    "both": ("alpha beta", "gamma text"),
    "apart": ("alpha", "delta beta"),
    "late": ("other", "alpha beta gamma"),
    "only": ("delta", "alphabet soup"),
}


@pytest.fixture
async def rows(memory: Memory) -> dict[str, int]:
    return {name: await memory.observation(*texts) for name, texts in ROWS.items()}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"alpha beta"', {"both", "late"}),
        ('"beta alpha"', set()),
        ("alphab*", {"only"}),
        ("alpha*", {"both", "apart", "late", "only"}),
        ('"alpha be"*', {"both", "late"}),
        ("alpha AND delta", {"apart"}),
        ("gamma OR delta", {"both", "late", "apart", "only"}),
        ("alpha NOT gamma", {"apart"}),
        ("(gamma OR delta) NOT alpha", {"only"}),
        ("alpha AND (delta OR text)", {"both", "apart"}),
        ("title:alpha", {"both", "apart"}),
        ("title: alpha", {"both", "apart"}),
        ("title:alpha gamma", {"both"}),
        ('narrative:"alpha beta"', {"late"}),
        ("narrative:(beta OR soup)", {"apart", "late", "only"}),
        ("title:gamma", set()),
        ("title:alpha*", {"both", "apart"}),
        ("alpha NOT title:alpha", {"late"}),
    ],
)
async def test_valid_syntax_means_what_it_means(
    memory: Memory, rows: dict[str, int], query: str, found: set[str]
) -> None:
    assert set(await memory.ids(query)) == {rows[name] for name in found}


@pytest.mark.parametrize(
    "query",
    [
        "gamma AND",
        "NOT gamma",
        "gamma OR OR delta",
        '"gamma',
        "gamma and delta",
        "gamma: delta",
        "(gamma AND delta",
        "Title:gamma",
    ],
)
async def test_invalid_syntax_is_text(memory: Memory, rows: dict[str, int], query: str) -> None:
    assert rows["both"] in await memory.ids(query)


async def test_facts_concepts_and_files_can_be_asked_for(memory: Memory) -> None:
    facts = await memory.observation("one", facts=["sigma is set"])
    concepts = await memory.observation("two", concepts=["sigma"])
    read = await memory.observation("three", files_read=["src/sigma.py"])
    modified = await memory.observation("four", files_modified=["lib/sigma.py"])
    assert await memory.ids("facts:sigma") == [facts]
    assert await memory.ids("concepts:sigma") == [concepts]
    assert sorted(await memory.ids("files:sigma")) == [read, modified]
    assert await memory.ids('files:"lib/sigma.py"') == [modified]


async def test_columns_mean_the_like_in_summaries_and_prompts_and_nothing_where_there_is_none(memory: Memory) -> None:
    summary = await memory.summary("sigma wanted", "tau done")
    prompt = await memory.prompt("please do sigma")
    titled = await memory.find("title:sigma", type="all")
    assert {(hit.kind, hit.id) for hit in titled.results} == {(Kind.SUMMARY, summary), (Kind.PROMPT, prompt)}
    assert [hit.id for hit in (await memory.find("narrative:tau", type="all")).results] == [summary]
    assert (await memory.find("facts:sigma", type="all")).total == 0
    assert (await memory.find("sigma NOT facts:sigma", type="all")).total == 2


async def test_loose_words_beside_a_phrase_only_rank_when_no_row_holds_them_all(memory: Memory) -> None:
    phrase = await memory.observation("note", "the connection refused error")
    ranked = await memory.observation("note", "connection refused by the worker")
    await memory.observation("note", "the worker refused a connection")
    found = await memory.ids('"connection refused" worker logs')
    assert found == [ranked, phrase]


async def test_a_word_in_syntax_finds_the_shapes_of_identifiers(memory: Memory) -> None:
    wanted = await memory.observation("get_user_by_id", "fails")
    assert await memory.ids("getUserById AND fails") == [wanted]
    assert await memory.ids("title:getUserById") == [wanted]
