"""Filters hold with a query and without, for every kind, and never let another project's rows through."""

from datetime import datetime

import pytest

from service.searching.request import Kind
from tests.search.conftest import START_EPOCH, Memory

QUERIES = ["", "*", "note", '"note"', "note OR nothing", "note the"]


@pytest.mark.parametrize("query", QUERIES)
async def test_a_project_filter_lets_only_its_own_rows_through(memory: Memory, query: str) -> None:
    own = await memory.observation("note one", project="p1", session_id="s1")
    await memory.observation("note two", project="p1 more", session_id="s2")
    await memory.observation("note three", project="P1", session_id="s3")
    await memory.observation("note p1 four", project="p2", session_id="s4")
    assert await memory.ids(query, project="p1") == [own]


async def test_a_project_is_also_known_by_its_key(memory: Memory) -> None:
    own = await memory.observation("note", project="p1", key="example.org/p1")
    await memory.observation("note", project="p2", session_id="s2")
    assert await memory.ids("note", project="example.org/p1") == [own]


async def test_an_unknown_project_has_nothing(memory: Memory) -> None:
    await memory.observation("note")
    answer = await memory.find("note", project="nowhere")
    assert (answer.total, answer.results, answer.degraded) == (0, (), None)


async def test_a_word_of_a_project_s_name_is_no_match_for_its_rows(memory: Memory) -> None:
    await memory.observation("nothing of the sort", project="toolbox")
    named = await memory.observation("the toolbox is open", project="shop", session_id="s2")
    assert await memory.ids("toolbox") == [named]
    assert await memory.ids("toolbox OR missing") == [named]


@pytest.mark.parametrize("name", ["***", "my-app", "日本", 'a"b', "it's", "(x) AND y", "emoji 🎉", "a.b/c:d"])
async def test_any_project_name_can_be_filtered_by(memory: Memory, name: str) -> None:
    own = await memory.observation("note one", project=name)
    await memory.observation("note two", project="other", session_id="s2")
    assert await memory.ids("note", project=name) == [own]


@pytest.mark.parametrize("query", ["", "note"])
async def test_dates_are_inclusive_and_hold_with_a_query(memory: Memory, query: str) -> None:
    starts = int(datetime.fromisoformat("2025-11-30").timestamp() * 1000)
    await memory.observation("note before", at=starts - 1)
    first = await memory.observation("note first", at=starts)
    last = await memory.observation("note last", at=starts + 86_400_000 - 1)
    await memory.observation("note after", at=starts + 86_400_000)
    assert sorted(await memory.ids(query, dateStart="2025-11-30", dateEnd="2025-11-30")) == [first, last]
    assert await memory.ids(query, dateStart=str(starts), dateEnd=str(starts)) == [first]


@pytest.mark.parametrize("query", ["", "note"])
async def test_session_platform_type_and_concept_filters_hold(memory: Memory, query: str) -> None:
    one = await memory.observation("note", session_id="s1", type="bugfix", concepts=["How-it-works"])
    two = await memory.observation("note", session_id="s2", platform="codex", type="decision", concepts=["trade-off"])
    assert await memory.ids(query, session="s1") == [one]
    assert await memory.ids(query, platform="codex") == [two]
    assert await memory.ids(query, obs_type="bugfix") == [one]
    assert sorted(await memory.ids(query, obs_type="bugfix,decision")) == [one, two]
    assert await memory.ids(query, concepts="how-it-works") == [one]
    assert sorted(await memory.ids(query, concepts="trade-off,How-it-works")) == [one, two]
    assert await memory.ids(query, concepts="how") == []
    assert await memory.ids(query, session="s1", obs_type="decision") == []


@pytest.mark.parametrize("query", ["", "note"])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("setup.go", {"deep", "flat"}),
        ("cli/setup.go", {"deep"}),
        ("./cli/setup.go", {"deep"}),
        ("cmd/cli/setup.go", {"deep"}),
        ("up.go", set()),
        ("*.go", {"deep", "flat"}),
        (".py", {"other"}),
        ("setup", set()),
        ("other.py,cli/setup.go", {"deep", "other"}),
        ("日本語.txt", {"wide"}),
        ("%.go", set()),
        ('"', set()),
    ],
)
async def test_files_match_by_whole_components_at_the_end_of_a_path(
    memory: Memory, query: str, given: str, found: set[str]
) -> None:
    rows = {
        "deep": await memory.observation("note", files_modified=["cmd/cli/setup.go"]),
        "flat": await memory.observation("note", files_read=["setup.go"]),
        "other": await memory.observation("note", files_modified=["lib/other.py"]),
        "wide": await memory.observation("note", files_modified=["docs/日本語.txt"]),
    }
    assert set(await memory.ids(query, files=given)) == {rows[name] for name in found}


async def test_a_filter_that_a_kind_does_not_have_leaves_it_out(memory: Memory) -> None:
    await memory.prompt("note")
    summary = await memory.summary("note", files_edited=["a.go"])
    both = await memory.observation("note", concepts=["c"], files_read=["a.go"])
    answer = await memory.find("note", type="all", files="a.go")
    assert {(hit.kind, hit.id) for hit in answer.results} == {(Kind.SUMMARY, summary), (Kind.OBSERVATION, both)}
    assert [hit.kind for hit in (await memory.find("note", type="all", concepts="c")).results] == [Kind.OBSERVATION]
    assert [hit.kind for hit in (await memory.find("", type="all", obs_type="change")).results] == [Kind.OBSERVATION]


@pytest.mark.parametrize("query", ["", "*", " * ", "\0"])
async def test_no_text_lists_newest_first(memory: Memory, query: str) -> None:
    ids = [await memory.observation(f"note {n}") for n in range(3)]
    answer = await memory.find(query, project="shop")
    assert [hit.id for hit in answer.results] == ids[::-1]
    assert (answer.mode, answer.total) == ("filter", 3)


@pytest.mark.parametrize("query", ["", "note"])
async def test_rows_can_be_had_by_date_in_both_directions(memory: Memory, query: str) -> None:
    late = await memory.observation("note late", at=START_EPOCH + 900_000)
    early = await memory.observation("note early", at=START_EPOCH)
    assert await memory.ids(query, orderBy="date_asc") == [early, late]
    assert await memory.ids(query, orderBy="date_desc") == [late, early]


@pytest.mark.parametrize("query", ["", "note", "note body", "note OR body"])
@pytest.mark.parametrize("order", ["relevance", "date_asc", "date_desc"])
async def test_paging_through_everything_repeats_nothing_and_misses_nothing(
    memory: Memory, query: str, order: str
) -> None:
    for n in range(230):
        await memory.observation(f"note {n % 7}", "body " * (n % 5), session_id=f"s{n % 9}", at=START_EPOCH + n % 11)
        if n % 10 == 0:
            await memory.prompt(f"note prompt {n}")
    pages = [await memory.find(query, type="all", orderBy=order, limit=50, offset=o) for o in range(0, 300, 50)]
    hits = [(hit.kind, hit.id) for page in pages for hit in page.results]
    assert len(hits) == len(set(hits)) == pages[0].total == 253
    scores = [hit.score for page in pages for hit in page.results]
    assert order != "relevance" or scores == sorted(scores, reverse=True)
