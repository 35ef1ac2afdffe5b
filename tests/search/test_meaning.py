"""Search by meaning beside words: what each finds alone, how they are mixed, and what is said when one is missing."""

import asyncio
from collections.abc import Sequence

import pytest

from service.search import search
from service.searching.fusion import MEANING_WORTH, by_meaning
from service.searching.ranking import Candidate, by_relevance
from service.searching.request import Kind, SearchAnswer, search_query
from service.vectors.embedder import Embedder
from service.vectors.protocol import Nearest, Neighbour, VectorsUnavailable
from tests.search.conftest import START_EPOCH, Memory
from tests.search.hostile import IDEOGRAPHIC, IDEOGRAPHS, NOTE, WORDED
from tests.search.meanings import Meanings


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder()


@pytest.fixture
def meanings(embedder: Embedder) -> Meanings:
    return Meanings(embedder)


async def find(memory: Memory, vectors: Nearest, query: str, **given: str) -> SearchAnswer:
    return await search(memory.core.database, search_query({"query": query, **given}), vectors=vectors)


async def shelf(memory: Memory, meanings: Meanings) -> dict[str, int]:
    """Three memories, of which one is about signing in and one names an identifier."""
    ids = {
        "login": await memory.observation("login page", "users sign in with a password", session_id="s1"),
        "bread": await memory.observation("sourdough", "flour, water and salt", session_id="s2"),
        "code": await memory.observation("getUserById", "returns a row of the table", session_id="s3"),
        "other": await memory.observation("login page", "users sign in", project="other", session_id="s4"),
    }
    await meanings.read(memory.core.database)
    return ids


async def test_what_shares_no_word_with_the_query_is_found_by_its_meaning(memory: Memory, meanings: Meanings) -> None:
    ids = await shelf(memory, meanings)
    answer = await find(memory, meanings, "authentication of accounts", project="shop")
    assert (answer.mode, answer.degraded) == ("vector", None)
    assert [hit.id for hit in answer.results][:1] == [ids["login"]]
    assert ids["bread"] not in [hit.id for hit in answer.results]
    assert answer.total == len(answer.results)


async def test_what_holds_the_words_stands_first(memory: Memory, meanings: Meanings) -> None:
    ids = await shelf(memory, meanings)
    answer = await find(memory, meanings, "salt for the password", project="shop")
    assert answer.mode == "hybrid"
    assert {hit.id for hit in answer.results[:2]} == {ids["login"], ids["bread"]}


async def test_filters_hold_for_what_is_found_by_meaning(memory: Memory, meanings: Meanings) -> None:
    ids = await shelf(memory, meanings)
    for given in ({"session": "s2"}, {"obs_type": "decision"}, {"dateEnd": str(START_EPOCH)}, {"files": "a.go"}):
        answer = await find(memory, meanings, "authentication of accounts", **given)
        assert not {ids["login"], ids["other"]} & {hit.id for hit in answer.results}, given
    answer = await find(memory, meanings, "authentication of accounts", project="other")
    assert [hit.id for hit in answer.results] == [ids["other"]]


@pytest.mark.parametrize("query", ['"authentication"', "authentication AND accounts", "title:accounts", "authent*"])
async def test_syntax_is_exact_and_mixes_no_meaning_in(memory: Memory, meanings: Meanings, query: str) -> None:
    await shelf(memory, meanings)
    answer = await find(memory, meanings, query)
    assert (answer.mode, answer.total, answer.degraded) == ("keyword", 0, None)


@pytest.mark.parametrize("query", ["getUserById", "get_user_by_id", "src/table.py getUserById"])
async def test_a_name_that_is_found_is_not_mixed_with_what_is_like_it(
    memory: Memory, meanings: Meanings, query: str
) -> None:
    ids = await shelf(memory, meanings)
    alike = await memory.observation("fetchAccountByKey", "returns a row too", session_id="s5")
    await meanings.read(memory.core.database)
    found = [hit.id for hit in (await find(memory, meanings, query)).results]
    assert found[0] == ids["code"]
    assert alike not in found


async def test_nothing_like_it_finds_nothing(memory: Memory, meanings: Meanings) -> None:
    for n in range(50):
        await memory.observation(f"web handler {n}", f"routes and templates of page {n}", session_id=f"s{n}")
    await meanings.read(memory.core.database)
    answer = await find(memory, meanings, "zxqv plumbus 9911", type="all")
    assert (answer.total, answer.results) == (0, ())


@pytest.mark.parametrize("query", ["zanzibarword", "pw-4712", "AKIAIOSFODNN7EXAMPLE", "zzzqqq", "pizza"])
async def test_a_word_that_stands_nowhere_and_means_nothing_here_finds_nothing(
    memory: Memory, meanings: Meanings, query: str
) -> None:
    for n, text in enumerate(("users sign in with a password", "routes and templates", "print() writes a line", "x")):
        await memory.observation(text, session_id=f"s{n}")
    await meanings.read(memory.core.database)
    assert (await find(memory, meanings, query)).total == 0


