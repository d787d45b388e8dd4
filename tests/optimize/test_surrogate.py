"""The model of the score: where it knows, where it does not, and how it weighs noisy trials."""

from __future__ import annotations

import numpy as np
import pytest

from townhall.optimize.space import Dimension
from townhall.optimize.surrogate import Encoder, fit

SPACE = {
    "personas": Dimension("personas", "int", 1, 9),
    "rounds": Dimension("rounds", "int", 1, 4),
    "style": Dimension("style", "choice", choices=("a", "b", "c")),
}


def test_numbers_are_placed_in_their_range_and_choices_lie_apart():
    encode = Encoder(SPACE)
    points = encode([{"personas": 1, "rounds": 4, "style": "a"}, {"personas": 5, "rounds": 4, "style": "c"}])
    assert points[:, :2].tolist() == [[0, 1], [0.5, 1]]
    assert encode.groups == [0, 1, 2, 2, 2]
    assert ((points[0, 2:] - points[1, 2:]) ** 2).sum() == pytest.approx(1)


def test_a_dimension_of_one_value_has_a_place_too():
    assert Encoder({"rounds": Dimension("rounds", "int", 2, 2)})([{"rounds": 2}]).tolist() == [[0.0]]


def test_a_smooth_surface_is_learnt_from_a_few_points():
    def surface(personas, rounds):
        return 0.8 - 0.008 * (personas - 5) ** 2 - 0.03 * (rounds - 3) ** 2

    space = {name: SPACE[name] for name in ("personas", "rounds")}
    encode = Encoder(space)
    tried = [(1, 1), (9, 1), (1, 4), (9, 4), (5, 2), (3, 3), (7, 3), (5, 4)]
    points = encode([{"personas": p, "rounds": r} for p, r in tried])
    model = fit(points, encode.groups, [surface(p, r) for p, r in tried], [1e-6] * len(tried))
    everywhere = [(p, r) for p in range(1, 10) for r in range(1, 5)]
    expected, deviation = model.predict(encode([{"personas": p, "rounds": r} for p, r in everywhere]))
    errors = [abs(guess - surface(p, r)) for guess, (p, r) in zip(expected, everywhere, strict=True)]
    assert max(errors) < 0.03
    best = everywhere[int(np.argmax(expected))]
    assert surface(*best) > 0.79
    known = [everywhere.index(shape) for shape in tried]
    assert deviation[known].max() < deviation.max()


def test_a_lucky_trial_is_drawn_towards_its_neighbours():
    encode = Encoder({"personas": SPACE["personas"]})
    shapes = [{"personas": personas} for personas in range(1, 10)]
    scores = [0.5, 0.52, 0.55, 0.57, 0.6, 0.61, 0.6, 0.58, 0.55]
    scores[1] = 0.68
    model = fit(encode(shapes), encode.groups, scores, [0.24 / 40] * 9)
    expected, _ = model.predict(encode(shapes))
    assert expected[1] < 0.62
    assert int(np.argmax(expected)) + 1 in (4, 5, 6, 7)


def test_a_score_of_few_examples_counts_less():
    encode = Encoder({"personas": SPACE["personas"]})
    shapes = [{"personas": personas} for personas in (1, 3, 4, 5, 7, 9)]
    scores = [0.4, 0.5, 0.8, 0.5, 0.5, 0.4]

    def at_four(examples):
        variances = [0.25 / 200] * 6
        variances[2] = 0.25 / examples
        model = fit(encode(shapes), encode.groups, scores, variances)
        return model.predict(encode(shapes[2:3]))[0][0]

    assert at_four(6) < at_four(200) - 0.1


def test_what_is_under_way_is_taken_to_come_out_as_expected():
    encode = Encoder({"personas": SPACE["personas"]})
    shapes = [{"personas": personas} for personas in (1, 5, 9)]
    model = fit(encode(shapes), encode.groups, [0.4, 0.7, 0.5], [0.001] * 3)
    point = encode([{"personas": 7}])
    before, unsure = model.predict(point)
    after, surer = model.with_pending(point).predict(point)
    assert after == pytest.approx(before, abs=1e-6)
    assert surer < unsure
    assert model.with_pending(encode([])) is model


def test_a_flat_surface_stays_flat():
    encode = Encoder({"personas": SPACE["personas"]})
    shapes = [{"personas": personas} for personas in (1, 5, 9)]
    expected, _ = fit(encode(shapes), encode.groups, [0.5] * 3, [0.001] * 3).predict(encode([{"personas": 3}]))
    assert expected[0] == pytest.approx(0.5, abs=1e-6)
