"""The text of the demo, for results that are made up so that every verdict occurs."""

from examples.demo.output import describe_story
from examples.demo.story import (
    BOOSTING,
    BOOSTING_CORRECTED,
    OURS,
    OURS_CORRECTED,
    RIDGE,
    SPAR,
    UNADAPTED,
    Claim,
    Story,
)

ERRORS = {RIDGE: 5.0, BOOSTING: 9.0, SPAR: 0.5, UNADAPTED: 4.0, OURS: 6.0, OURS_CORRECTED: 3.0, BOOSTING_CORRECTED: 9.9}
FORECAST = {"expected": 2.0, "low": 1.0, "high": 8.0}


def make_story():
    claims = [Claim(name, 0, FORECAST, error) for name, error in ERRORS.items()]
    return Story(
        n_source=100,
        n_target=50,
        n_columns=7,
        fast_source=3,
        fast_target=40,
        longest_fast_source=0.083,
        auc=0.9,
        effect_before=12.3,
        effect_after=4.5,
        labelled=tuple(f"Ohio {year}" for year in range(1996, 2006)),
        n_scored=40,
        claims=tuple(claims),
        predictions={},
    )


def test_the_text_of_the_demo(golden):
    text = "\n\n".join(describe_story(make_story()))
    golden("demo", text)
    assert max(map(len, text.splitlines())) <= 80


def test_a_claim_holds_only_if_the_interval_contains_the_error():
    story = make_story()
    assert {claim.model for claim in story.claims if not claim.holds} == {BOOSTING, SPAR, BOOSTING_CORRECTED}
    for error in (1.0, 8.0):  # the ends belong to the interval
        assert Claim("any", 0, FORECAST, error).holds
