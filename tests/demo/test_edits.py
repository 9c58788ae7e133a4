"""What each edit of a trip does and refuses, without a database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rungent.demo import edits
from rungent.demo.budget import Budget
from rungent.demo.seed import demo_trip
from rungent.demo.trip import (
    AmbiguousPlace,
    Day,
    DayNotFound,
    InvalidLeg,
    InvalidName,
    Place,
    PlaceExists,
    PlaceNotFound,
    Trip,
    TripFull,
    describe,
    known_transport,
    trip_data,
)

TRIP = Trip(
    id="t",
    title="Test",
    revision=7,
    days=(Day(1), Day(2, "train"), Day(3)),
    places=(
        Place("a", "Asakusa Temple", 1),
        Place("b", "Tokyo Tower", 1, "taxi"),
        Place("c", "Edo-Tokyo Museum", 2),
        Place("d", "Ghibli Museum", 3),
        Place("e", "Odaiba Beach"),
    ),
)


def seats(trip: Trip) -> dict[str, list[str]]:
    numbers: list[int | None] = [*(day.number for day in trip.days), None]
    return {str(n): [place.id for place in trip.places_on(n)] for n in numbers}


def test_a_place_is_found_by_name_in_any_case_or_by_a_unique_part() -> None:
    assert TRIP.find(" asakusa  TEMPLE ").id == "a"
    assert TRIP.find("tower").id == "b"


def test_an_exact_name_wins_over_longer_names_that_contain_it() -> None:
    trip = edits.add_place(TRIP, "f", "Museum", None)
    assert trip.find("museum").id == "f"


def test_an_ambiguous_or_unknown_name_is_refused_without_repeating_it() -> None:
    with pytest.raises(AmbiguousPlace) as ambiguous:
        TRIP.find("museum")
    assert ambiguous.value.candidates == ("Edo-Tokyo Museum", "Ghibli Museum")
    for name in ("canary-4711", "", "  "):
        with pytest.raises(PlaceNotFound) as unknown:
            TRIP.find(name)
        assert "canary" not in unknown.value.message


def test_a_moved_place_goes_to_the_end_of_the_day_and_loses_its_way() -> None:
    moved = edits.move_place(TRIP, "Tokyo Tower", 2)
    assert seats(moved) == {"1": ["a"], "2": ["c", "b"], "3": ["d"], "None": ["e"]}
    assert moved.find("Tokyo Tower").transport is None
    assert seats(edits.move_place(TRIP, "tower", None))["None"] == ["e", "b"]


def test_moving_a_place_to_where_it_is_changes_nothing() -> None:
    assert edits.move_place(TRIP, "Asakusa Temple", 1) == TRIP


def test_swapped_places_change_day_order_and_way() -> None:
    swapped = edits.swap_places(TRIP, "tower", "beach")
    assert seats(swapped) == {"1": ["a", "e"], "2": ["c"], "3": ["d"], "None": ["b"]}
    assert swapped.find("beach").transport == "taxi"
    assert edits.swap_places(TRIP, "tower", "Tokyo Tower") == TRIP


def test_a_removed_day_frees_its_places_and_later_days_move_up() -> None:
    removed = edits.remove_day(TRIP, 2)
    assert seats(removed) == {"1": ["a", "b"], "2": ["d"], "None": ["c", "e"]}
    assert removed.days == (Day(1), Day(2))


def test_a_removed_place_is_gone() -> None:
    assert seats(edits.remove_place(TRIP, "Asakusa Temple"))["1"] == ["b"]


def test_a_transport_of_a_day_covers_every_way_of_that_day() -> None:
    changed = edits.set_transport(TRIP, "bus", day_number=1)
    assert changed.day(1).transport == "bus"
    assert changed.find("tower").transport is None


def test_a_transport_to_a_place_is_kept_only_where_it_differs_from_the_day() -> None:
    assert (
        edits.set_transport(TRIP, "bus", to_place="Asakusa Temple").find("asa").transport == "bus"
    )
    assert edits.set_transport(TRIP, "walk", to_place="tower").find("tower").transport is None


@pytest.mark.parametrize(
    "target",
    [{}, {"day_number": 1, "to_place": "tower"}, {"to_place": "beach"}],
)
def test_a_transport_needs_one_planned_goal(target: dict[str, int | str]) -> None:
    with pytest.raises(InvalidLeg):
        edits.set_transport(TRIP, "bus", **target)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 4, -1])
def test_an_unknown_day_is_refused(number: int) -> None:
    refused: list[Callable[[], Trip]] = [
        lambda: edits.move_place(TRIP, "tower", number),
        lambda: edits.add_place(TRIP, "f", "New", number),
        lambda: edits.remove_day(TRIP, number),
        lambda: edits.set_transport(TRIP, "bus", day_number=number),
    ]
    for edit in refused:
        with pytest.raises(DayNotFound, match="the trip has 3 days"):
            edit()


def test_names_are_one_line_of_limited_length() -> None:
    assert edits.add_place(TRIP, "f", " New \n# Rules ", None).find("new # rules").id == "f"
    for name in ("", " \n ", "x" * 101):
        with pytest.raises(InvalidName):
            edits.add_place(TRIP, "f", name, None)
    with pytest.raises(InvalidName):
        edits.rename(TRIP, "x" * 201)
    assert edits.rename(TRIP, " A\tB ").title == "A B"


def test_a_second_place_of_the_same_name_is_refused() -> None:
    with pytest.raises(PlaceExists):
        edits.add_place(TRIP, "f", "tokyo TOWER", 2)


def test_a_trip_cannot_grow_without_end() -> None:
    days = replace(TRIP, days=tuple(Day(n) for n in range(1, edits.MAX_DAYS + 1)))
    with pytest.raises(TripFull):
        edits.add_day(days)
    places = replace(
        TRIP, places=tuple(Place(str(n), f"Place {n}") for n in range(edits.MAX_PLACES))
    )
    with pytest.raises(TripFull):
        edits.add_place(places, "f", "One more", None)
    assert edits.add_day(TRIP).days[-1] == Day(4)


def test_a_trip_is_described_for_a_prompt() -> None:
    assert describe(TRIP) == (
        "Trip: Test (revision 7)\n"
        "Day 1 (walk): Asakusa Temple, Tokyo Tower (by taxi)\n"
        "Day 2 (train): Edo-Tokyo Museum\n"
        "Day 3 (walk): Ghibli Museum\n"
        "Unplanned: Odaiba Beach"
    )
    assert describe(edits.set_budget(TRIP, Budget(amount=1500))).endswith("\nBudget: 1,500 JPY")
    assert describe(Trip("t", "Empty", 1)) == "Trip: Empty (revision 1)\nUnplanned: nothing"


def test_a_trip_as_json_shows_the_way_to_every_planned_place() -> None:
    data = trip_data(TRIP)
    assert data["days"][0] == {  # type: ignore[index]
        "number": 1,
        "transport": "walk",
        "places": [
            {"name": "Asakusa Temple", "transport": "walk"},
            {"name": "Tokyo Tower", "transport": "taxi"},
        ],
    }
    assert data["unplanned"] == ["Odaiba Beach"]
    assert data["budget"] is None


def test_the_demo_trip_has_two_museums_and_something_unplanned() -> None:
    trip = demo_trip()
    assert len(trip.days) == 3
    assert trip.places_on(None)
    with pytest.raises(AmbiguousPlace):
        trip.find("museum")


def test_an_unknown_transport_is_refused() -> None:
    with pytest.raises(ValueError, match="walk, train, taxi, bus"):
        known_transport("rocket")