@pytest.mark.parametrize("query", ["authentication", "credentials", "login"])
async def test_a_word_that_stands_nowhere_finds_what_it_means(memory: Memory, meanings: Meanings, query: str) -> None:
    for n, text in enumerate(("users sign in with a password", "routes and templates", "flour, water and salt")):
        await memory.observation(text, session_id=f"s{n}")
    await meanings.read(memory.core.database)
    assert [hit.title for hit in (await find(memory, meanings, query)).results] == ["users sign in with a password"]


@pytest.mark.parametrize("query", ['"', "%", "((( )))", "!?", '""'])
async def test_signs_alone_mean_nothing(memory: Memory, meanings: Meanings, query: str) -> None:
    for text in ("\N{REPLACEMENT CHARACTER}", "x", "a b"):
        await memory.observation(text)
    await meanings.read(memory.core.database)
    answer = await find(memory, meanings, query)
    assert (answer.mode, answer.total) == ("keyword", 0)


class Away:
    """An index that can't be asked."""

    async def nearest(self, text: str, *, doc_types: Sequence[str], project: str | None, limit: int) -> list[Neighbour]:
        raise VectorsUnavailable("the index is being rebuilt")


class Silent:
    """An index that never answers."""

    async def nearest(self, text: str, *, doc_types: Sequence[str], project: str | None, limit: int) -> list[Neighbour]:
        await asyncio.Event().wait()
        return []


@pytest.mark.parametrize(("vectors", "why"), [(Away(), "being rebuilt"), (Silent(), "no answer within")])
async def test_without_an_answer_of_the_index_words_answer_and_say_so(
    memory: Memory, vectors: Nearest, why: str
) -> None:
    wanted = await memory.observation("harvester")
    answer = await find(memory, vectors, "harvester")
    assert ([hit.id for hit in answer.results], answer.mode) == ([wanted], "keyword")
    assert why in (answer.degraded or "")


async def test_by_date_and_without_text_no_index_is_asked(memory: Memory) -> None:
    await memory.observation("harvester")
    for query, given in (("harvester", {"orderBy": "date_desc"}), ("", {}), ("*", {})):
        answer = await find(memory, Away(), query, **given)
        assert (answer.total, answer.degraded) == (1, None)


async def test_paging_through_both_repeats_nothing_and_misses_nothing(memory: Memory, meanings: Meanings) -> None:
    for n in range(60):
        await memory.observation(f"login page {n}", "users sign in" if n % 2 else "password", session_id=f"s{n % 7}")
    await meanings.read(memory.core.database)
    pages = [await find(memory, meanings, "sign in on a page", limit="7", offset=str(o)) for o in range(0, 70, 7)]
    ids = [hit.id for page in pages for hit in page.results]
    assert len(ids) == len(set(ids)) == pages[0].total == sum(len(page.results) for page in pages)
    scores = [hit.score for page in pages for hit in page.results]
    assert scores == sorted(scores, reverse=True)


def test_the_best_by_words_beats_the_best_by_meaning_and_both_beat_either() -> None:
    words, some_words, meaning, least = (
        Candidate(kind=Kind.OBSERVATION, id=n, text_score=score) for n, score in enumerate((9.0, 6.0, 0.0, 0.0))
    )
    near = by_meaning([(0.8, meaning), (0.75, some_words), (0.3, least)])
    ranked = by_relevance([words, some_words, meaning, least], [], near, age_counts=True)
    assert [candidate for _, candidate in ranked] == [some_words, words, meaning, least]


def test_what_a_session_means_lifts_its_records() -> None:
    lone, busy, meant = (
        Candidate(kind=Kind.OBSERVATION, id=n, text_score=score, session_id=session)
        for n, (score, session) in enumerate(((5.0, "lone"), (4.8, "busy"), (0.0, "busy")))
    )
    order = {
        how: [candidate for _, candidate in by_relevance([lone, busy, meant], [], meaning, age_counts=True)]
        for how, meaning in (("words", {}), ("both", {meant: MEANING_WORTH}))
    }
    assert order == {"words": [lone, busy, meant], "both": [busy, lone, meant]}


async def test_hostile_queries_are_answered_by_both(memory: Memory, meanings: Meanings) -> None:
    await memory.observation(*NOTE, project="neighbour", session_id="s2")
    wanted = await memory.observation(*NOTE, files_modified=["src/upload/worker.py"])
    await meanings.read(memory.core.database)
    for query in WORDED:
        answer = await find(memory, meanings, query, project="shop")
        assert wanted in [hit.id for hit in answer.results], ascii(query)[:200]
        assert {hit.project for hit in answer.results} == {"shop"}, ascii(query)[:200]


async def test_ideographs_are_found_with_meaning_as_without(memory: Memory, meanings: Meanings) -> None:
    await memory.observation("其他", "完全不同的事情", session_id="s2")
    wanted = await memory.observation(*IDEOGRAPHS)
    await meanings.read(memory.core.database)
    for query in IDEOGRAPHIC:
        assert (await memory.ids(query))[:1] == [wanted], query
        assert [hit.id for hit in (await find(memory, meanings, query)).results][:1] == [wanted], query
