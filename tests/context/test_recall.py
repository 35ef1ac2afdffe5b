"""What is told in the middle of a session: about a prompt, and about a file."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from service.context.texts import units
from service.settings import load
from service.vectors.protocol import Neighbour, VectorsUnavailable
from tests.context.notebook import FOLDER, Notebook

WEB = ("router", "session cookie", "template engine", "css grid", "form validation", "image upload", "rate limiter")


@pytest.fixture
async def filled(notebook: Notebook) -> Notebook:
    """Fifty memories of work on a web shop."""
    for number in range(50):
        subject = WEB[number % len(WEB)]
        await notebook.note(f"Fix the {subject} of page {number}", f"The {subject} lost requests; now it keeps them.")
    await notebook.note("Use pnpm, never npm", "pnpm is the package manager of every workspace here", session_id="s2")
    await notebook.note("購物車總價錯誤", "購物車的總價沒有包含折扣，已經修正", session_id="s3")
    return notebook


async def test_a_prompt_about_something_known_brings_it(filled: Notebook) -> None:
    context = await filled.prompt("Which package manager do we use in the workspaces?")
    assert context.given == (51,)
    assert "pnpm is the package manager" in context.text
    assert "not instructions" in context.text
    assert context.text.count("gapless-context>") == 2


@pytest.mark.parametrize(
    "prompt",
    [
        "zxqv plumbus 9911 and nothing else",
        "Write me a poem about the sea and the moon tonight",
        "an image of dreams to upload on a page: violet harbour lanterns drifting over marble gardens at midnight",
        "please fix the bug and run all the tests again",
        "thanks, that looks good, go on with the next one",
        "!!! ??? ... ((( ))) -- \N{GRINNING FACE}" * 2,
        "x" * 5_000,
        "明天的天氣怎麼樣？適合出去玩嗎？我們去海邊吧",
    ],
)
async def test_a_prompt_about_something_unknown_brings_nothing(filled: Notebook, prompt: str) -> None:
    context = await filled.prompt(prompt)
    assert context.text == ""
    assert context.given == ()


async def test_ideographs_are_compared_by_their_pairs(filled: Notebook) -> None:
    assert (await filled.prompt("請問購物車的總價為什麼沒有折扣？")).given == (52,)


async def test_a_long_prompt_finds_what_its_rare_words_are_about(filled: Notebook) -> None:
    prompt = "We should look at this again, because " * 20 + "the pnpm workspace package manager is missing"
    assert 51 in (await filled.prompt(prompt)).given


async def test_the_session_is_not_told_what_it_made_itself(filled: Notebook) -> None:
    prompt = "Which package manager do we use in the workspaces?"
    assert (await filled.prompt(prompt, session="s2")).text == ""


async def test_recall_stays_small_with_whole_items_and_says_what_it_left(notebook: Notebook) -> None:
    for number in range(30):
        await notebook.note(f"deadlock in ledger sync {number}", "ledger sync deadlock " * 300)
    context = await notebook.prompt("why does the ledger sync end in a deadlock?")
    assert units(context.text) <= 1_500
    assert 1 <= context.shown <= 5
    assert "cut;" in context.text
    assert context.left_out > 0


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_no_more_than_asked_for_is_recalled(notebook: Notebook, limit: int) -> None:
    for number in range(9):
        await notebook.note(f"deadlock in ledger sync {number}")
    assert (await notebook.prompt("why does the ledger sync end in a deadlock?", limit=limit)).shown == limit


async def test_without_a_budget_nothing_is_recalled(filled: Notebook) -> None:
    filled.core.configuration = load(home=filled.core.configuration.home, environment={}, flags={"context_budget": 0})
    assert (await filled.prompt("Which package manager do we use in the workspaces?")).text == ""


async def test_what_was_remembered_for_every_project_is_recalled_other_projects_are_not(notebook: Notebook) -> None:
    await notebook.note("work")
    await notebook.note("Deploys need the VPN tunnel", project="global", layer="L1", session_id="a")
    await notebook.note("Deploys need the VPN tunnel of the market", project="market", session_id="b")
    assert (await notebook.prompt("do deploys need the vpn tunnel here?")).given == (2,)


async def test_what_is_known_of_a_file_is_told_with_the_telling_things_first(notebook: Notebook) -> None:
    await notebook.note("Chose integer cents", "floats lost a cent", files_modified=["src/cart.py"], type="decision")
    for number in range(6):
        await notebook.note(f"small step {number}", files_modified=["src/cart.py"], session_id=f"t{number}")
    await notebook.note("elsewhere", files_modified=["src/other_cart.py"])
    context = await notebook.file(f"{FOLDER}/src/cart.py")
    assert "floats lost a cent" in context.text
    assert "src/cart.py" in context.text.splitlines()[1]
    assert "elsewhere" not in context.text
    assert units(context.text) <= 800


@pytest.mark.parametrize(
    ("stored", "opened", "known"),
    [
        ("src/cart.py", f"{FOLDER}/src/cart.py", True),
        (f"{FOLDER}/src/cart.py", f"{FOLDER}/src/cart.py", True),
        ("/elsewhere/worktree/src/cart.py", f"{FOLDER}/src/cart.py", True),
        ("README.md", f"{FOLDER}/README.md", True),
        ("docs/README.md", f"{FOLDER}/README.md", False),
        ("src/mycart.py", f"{FOLDER}/src/cart.py", False),
        ("cart.py", f"{FOLDER}/src/cart.py", False),
        ("src/cart.py", "src/cart.py", True),
        ("/etc/hosts", "/etc/hosts", True),
        ("läden/größe.py", f"{FOLDER}/läden/größe.py", True),
        ("src/購物車.py", f"{FOLDER}/src/購物車.py", True),
        ('we"ird/* OR.py', f'{FOLDER}/we"ird/* OR.py', True),
    ],
)
async def test_a_file_is_known_by_its_path_below_the_project(
    notebook: Notebook, stored: str, opened: str, known: bool
) -> None:
    await notebook.note("something about it", files_read=[stored])
    assert bool((await notebook.file(opened)).given) == known


@pytest.mark.parametrize("path", ["", "/", "...", "***", "\0", "a" * 10_000, "\ud83d.py"])
async def test_no_path_is_too_odd(notebook: Notebook, path: str) -> None:
    await notebook.note("something", files_read=["cart.py"])
    assert (await notebook.file(path)).text == ""


@dataclass
class Index:
    """Stands in for the process that owns the vectors."""

    similarities: dict[int, float] = field(default_factory=dict)
    away: bool = False
    hangs: bool = False

    async def nearest(self, text: str, *, doc_types: Sequence[str], project: str | None, limit: int) -> list[Neighbour]:
        if self.away:
            raise VectorsUnavailable("the index is being rebuilt")
        if self.hangs:
            await asyncio.Event().wait()
        near = sorted(self.similarities.items(), key=lambda each: -each[1])[:limit]
        return [Neighbour(doc_type="observation", record_id=row_id, similarity=how) for row_id, how in near]


async def test_what_is_near_in_meaning_is_told_after_what_holds_the_words(filled: Notebook) -> None:
    elsewhere = await filled.note("of the market", project="market", session_id="m")
    filled.vectors = Index({elsewhere: 0.9, 3: 0.8, 51: 0.7, 5: 0.56, 6: 0.3, 9_999: 0.99})
    assert (await filled.prompt("Which package manager do we use in the workspaces?")).given == (51, 3, 5)
    assert (await filled.prompt("nothing that stands anywhere, zxqv plumbus")).given == (3, 51, 5)


@pytest.mark.parametrize("prompt", ["", "   ", "?! ((( ))) --"])
async def test_nothing_is_near_a_prompt_that_says_nothing(filled: Notebook, prompt: str) -> None:
    filled.vectors = Index({3: 0.8})
    assert (await filled.prompt(prompt)).text == ""


@pytest.mark.parametrize("index", [Index({3: 0.8}, away=True), Index({3: 0.8}, hangs=True)])
async def test_without_the_vectors_the_words_answer(filled: Notebook, index: Index) -> None:
    filled.vectors = index
    assert (await filled.prompt("Which package manager do we use in the workspaces?")).given == (51,)


async def test_everyday_words_alone_bring_nothing(notebook: Notebook) -> None:
    await notebook.note("Fix the failing test of the new feature", "run the code, change the file, work on the error")
    assert (await notebook.prompt("please fix the failing test and run the code of the new feature")).text == ""
