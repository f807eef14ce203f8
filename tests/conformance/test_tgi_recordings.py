"""All recorded exchanges of TGI's router against ours.

`python3 test_tgi_recordings.py [CONFIGURATION…] [--show GROUP]` prints the table alone.
"""

import collections
import concurrent.futures
import pathlib
import sys
import time

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / "integration"), str(pathlib.Path(__file__).parent)]

from penstock_testing import BIN, SHARED_DATA, shared_data  # noqa: E402
from tgi_differences import RULES, difference_of  # noqa: E402
from tgi_recordings import Recording, differences, fetch  # noqa: E402
from tgi_stand_in import StandIn  # noqa: E402

ALLOWED_SHARE = 0.03
PATIENCE_SECONDS = 30
OVERLOADED = "Model is overloaded"  # of a whole answer, or in a stream


def play(recording, name, shared):
    """[(exchange, differences)] of one configuration."""
    results = []
    stand_in = StandIn(recording.configurations[name], shared)
    try:
        for exchange in recording.of(name):
            stand_in.set_shards(not exchange.get("shard_down"))
            stand_in.hold(exchange.get("hold", 0))
            answer = ask(stand_in, exchange)
            results.append((exchange, differences(exchange, answer)))
    finally:
        stand_in.stop()
    return results


def ask(stand_in, exchange):
    """Retries, as clients do, if the machine is too busy to check a new grammar in time (429)."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = fetch(stand_in.port, exchange["request"])
        told_to_come_again = OVERLOADED in answer[2] and not exchange.get("hold")
        if not told_to_come_again or time.monotonic() > deadline:
            return answer


def play_all(recording, shared, names):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        played = pool.map(lambda name: play(recording, name, shared), names)
        return [result for results in played for result in results]


def table(results):
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for exchange, found in results:
        row = rows[exchange["group"]]
        row[0] += 1
        if found:
            row[1 if difference_of(exchange) else 2] += 1
    lines = [f"{'group':24} {'all':>5} {'ours':>5} {'wrong':>5}"]
    lines += [f"{group:24} {a:5} {o:5} {w:5}" for group, (a, o, w) in sorted(rows.items()) if o + w]
    total = [sum(column) for column in zip(*rows.values())]
    return "\n".join([*lines, f"{'':24} {total[0]:5} {total[1]:5} {total[2]:5}"])


@pytest.fixture(scope="module")
def results():
    if not (BIN / "penstock-simshard").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    recording = Recording(shared_data("tgi_http"))
    return play_all(recording, SHARED_DATA, list(recording.configurations))


def test_every_recorded_answer_is_ours_too(results):
    wrong = [(e["id"], found) for e, found in results
             if found and not difference_of(e)]
    text = "\n".join(f"{name}: {'; '.join(found)}" for name, found in wrong[:20])
    assert not wrong, f"{len(wrong)} exchanges differ:\n{table(results)}\n{text}"


def test_intended_differences_are_few(results):
    ours = [e["id"] for e, found in results if found and difference_of(e)]
    assert len(ours) <= ALLOWED_SHARE * len(results), f"{len(ours)} of {len(results)}"


def test_no_intended_difference_is_stale(results):
    used = {difference_of(e) for e, found in results if found}
    covered = {difference_of(e) for e, _ in results}
    assert not {name for name, _, _ in RULES} & covered - used


def main(arguments):
    show = None
    if "--show" in arguments:
        at = arguments.index("--show")
        show = arguments[at + 1]
        del arguments[at:at + 2]
    recording = Recording(SHARED_DATA / "tgi_http")
    played = play_all(recording, SHARED_DATA, arguments or list(recording.configurations))
    for exchange, found in played:
        if found and show is not None and not difference_of(exchange) and exchange["group"].startswith(show):
            request = exchange["request"]
            print(f"{exchange['id']}: {request['method']} {request['path']} "
                  f"{(request.get('body') or '')[:400]}")
            for line in found:
                print("   ", line)
    print(table(played))


if __name__ == "__main__":
    main(sys.argv[1:])
