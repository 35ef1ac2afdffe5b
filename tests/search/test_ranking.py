"""The order of results, what a result says, and the table for reading."""

from collections.abc import Callable

from service.search import markdown
from service.searching.request import Kind, SearchAnswer
from tests.search.conftest import START_EPOCH, Memory

YEAR_MS = 365 * 86_400_000


async def test_all_kinds_are_ranked_in_one_list(memory: Memory) -> None:
    weak = await memory.observation("other", "a long text about many things, the harvester among them " + "word " * 80)
    strong = await memory.prompt("harvester", session_id="s2")
    summary = await memory.summary("harvester run", "harvester done, harvester fixed", session_id="s3")
    found = [(hit.kind, hit.id) for hit in (await memory.find("harvester", type="all")).results]
    assert set(found) == {(Kind.OBSERVATION, weak), (Kind.PROMPT, strong), (Kind.SUMMARY, summary)}
    assert found[-1] == (Kind.OBSERVATION, weak)


async def test_a_title_counts_more_than_a_text(memory: Memory) -> None:
    text = await memory.observation("upkeep", "harvester")
    title = await memory.observation("harvester", "upkeep", at=START_EPOCH - YEAR_MS)
    assert await memory.ids("harvester") == [title, text]


async def test_between_equals_the_newer_comes_first_and_age_never_hides(memory: Memory) -> None:
    old = await memory.observation("harvester", at=START_EPOCH - 20 * YEAR_MS, session_id="s1")
    new = await memory.observation("harvester", at=START_EPOCH, session_id="s2")
    exact = await memory.observation("harvester belt", at=START_EPOCH - 30 * YEAR_MS, session_id="s3")
    assert await memory.ids("harvester") == [new, old, exact]
    assert (await memory.ids("harvester belt"))[0] == exact


async def test_what_else_a_session_holds_lifts_its_records(memory: Memory) -> None:
    lone = await memory.observation("harvester", session_id="lone")
    busy = [await memory.observation("harvester", session_id="busy", at=START_EPOCH - n) for n in range(3)]
    for n in range(20):
        await memory.observation(f"filler {n}", session_id="filler")
    assert await memory.ids("harvester") == [*busy, lone]


async def test_work_on_the_files_of_the_best_hits_comes_before_other_work(memory: Memory) -> None:
    best = await memory.observation("harvester belt", session_id="best", files_modified=["run.py"])
    same = await memory.observation("harvester", session_id="same", files_modified=["run.py"])
    read = await memory.observation("harvester", session_id="read", files_read=["run.py"])
    other = await memory.observation("harvester", session_id="other", files_modified=["shop.py"])
    for n in range(20):
        await memory.observation(f"filler {n}", session_id="filler")
    assert await memory.ids("harvester belt") == [best, same, read, other]  # without files: the newest first


async def test_a_file_of_another_project_is_another_file(memory: Memory) -> None:
    await memory.observation("harvester belt", session_id="best", files_modified=["run.py"])
    here = await memory.observation("harvester", session_id="here", files_modified=["shop.py"])
    there = await memory.observation("harvester", session_id="there", files_modified=["run.py"], project="barn")
    for n in range(20):
        await memory.observation(f"filler {n}", session_id="filler")
    scores = {hit.id: hit.score for hit in (await memory.find("harvester belt", age="off")).results}
    assert scores[here] == scores[there]


async def test_a_result_says_where_it_is_from_and_what_it_costs(memory: Memory) -> None:
    await memory.observation("t" * 40, "n" * 40, subtitle="s" * 20, facts=["f" * 10, "g" * 9], session_id="client-1")
    (hit,) = (await memory.find("*")).results
    assert (hit.kind, hit.project, hit.session_id, hit.type) == (Kind.OBSERVATION, "shop", "client-1", "change")
    assert (hit.title, hit.subtitle, hit.tokens, hit.score) == ("t" * 40, "s" * 20, 30, 0.0)


async def test_tokens_count_ideographs_one_by_one(memory: Memory) -> None:
    await memory.prompt("数据库连接 four")
    (hit,) = (await memory.find("*", type="prompts")).results
    assert hit.tokens == 5 + 2


async def test_prompts_and_summaries_have_titles_of_one_line(
    memory: Memory, titles: Callable[[SearchAnswer], list[str]]
) -> None:
    await memory.prompt("\n\n  fix   the\tbuild \nand more")
    await memory.prompt("x" * 500)
    await memory.summary("", "first done\nthen more")
    await memory.summary("asked\nfor this", "done")
    assert titles(await memory.find("*", type="prompts")) == ["x" * 119 + "…", "fix the build"]
    assert titles(await memory.find("*", type="summaries")) == ["asked", "first done"]
    found = await memory.find("*", type="all")
    assert {hit.type for hit in found.results} == {"prompt", "session_summary"}


async def test_the_table_has_a_line_a_hit_and_no_text_can_break_it(memory: Memory) -> None:
    one = await memory.observation("pipe | in\na title \x1b[31mred", at=1_790_000_000_000)
    two = await memory.summary("asked")
    three = await memory.prompt("said")
    table = markdown(await memory.find("*", type="all"))
    head, _, titles, _, first, *rest = table.rstrip("\n").split("\n")
    assert (head, titles) == ("3 of 3 (filter)", "| id | time | type | title | ~tokens |")
    assert first == f"| {one} | 2026-09-21 14:13 | change | pipe in a title [31mred | ~7 |"
    assert [line.split("|")[1].strip() for line in rest] == [f"P{three}", f"S{two}"]
