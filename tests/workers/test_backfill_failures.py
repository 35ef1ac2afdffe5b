"""The backfill when something fails: a text, a document, the embedder, the index as a whole."""

from service import watermarks
from tests.workers import records
from tests.workers.backfill_bench import Bench

# -- gaps


async def test_a_poisoned_text_is_a_gap_and_costs_its_neighbours_nothing(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "one"))
    await bench.write(lambda tx: records.observation(tx, "two", "", ["poison", "a fact"]))
    await bench.write(lambda tx: records.observation(tx, "three"))
    await bench.settle()
    assert bench.ids() == {"obs_1_narrative", "obs_2_narrative", "obs_2_fact_1", "obs_3_narrative"}
    report = await bench.report()
    assert (report["lag"], report["gaps"], report["given_up"], report["failing"]) == (0, 1, 0, None)
    assert await bench.write(lambda tx: tx.value("SELECT error FROM gaps")) == "this text is poisoned"


async def test_a_gap_is_tried_again_after_a_minute_and_heals(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "poison", "", ["a fact"]))
    await bench.settle()
    bench.vectors.poison = "nothing"
    await bench.minutes_later(0.9)
    assert (await bench.report())["gaps"] == 1
    await bench.minutes_later(0.2)
    assert (await bench.report())["gaps"] == 0
    assert bench.ids() == {"obs_1_narrative", "obs_1_fact_0"}
    assert bench.times_embedded("a fact") == 1


async def test_a_hopeless_record_is_given_up_after_ten_tries_until_somebody_asks(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "poison"))
    await bench.settle()
    for _ in range(20):
        await bench.minutes_later(7 * 60)
    calls = [size for size in bench.vectors.texts_per_call if size]
    assert len(calls) == 2 * watermarks.ATTEMPTS  # each with a look whether anything can be embedded
    assert (await bench.report())["given_up"] == 1
    bench.vectors.poison = "nothing"
    await bench.write(lambda tx: tx.run(watermarks.TRY_AGAIN, {"now": bench.now}))
    await bench.settle()
    assert (await bench.report())["gaps"] == 0


async def test_a_change_gives_a_record_that_was_given_up_another_chance(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "poison"))
    for _ in range(20):
        await bench.minutes_later(7 * 60)
    await bench.write(lambda tx: records.edit(tx, 1, "sound"))
    await bench.settle()
    assert (await bench.report())["gaps"] == 0
    assert bench.ids() == {"obs_1_narrative"}


async def test_a_deleted_record_leaves_no_gap(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "poison"))
    await bench.settle()
    await bench.write(lambda tx: records.delete(tx, 1))
    await bench.settle()
    assert (await bench.report())["gaps"] == 0


async def test_of_an_edited_text_that_fails_the_old_document_does_not_stay(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "sound"))
    await bench.settle()
    await bench.write(lambda tx: records.edit(tx, 1, "poison"))
    await bench.settle()
    assert bench.ids() == set()
    assert await bench.write(lambda tx: tx.value("SELECT count(*) FROM embeddings")) == 0


async def test_a_refused_document_is_a_gap_and_not_embedded_again(bench: Bench) -> None:
    bench.vectors.refused = {"obs_1_narrative"}
    await bench.write(lambda tx: records.observation(tx, "t"))
    await bench.settle()
    assert (await bench.report())["gaps"] == 1
    bench.vectors.refused = set()
    await bench.minutes_later(1.1)
    assert bench.ids() == {"obs_1_narrative"}
    assert bench.times_embedded("t") == 1


async def test_texts_that_stop_the_embedder_are_found_and_cost_their_neighbours_nothing(bench: Bench) -> None:
    texts = ["one", "lethal a", "two", "three", "lethal b", "four"]
    await bench.write(lambda tx: [records.observation(tx, text) for text in texts])
    for _ in range(20):
        await bench.minutes_later(0.5)
    assert bench.ids() == {f"obs_{n}_narrative" for n in (1, 3, 4, 6)}
    assert await bench.write(lambda tx: [row[0] for row in tx.all("SELECT record_id FROM gaps")]) == [2, 5]
    assert {bench.times_embedded(text) for text in texts if "lethal" not in text} == {1}


# -- the index as a whole


async def test_while_the_index_is_away_nothing_moves_and_its_own_words_are_told(bench: Bench) -> None:
    bench.vectors.away = "the disk is full; free some space"
    await bench.write(lambda tx: records.observation(tx, "t"))
    await bench.settle()
    report = await bench.report()
    assert (report["lag"], report["gaps"]) == (1, 0)
    assert report["failing"]["last_error"] == "the disk is full; free some space"
    assert not report["failing"]["broken"]
    bench.vectors.away = ""
    await bench.minutes_later(0.1)
    assert await bench.report() == {"in_use": True, "lag": 0, "gaps": 0, "given_up": 0, "failing": None}


async def test_an_index_that_stays_away_is_asked_once_a_minute_at_most(bench: Bench) -> None:
    bench.vectors.away = "gone"
    await bench.write(lambda tx: records.observation(tx, "t"))
    for _ in range(3_600):
        bench.now += 1_000
        await bench.backfill.tick()
    assert len(bench.vectors.calls) < 70
    assert (await bench.report())["failing"]["broken"]


async def test_an_embedder_that_fails_at_everything_leaves_no_gap_and_is_seldom_asked(bench: Bench) -> None:
    bench.vectors.embeds_nothing = True
    await bench.write(lambda tx: [records.observation(tx, f"record {n}") for n in range(50)])
    for _ in range(20):
        await bench.minutes_later(0.1)
    report = await bench.report()
    assert (report["lag"], report["gaps"]) == (50, 0)
    assert report["failing"]["broken"]
    assert "no memory" in report["failing"]["last_error"]
    assert len(bench.vectors.texts_per_call) < 20
    bench.vectors.embeds_nothing = False
    await bench.minutes_later(2)
    assert len(bench.ids()) == 50
    assert (await bench.report())["failing"] is None


async def test_trouble_that_is_over_is_forgotten_though_nothing_changed(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t"))
    await bench.settle()
    bench.vectors.away = "gone"
    await bench.minutes_later(2)
    assert (await bench.report())["failing"]
    bench.vectors.away = ""
    await bench.minutes_later(2)
    assert (await bench.report())["failing"] is None


async def test_subscribers_hear_when_the_index_breaks_and_when_it_works_again(bench: Bench) -> None:
    bench.vectors.away = "gone"
    await bench.write(lambda tx: records.observation(tx, "t"))
    for _ in range(6):
        await bench.minutes_later(1)
    bench.vectors.away = ""
    await bench.minutes_later(2)
    told = await bench.write(lambda tx: [row[0] for row in tx.all("SELECT data FROM outbox WHERE event = 'health'")])
    assert len(told) == 2
    assert "gone" in told[0]
    assert "works again" in told[1]
