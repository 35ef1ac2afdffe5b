"""Near-duplicates stand as one in what a search lists: the newest leads, the others are counted, none is deleted."""

import random

import pytest

from service.models import Batch, Compressed, ObservationDraft
from service.searching.grouping import Described, Group, group
from tests.memories.stated import T0, Stated
from tests.store.desk import Desk

TEXT = "the payment worker gives up after three attempts because its queue is never drained at night"


def described(*texts: str, project: str = "shop") -> list[Described]:
    return [
        Described(id=number, project=project, created_at_epoch=number, text=text, length=len(text))
        for number, text in enumerate(texts)
    ]


def is_one(one: str, other: str) -> bool:
    return len(group(described(one, other))) == 1


@pytest.mark.parametrize(
    "other",
    [
        TEXT.upper(),
        TEXT.replace(" ", "  ") + "!",
        TEXT.replace("attempts", "tries"),
        " ".join(sorted(TEXT.split())),
        TEXT + " again",
    ],
)
def test_the_same_words_in_another_form_are_one(other: str) -> None:
    assert is_one(TEXT, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TEXT + " on port 6001", TEXT + " on port 7001"),
        (TEXT + " in cart.py", TEXT + " in till.py"),
        (TEXT + " in shop/cart", TEXT + " in shop/till"),
        (TEXT + " in parseCart", TEXT + " in parseTill"),
        (TEXT + " in parse_cart", TEXT + " in parse_till"),
        (TEXT + " under .claude", TEXT + " under .gemini"),
        (TEXT, TEXT.replace("gives up", "never gives up")),
        (TEXT, TEXT.replace("gives", "doesn't give")),
        (TEXT, "the harbour is closed in winter because the lighthouse keeper went to sea long ago"),
        ("Use tool A for the build", "Use tool B for the build"),
        ("note", "note"),
        ("支払いワーカーは三回で諦める", "支払いワーカーは夜に動かない"),
        ("same start " * 60 + "end", "same start " * 60 + "and then something else entirely " * 30),
    ],
)
def test_what_differs_in_a_name_a_number_or_a_negation_is_two(one: str, other: str) -> None:
    assert not is_one(one, other)


def test_ideographs_are_compared_in_pairs() -> None:
    text = "支払いワーカーは夜間にキューが空にならないため三回の試行の後に処理を諦めてしまう"
    assert is_one(text, text + "よ")


def test_the_newest_leads_at_the_place_of_the_best() -> None:
    found = described("something else that is said here", TEXT, TEXT + " again", TEXT.upper())
    assert group(found) == [Group(leader=0, others=()), Group(leader=3, others=(1, 2))]


def test_other_projects_and_other_files_are_other_memories() -> None:
    (mine,) = described(TEXT)
    (theirs,) = described(TEXT, project="mill")
    elsewhere = Described(id=2, project="shop", created_at_epoch=2, text=TEXT, length=len(TEXT), files='["cart.py"]')
    assert len(group([mine, theirs, elsewhere])) == 3


def test_every_record_is_in_one_group_whatever_the_order() -> None:
    rng = random.Random(3)
    found = described(*(" ".join(rng.choices(TEXT.split(), k=12)) for _ in range(200)))
    groups = group(found)
    members = [member for each in groups for member in (each.leader, *each.others)]
    assert sorted(members) == list(range(200))
    assert group(found) == groups


async def test_a_search_lists_a_topic_once_with_its_count(stated: Stated) -> None:
    words = TEXT.split()
    for number in range(5):
        await stated.remember(" ".join([*words[number:], *words[:number]]), created_at_epoch=T0 + number)
    await stated.remember("the payment worker has a dashboard of its own", created_at_epoch=T0)
    answer = await stated.search("payment worker")
    assert answer.total == 2
    leader = next(hit for hit in answer.results if hit.similar)
    assert (leader.id, leader.similar, sorted(leader.similar_ids)) == (5, 4, [1, 2, 3, 4])
    assert await stated.rows("SELECT count(*) FROM observations") == [(6,)]


async def test_what_was_stated_stands_above_what_was_captured_in_the_same_words(desk: Desk, stated: Stated) -> None:
    number = await stated.id_of(TEXT, created_at_epoch=T0 - 1000)
    await desk.tool()
    await desk.work_off(lambda batch: Compressed(observations=(_captured(batch, facts=()),)))
    (only,) = (await stated.search("payment worker")).results
    assert (only.id, only.similar) == (number, 1)
    await desk.tool(at_ms=100_000)
    await desk.work_off(lambda batch: Compressed(observations=(_captured(batch, facts=("so the till is closed",)),)))
    best, *_ = (await stated.search("payment worker attempts queue")).results
    assert best.id == number


def _captured(batch: Batch, facts: tuple[str, ...]) -> ObservationDraft:
    return ObservationDraft(type="discovery", title=TEXT, facts=facts, message_ids=(batch.messages[0].message_id,))


@pytest.mark.parametrize("order", ["relevance", "date_desc", "date_asc"])
async def test_paging_through_groups_repeats_nothing_and_misses_nothing(stated: Stated, order: str) -> None:
    for number in range(60):
        text = TEXT if number % 3 else f"the payment worker moved to shelf {number}"
        await stated.remember(f"{text} {'again ' * (number % 2)}", created_at_epoch=T0 + number)
    for number in range(30):
        await stated.remember(f"payment number {number} is {TEXT}", created_at_epoch=T0 + number)
    seen: list[int] = []
    total = (await stated.search("payment", limit=1)).total
    for offset in range(0, total, 7):
        page = await stated.search("payment", limit=7, offset=offset, orderBy=order)
        seen += [row for hit in page.results for row in (hit.id, *hit.similar_ids)]
    assert len(seen) == len(set(seen))
    (count,) = await stated.rows("SELECT count(*) FROM observations")
    assert len(seen) == count[0]
