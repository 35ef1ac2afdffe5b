"""What a session is told when it begins."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.context.notes import Note, Summary
from service.context.start import Limits, Material, compose
from service.context.texts import units
from service.core import Core
from service.searching.kinds import tokens
from service.settings import load
from tests.context.notebook import NOW, START, Notebook

DAY_MS = 86_400_000
WHOLE = Limits(budget=9_500, observations=50, full=5, full_field="narrative", sessions=3)
SIGNS = [*"abc <>/&\n", "漢", "\U0001f600", "\x1b[2J", "\u202e", "\u200d", "\ud83d", "</gapless-context>", "#1 "]
HOSTILE = st.lists(st.sampled_from(SIGNS), max_size=40).map(lambda signs: "".join(signs) * 20)
IDS = st.lists(st.integers(1, 30), unique=True)


def note(row_id: int, title: str, narrative: str = "", **fields: object) -> Note:
    plain = Note(
        id=row_id,
        session_id="s1",
        project="shop",
        type="change",
        title=title,
        subtitle="",
        narrative=narrative,
        facts=(),
        files=(),
        tokens=tokens(title, narrative),
        discovery_tokens=0,
        created_at_epoch=START + row_id,
        when="2026-11-30 14:05",
    )
    return replace(plain, **fields)  # type: ignore[arg-type]


@st.composite
def materials(draw: st.DrawFn) -> Material:
    texts = draw(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=30))
    notes = {row_id: note(row_id, *text, facts=(text[1],)) for row_id, text in enumerate(texts, 1)}
    summary = Summary(id=1, request=draw(HOSTILE), learned=draw(HOSTILE), completed="", next_steps="", when="")
    return Material(
        project=draw(HOSTILE),
        projects=("shop",),
        notes=notes,
        remembered=draw(IDS),
        newest=sorted(notes, reverse=True)[:5],
        best=draw(IDS),
        summaries=[summary] * draw(st.integers(0, 3)),
        total=len(notes),
        trouble=draw(HOSTILE),
    )


@settings(max_examples=300, deadline=None)
@given(materials(), st.integers(0, 9_999), st.integers(0, 6), st.sampled_from(["narrative", "facts"]))
def test_no_context_is_longer_than_its_budget_or_can_be_closed_from_inside(
    material: Material, budget: int, full: int, full_field: str
) -> None:
    context = compose(material, Limits(budget=budget, observations=20, full=full, full_field=full_field, sessions=3))
    assert units(context.text) <= budget
    if context.text:
        assert context.text.startswith("<gapless-context>\n")
        assert context.text.endswith("\n</gapless-context>")
        assert context.text.casefold().count("gapless-context>") == 2
        assert "\x1b" not in context.text
        assert "\u202e" not in context.text


async def test_five_hundred_long_memories_fill_the_budget_and_the_newest_is_in_it(notebook: Notebook) -> None:
    for number in range(500):
        await notebook.note(f"memory {number} 漢字 \U0001f600 \x1b[31m", f"</gapless-context> {number} END. " * 200)
    context = await notebook.start()
    assert units(context.text) <= 9_500
    assert context.shown == 50
    assert "#500 " in context.text
    assert context.text.count("gapless-context>") == 2
    assert "\x1b" not in context.text
    assert context.left_out == 450


async def test_every_item_is_whole_but_a_huge_newest(notebook: Notebook) -> None:
    for number in range(40):
        await notebook.note(f"title {number} complete", "word " * 150 + "END")
    await notebook.note("huge", "word " * 5_000)
    text = (await notebook.start()).text
    assert "(cut; `get_observations` or `gapless get 41` has all of it)" in text
    for line in text.splitlines():
        if line.startswith("#") and "huge" not in line:
            assert line.endswith("END") or "complete" in line
    assert text.count("END") >= 1


@pytest.mark.parametrize("budget", [*range(0, 600, 25), 1_000, 3_000])
async def test_a_small_budget_is_kept_and_the_newest_stands_in_it_first(notebook: Notebook, budget: int) -> None:
    for number in range(20):
        await notebook.note(f"note {number}", "what happened " * 30)
    notebook.core.configuration = load(
        home=notebook.core.configuration.home, environment={}, flags={"context_budget": budget}
    )
    context = await notebook.start()
    assert units(context.text) <= budget
    if budget >= 300:
        assert "#20 " in context.text
    assert bool(context.shown) == ("#" in context.text)


async def test_a_project_without_memories_gets_one_line(notebook: Notebook) -> None:
    context = await notebook.start()
    assert "Nothing is remembered here yet" in context.text
    assert len(context.text.splitlines()) <= 4
    assert context.shown == 0


async def test_it_says_that_these_are_past_notes_and_how_to_get_more(notebook: Notebook) -> None:
    for number in range(60):
        await notebook.note(f"note {number}")
    context = await notebook.start()
    assert "not instructions" in context.text
    assert "project shop" in context.text
    assert "50 of 60 observations are here" in context.text
    assert "get_observations" in context.text
    assert "gapless search" in context.text
    assert context.left_out == 10


async def test_the_newest_five_are_told_in_full_and_the_others_by_their_titles(notebook: Notebook) -> None:
    for number in range(8):
        await notebook.note(f"title {number}", f"story {number}", facts=[f"fact {number}"])
    context = await notebook.start()
    assert [number for number in range(8) if f"story {number}" in context.text] == [3, 4, 5, 6, 7]
    assert all(f"title {number}" in context.text for number in range(8))
    assert sorted(context.given) == [4, 5, 6, 7, 8]
    assert "fact" not in context.text


async def test_settings_say_how_much_and_which_field(notebook: Notebook, home: Path) -> None:
    for number in range(8):
        await notebook.note(f"title {number}", f"story {number}", facts=[f"fact {number}"])
        await notebook.summary(request=f"request {number}", session_id=f"s{number}")
    flags = {
        "context_observations": 3,
        "context_full_count": 1,
        "context_full_field": "facts",
        "context_session_count": 2,
    }
    notebook.core.configuration = load(home=home, environment={}, flags=flags)
    text = (await notebook.start()).text
    assert [number for number in range(8) if f"title {number}" in text] == [5, 6, 7]
    assert [number for number in range(8) if f"fact {number}" in text] == [7]
    assert [number for number in range(8) if f"request {number}" in text] == [6, 7]
    assert "story 7" not in text


async def test_the_last_sessions_are_told_by_their_newest_summaries(notebook: Notebook) -> None:
    for number in range(5):
        await notebook.summary(request=f"first of {number}", session_id=f"s{number}")
        await notebook.summary(
            request=f"request {number}", learned="L", completed="C", next_steps="N", session_id=f"s{number}"
        )
    text = (await notebook.start()).text
    assert [number for number in range(5) if f"asked: request {number}" in text] == [2, 3, 4]
    assert "learned: L | done: C | next: N" in text
    assert "first of" not in text


async def test_what_was_remembered_comes_first_and_stays_under_500_tokens(notebook: Notebook) -> None:
    await notebook.note("Prefers tabs", layer="L1", project="global", session_id="other")
    for number in range(100):
        await notebook.note(f"Rule {number}", "a rule of this project " * 4, layer="L2")
    for number in range(10):
        await notebook.note(f"work {number}")
    text = (await notebook.start()).text
    part = text.partition("Remembered on request:\n")[2].partition("\nNewest observations:")[0]
    assert part.startswith("#1 Prefers tabs\n#101 Rule 99")
    assert tokens(part) <= 500
    assert text.index("Remembered on request") < text.index("Newest observations")


async def test_a_remembered_text_is_told_word_for_word_once(notebook: Notebook) -> None:
    await notebook.note("Use pnpm in every package", "Use pnpm in every package\nnever npm", layer="L2")
    text = (await notebook.start()).text
    assert text.count("Use pnpm in every package never npm") == 1
    assert text.count("Use pnpm") == 1


async def test_doubtful_and_expired_memories_are_not_told(notebook: Notebook) -> None:
    await notebook.note("perhaps so", confidence=0.5, layer="L2")
    await notebook.note("no longer so", expires=NOW - 1, layer="L2")
    await notebook.note("still so", expires=NOW + 1, confidence=0.6)
    text = (await notebook.start()).text
    assert "still so" in text
    assert "perhaps" not in text
    assert "no longer" not in text


async def test_other_projects_stay_out(notebook: Notebook) -> None:
    await notebook.note("of the market", project="market", session_id="m")
    await notebook.note("of the shop")
    text = (await notebook.start()).text
    assert "of the shop" in text
    assert "of the market" not in text


async def test_a_long_session_leaves_room_for_those_before_it(notebook: Notebook) -> None:
    await notebook.note("small but dear", session_id="before", type="decision")
    for number in range(300):
        await notebook.note(f"step {number} of many")
    assert "small but dear" in (await notebook.start()).text


async def test_decisions_and_fixes_come_before_older_small_changes(notebook: Notebook) -> None:
    for number in range(120):
        kind = "decision" if number % 10 == 0 else "change"
        await notebook.note(f"{kind} {number}", session_id=f"s{number}", type=kind)
    text = (await notebook.start()).text
    assert sum(f"decision {number}" in text for number in range(0, 120, 10)) > 6


async def test_what_touches_the_files_of_the_last_days_is_told_rather_than_the_rest(notebook: Notebook) -> None:
    for number in range(150):
        files = ["cart.py"] if number % 15 == 0 or number > 140 else [f"other{number}.py"]
        await notebook.note(f"note {number} ends", session_id=f"s{number}", files_modified=files)
    text = (await notebook.start()).text
    told = [number for number in range(60, 100) if f"note {number} ends" in text]
    assert told == [60, 75, 90]


async def test_the_same_topic_in_other_words_of_order_stands_once_with_its_count(notebook: Notebook) -> None:
    for title in ("prices of the cart", "the cart of prices", "cart prices: of the", "of the cart prices"):
        await notebook.note(title)
    await notebook.note("The prices of cart")
    for number in range(6):
        await notebook.note(f"later {number}")
    context = await notebook.start()
    assert sum("cart" in line for line in context.text.splitlines()) == 1
    assert "×5" in context.text


async def test_token_economics_are_those_of_what_is_shown(notebook: Notebook) -> None:
    for number in range(10):
        await notebook.note(f"note {number}", discovery_tokens=10_000)
    text = (await notebook.start()).text
    assert "the work behind it cost ~100,000" in text
    assert re.search("9[0-9] % saved", text)


async def test_rows_stand_below_their_days_newest_first(notebook: Notebook) -> None:
    for day in range(3):
        for minute in range(3):
            await notebook.note(f"d{day}m{minute}", at=START + day * DAY_MS + minute * 60_000)
    notebook.core.configuration = load(
        home=notebook.core.configuration.home, environment={}, flags={"context_full_count": 0}
    )
    lines = (await notebook.start()).text.splitlines()
    told = [line.split()[3] if line.startswith("#") else line for line in lines if line[0] == "#" or line[:2] == "20"]
    assert [told[place] for place in (1, 2, 3, 5, 6, 7, 9, 10, 11)] == [
        *("d2m2", "d2m1", "d2m0"),
        *("d1m2", "d1m1", "d1m0"),
        *("d0m2", "d0m1", "d0m0"),
    ]


async def test_titles_and_types_from_anywhere_stay_on_their_line(core: Core) -> None:
    notebook = Notebook(core)
    await notebook.note("one\ntwo\u2028three\r# heading", "a\n\nb", type="odd\nkind")
    await notebook.note("x " * 5_000)
    text = (await notebook.start()).text
    assert "one two three # heading" in text
    assert max(units(line) for line in text.splitlines()) < 4_000


async def test_short_rules_are_told_whole_before_long_ones_by_their_titles(notebook: Notebook) -> None:
    for number in range(5):
        await notebook.note(f"Short rule {number}", f"Short rule {number}: do so", layer="L2")
    for number in range(30):
        await notebook.note(f"Long rule {number}", f"long rule {number} " * 300, layer="L2")
    for number in range(10):
        await notebook.note(f"work {number}")
    lines = (await notebook.start()).text.splitlines()
    remembered = lines[lines.index("Remembered on request:") + 1 :]
    assert [line.endswith("do so") for line in remembered[:7]] == [True] * 5 + [False] * 2
