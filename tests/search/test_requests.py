"""The rules of the parameters, the same for HTTP and the command line."""

from datetime import datetime

import pytest

from service.errors import InvalidInput
from service.searching.request import Kind, Order, SearchQuery, search_query

NOON = datetime.fromisoformat("2026-03-01T12:00").timestamp() * 1000


def test_nothing_given_lists_twenty_observations() -> None:
    assert search_query({}) == SearchQuery(query="", kinds=(Kind.OBSERVATION,), limit=20, offset=0)
    assert search_query({"query": None, "limit": "", "project": None}) == search_query({})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("limit", value) for value in ("0", "101", "-1", "1.5", "ten", "1e1", "²", "٣", "9" * 5000, 0, 101)),
        *(("offset", value) for value in ("-1", "x", "1000001", "9" * 30)),
        *(("type", value) for value in ("observation", "ALL", "all,prompts", " all")),
        *(("obs_type", value) for value in ("bug", "bugfix,bug", "Bugfix")),
        *(("orderBy", value) for value in ("date", "DATE_DESC", "title")),
        *(("dateStart", value) for value in ("yesterday", "2026-13-01", "2026-02-30", "12:00", "9" * 400, "-")),
        *(("dateEnd", value) for value in ("tomorrow", "99999-01-01", "2026-01-01T25:00", "9999-12-31x", "\0")),
    ],
)
def test_an_impossible_value_is_refused_and_named(field: str, value: str | int) -> None:
    with pytest.raises(InvalidInput) as caught:
        search_query({field: value})
    assert (caught.value.field, caught.value.status) == (field, 422)


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        search_query({"dateStart": "2026-03-02", "dateEnd": "2026-03-01"})
    assert caught.value.field == "dateStart"


def test_a_date_alone_means_the_whole_local_day() -> None:
    found = search_query({"dateStart": "2026-03-01", "dateEnd": "2026-03-01"})
    assert found.start_epoch == datetime.fromisoformat("2026-03-01").timestamp() * 1000
    assert found.end_epoch == datetime.fromisoformat("2026-03-02").timestamp() * 1000 - 1


@pytest.mark.parametrize("given", ["2026-03-01T12:00", "2026-03-01 12:00:00", f"{NOON:.0f}", f"{NOON / 1000:.0f}"])
def test_a_time_without_an_offset_is_local_and_numbers_are_milliseconds_or_seconds(given: str) -> None:
    assert search_query({"dateEnd": given}).end_epoch == NOON


@pytest.mark.parametrize("given", ["2026-03-01T12:00:00+02:00", "2026-03-01T12:00:00 02:00", "2026-03-01T10:00:00Z"])
def test_an_offset_is_obeyed_even_when_a_query_string_made_a_blank_of_its_plus(given: str) -> None:
    assert search_query({"dateStart": given}).start_epoch == 1_772_359_200_000


def test_lists_are_separated_by_commas() -> None:
    found = search_query({"obs_type": "bugfix, feature", "concepts": "a,,b,a", "files": "x.go, y/z.go "})
    assert (found.obs_types, found.concepts) == (("bugfix", "feature"), ("a", "b"))
    assert found.files == ("x.go", "y/z.go")


def test_order_and_type_are_read() -> None:
    found = search_query({"type": "all", "orderBy": "date_asc"})
    assert (found.kinds, found.order) == ((Kind.OBSERVATION, Kind.SUMMARY, Kind.PROMPT), Order.DATE_ASC)
