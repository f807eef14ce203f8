"""The router's memory stays below what it says at start; tests/bench/soak.py is the long form."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from soak import soak  # noqa: E402


def test_the_bound_holds_for_a_moment():
    report = soak(2, 16, 8, payload=1 << 17)
    assert report["healthy"] and report["within_bound"], report
    assert report["sent"]["large"] > 0 and report["sent"]["crowd"]["events"] > 0
    # A bound far away from the truth would prove nothing: what the load takes is a part of it.
    assert report["peak_mib"] > report["start_mib"], report
