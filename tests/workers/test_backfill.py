"""The backfill: from records to documents of the index, tick by tick."""

from pathlib import Path

from service import liveness, watermarks
from service.core import Core
from service.documents import CLIP_CHARS
from service.settings import load
from tests.workers import records
from tests.workers.backfill_bench import Bench
from tests.workers.memory_index import vector_of
from workers import backfill

# -- what is indexed


async def test_an_observation_becomes_a_document_for_its_narrative_and_each_fact(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "Cart fixed", "It lost items.", ["a fact", "", "another"]))
    await bench.settle()
    assert bench.ids() == {"obs_1_narrative", "obs_1_fact_0", "obs_1_fact_2"}
    document = bench.vectors.documents["obs_1_narrative"]
    assert document.vector == vector_of("model-1", "Cart fixed\nIt lost items.")
    assert (document.doc_type, document.record_id, document.project) == ("observation", 1, "shop")
    assert (document.type, document.created_at_epoch) == ("change", records.T0)


async def test_at_most_eight_facts_of_a_record_are_indexed(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t", "", [f"fact number {n}" for n in range(20)]))
    await bench.settle()
    assert len(bench.ids()) == 9


async def test_summaries_and_prompts_become_a_document_each(bench: Bench) -> None:
    await bench.write(lambda tx: records.summary(tx, "make it blue", "It is blue."))
    await bench.write(lambda tx: records.prompt(tx, "why is it red?"))
    await bench.settle()
    found = {doc.doc_id: (doc.doc_type, doc.type, doc.vector) for doc in bench.vectors.documents.values()}
    assert found == {
        "summary_1": ("session_summary", "session_summary", vector_of("model-1", "make it blue\nIt is blue.")),
        "prompt_1": ("user_prompt", "prompt", vector_of("model-1", "why is it red?")),
    }


async def test_a_long_request_does_not_push_what_was_done_out_of_a_summary(bench: Bench) -> None:
    await bench.write(lambda tx: records.summary(tx, "please " * 1000, "It is blue."))
    await bench.settle()
    ((_, text),) = bench.vectors.embedded
    assert "It is blue." in text
    assert len(text) < 600


async def test_of_a_text_of_megabytes_only_the_beginning_is_read(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t", "long " * 1_000_000))
    await bench.settle()
    ((_, text),) = bench.vectors.embedded
    assert len(text) == CLIP_CHARS


async def test_a_record_that_says_nothing_holds_nobody_up(bench: Bench) -> None:
    await bench.write(lambda tx: (records.observation(tx, ""), records.observation(tx, "said")))
    await bench.settle()
    assert bench.ids() == {"obs_2_narrative"}
    assert (await bench.report())["lag"] == 0


async def test_an_empty_memory_starts_no_index(bench: Bench) -> None:
    await bench.settle()
    assert bench.vectors.calls == []


# -- edits and deletes


async def test_an_edit_reaches_the_index_and_embeds_only_what_is_new(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "old", "", ["kept", "lost"]))
    await bench.settle()
    await bench.write(lambda tx: records.edit(tx, 1, "new", "", ["kept"]))
    await bench.settle()
    assert bench.ids() == {"obs_1_narrative", "obs_1_fact_0"}
    assert bench.vectors.documents["obs_1_narrative"].vector == vector_of("model-1", "new")
    assert bench.times_embedded("kept") == 1


async def test_a_record_that_moves_to_another_project_takes_its_vectors_along(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t"))
    await bench.settle()
    await bench.write(lambda tx: records.move(tx, 1, "bank"))
    await bench.settle()
    assert bench.vectors.documents["obs_1_narrative"].project == "bank"
    assert await bench.write(lambda tx: tx.value("SELECT project FROM embeddings")) == "bank"
    assert bench.times_embedded("t") == 1


async def test_a_deleted_record_leaves_no_document_and_no_vector(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t", "", ["a", "b"]))
    await bench.settle()
    await bench.write(lambda tx: records.delete(tx, 1))
    await bench.settle()
    assert bench.ids() == set()
    assert await bench.write(lambda tx: tx.value("SELECT count(*) FROM embeddings")) == 0


async def test_a_record_deleted_while_it_is_embedded_never_gets_a_vector(bench: Bench) -> None:
    stored = []

    async def delete(call: str) -> None:
        if call == "embed":
            await bench.write(lambda tx: records.delete(tx, 1))
        stored.append(await bench.write(lambda tx: tx.value("SELECT count(*) FROM embeddings")))

    await bench.write(lambda tx: records.observation(tx, "t"))
    bench.vectors.before_call = delete
    await bench.settle()
    assert set(stored) == {0}
    assert bench.ids() == set()


# -- the mark


async def test_a_hundred_changes_are_taken_at_a_time_and_few_texts_a_call(bench: Bench) -> None:
    await bench.write(lambda tx: [records.observation(tx, f"record {n}") for n in range(250)])
    await bench.backfill.tick()  # begins
    await bench.backfill.tick()
    assert (await bench.report())["lag"] == 150
    await bench.settle()
    assert max(bench.vectors.texts_per_call) <= backfill.TEXTS_PER_CALL
    assert len(bench.ids()) == 250


async def test_a_stop_ends_a_tick_between_two_calls_and_what_was_embedded_is_kept(bench: Bench) -> None:
    async def stop(call: str) -> None:
        bench.stopping = bench.stopping or call == "embed"

    await bench.write(lambda tx: [records.observation(tx, f"record {n}") for n in range(100)])
    bench.vectors.before_call = stop
    await bench.backfill.tick()
    await bench.backfill.tick()
    assert len(bench.vectors.embedded) == backfill.TEXTS_PER_CALL
    bench.stopping, bench.vectors.before_call = False, None
    await bench.settle()
    assert set(bench.vectors.embedded.values()) == {1}


async def test_an_index_that_is_lost_is_filled_again_without_embedding(bench: Bench) -> None:
    await bench.write(lambda tx: [records.observation(tx, f"record {n}") for n in range(120)])
    await bench.settle()
    bench.vectors.lose()
    await bench.minutes_later(2)
    assert len(bench.ids()) == 120
    assert set(bench.vectors.embedded.values()) == {1}


async def test_a_new_record_makes_a_lost_index_known_at_once(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "first"))
    await bench.settle()
    bench.vectors.lose()
    await bench.write(lambda tx: records.observation(tx, "second"))
    await bench.settle()
    assert bench.ids() == {"obs_1_narrative", "obs_2_narrative"}


async def test_with_a_lost_mark_a_full_index_is_made_anew_without_embedding(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t", "", ["a"]))
    await bench.settle()
    await bench.write(lambda tx: tx.run("DELETE FROM watermarks"))
    await bench.write(lambda tx: records.delete(tx, 1))
    await bench.write(lambda tx: records.observation(tx, "u"))
    await bench.settle()
    assert bench.ids() == {"obs_2_narrative"}


async def test_documents_that_vanished_without_a_word_are_noticed_at_rest(bench: Bench) -> None:
    await bench.write(lambda tx: [records.observation(tx, f"record {n}") for n in range(5)])
    await bench.settle()
    del bench.vectors.documents["obs_3_narrative"]
    await bench.minutes_later(2)
    assert len(bench.ids()) == 5


async def test_documents_that_vanish_right_after_the_index_was_made_anew_come_back_too(bench: Bench) -> None:
    await bench.write(lambda tx: [records.observation(tx, f"record {n}") for n in range(5)])
    await bench.settle()
    del bench.vectors.documents["obs_3_narrative"]
    bench.now += backfill.LOOK_AT_INDEX_MS
    while len(bench.ids()) != 5:
        await bench.backfill.tick()
    del bench.vectors.documents["obs_4_narrative"]
    for _ in range(6):
        await bench.minutes_later(2)
    assert len(bench.ids()) == 5
    assert (await bench.report())["failing"] is None


async def test_an_index_that_stays_incomplete_is_made_anew_every_ten_minutes_at_most(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t"))
    bench.vectors.miscounts = 1
    for _ in range(9):
        await bench.minutes_later(2)
    assert bench.vectors.calls.count("drop") == 3  # the first as nobody knows what it holds, two to mend it
    failing = (await bench.report())["failing"]
    assert "2 documents instead of 1" in failing["last_error"]
    await bench.write(lambda tx: records.observation(tx, "u"))
    await bench.minutes_later(2)
    assert bench.ids() == {"obs_1_narrative", "obs_2_narrative"}


async def test_another_model_makes_every_vector_anew(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t", "", ["a"]))
    await bench.settle()
    bench.vectors.model = "model-2"
    await bench.minutes_later(2)
    assert {doc.vector for doc in bench.vectors.documents.values()} == {vector_of("model-2", text) for text in "ta"}
    assert await bench.write(lambda tx: tx.value("SELECT count(*) FROM embeddings WHERE model = 'model-2'")) == 2


async def test_two_processes_take_turns(home: Path) -> None:
    (home / "run").mkdir(exist_ok=True)
    first, second = (liveness.Turn(home / "run" / "backfill.lock") for _ in range(2))
    assert first.is_mine()
    assert not second.is_mine()
    assert first.is_mine()
    first.close()
    assert second.is_mine()
    second.close()


async def test_who_has_not_the_turn_does_nothing(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t"))
    bench.backfill.is_my_turn = lambda: False
    await bench.settle()
    assert bench.vectors.calls == []


async def test_a_mark_that_another_process_moved_is_left_to_it(bench: Bench) -> None:
    async def move(call: str) -> None:
        if call == "upsert":
            await bench.write(lambda tx: tx.run("UPDATE watermarks SET seq = seq + 1"))

    await bench.write(lambda tx: [records.observation(tx, "t"), records.observation(tx, "u")])
    bench.vectors.before_call = move
    await bench.backfill.tick()
    await bench.backfill.tick()
    assert await bench.write(lambda tx: tx.value("SELECT seq FROM watermarks")) == 1


async def test_after_a_start_the_index_counts_as_behind_until_it_was_looked_at(bench: Bench) -> None:
    await bench.write(lambda tx: records.observation(tx, "t"))
    await bench.settle()
    assert (await bench.report())["lag"] == 0
    bench.vectors.lose()
    bench.vectors.away = "it starts"
    bench.backfill = bench.process()
    await bench.settle()
    assert (await bench.report())["lag"] == 1
    bench.vectors.away = ""
    await bench.minutes_later(1)
    assert (await bench.report())["lag"] == 0
    assert bench.ids() == {"obs_1_narrative"}


async def test_the_mark_does_not_move_for_an_index_that_was_swapped_under_the_write(bench: Bench) -> None:
    async def lose(call: str) -> None:
        if call == "upsert":
            bench.vectors.lose()
            bench.vectors.before_call = None

    await bench.write(lambda tx: records.observation(tx, "t"))
    await bench.backfill.tick()
    bench.vectors.before_call = lose
    await bench.backfill.tick()
    assert (await bench.report())["lag"] == 1
    await bench.settle()
    assert bench.ids() == {"obs_1_narrative"}


# -- the supervisor


async def test_with_chroma_off_nothing_is_indexed_and_switched_on_later_everything_is(bench: Bench) -> None:
    assert bench.core.vectors is None
    assert (await bench.core.queue())["index"] == watermarks.NOT_IN_USE
    await bench.write(lambda tx: [records.observation(tx, f"record {n}") for n in range(3)])
    await bench.settle()
    assert len(bench.ids()) == 3


async def test_the_queue_tells_of_the_index(home: Path) -> None:
    core = Core.open(load(home=home, environment={}))
    try:
        await core.database.write(lambda tx: records.observation(tx, "t"))
        assert (await core.queue())["index"] == {
            "in_use": True,
            "lag": 1,
            "gaps": 0,
            "given_up": 0,
            "failing": None,
        }
    finally:
        await core.close()
