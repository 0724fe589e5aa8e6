"""What gpubench costs, in ratios that hold on any machine."""

import overhead
import pytest


@pytest.fixture(scope="module")
def ratios():
    return dict(overhead.host_ratios())


def test_every_ratio_has_a_limit(ratios):
    assert ratios.keys() == overhead.LIMITS.keys()


@pytest.mark.parametrize("what", overhead.LIMITS)
def test_nothing_costs_more_than_it_may(ratios, what):
    assert ratios[what] < overhead.LIMITS[what]
