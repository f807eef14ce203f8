"""A log recorded from a live router replays byte-identically, whatever built the core."""

import json
import os
import pathlib
import re
import subprocess
import threading

import pytest

from penstock_testing import BIN, REPOSITORY

# Built by tests/run from the same sources with clang 19 and libc++.
CLANG_BIN = pathlib.Path(os.environ.get("PENSTOCK_CLANG_BUILD_DIR",
                                        REPOSITORY / "build-clang")) / "bin"


def offers_preemption():
    text = subprocess.run([BIN / "penstock-router", "--help=all"], capture_output=True, text=True)
    return "optimistic" in text.stdout


def replay(program, log, outputs):
    done = subprocess.run([program, "run", log, "--outputs", outputs], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = {what: int(count) for count, what in re.findall(
        r"(\d+) (input|output|plan|token|cancel|preemption|calibration sample)", done.stdout)}
    return numbers, done.stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The log of two replica groups of two ranks under load, with cancels and preemptions."""
    from penstock_testing import DEMO_MODEL, Server
    admission = "optimistic" if offers_preemption() else "guaranteed"
    log = tmp_path_factory.mktemp("record") / "inputs.log"
    with Server("--shard-program", BIN / "penstock-simshard", "--num-shard", "2",
                "--num-replicas", "2", "--step-time", "1ms", "--blocks", "48",
                "--admission", admission, "--record", log, model=DEMO_MODEL) as server:
        def read(number):
            stream = server.generate_stream(f"story number {number}", max_new_tokens=300)
            for count, _ in enumerate(stream):
                if number % 4 == 0 and count == 30:
                    break
            stream.close()

        readers = [threading.Thread(target=read, args=(i,)) for i in range(24)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(100)
        assert server.generate("and the last", max_new_tokens=5)["generated_text"]
        for _ in range(20):
            server.generate("too long", max_new_tokens=1000, expect=422)
    return log


def test_a_live_record_replays_byte_for_byte(recorded, tmp_path):
    numbers, text = replay(BIN / "penstock-replay", recorded, tmp_path / "outputs")
    assert "the same outputs, byte for byte; all guarantees hold" in text
    assert numbers["output"] == numbers["input"] > 1000
    assert 6 <= numbers["cancel"] <= 12, "only the requests of clients that left"
    assert numbers["preemption"] > 0 or not offers_preemption()
    assert numbers["calibration sample"] > 0
    assert numbers["token"] > 18 * 300


@pytest.fixture
def other_build():
    """Runs penstock_sim_outputs of the second build and returns the bytes that it writes."""
    program = CLANG_BIN / "penstock_sim_outputs"
    if not program.exists():
        pytest.skip(f"no second build in {CLANG_BIN.parent.name} (tests/run makes it)")
    return lambda *arguments: written_by(program, *arguments)


def written_by(*command):
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_another_compiler_and_library_give_the_same_bytes(recorded, other_build, tmp_path):
    replay(BIN / "penstock-replay", recorded, tmp_path / "ours")
    ours = (tmp_path / "ours").read_bytes()
    assert len(ours) > 100_000
    assert ours == other_build(recorded)


def test_another_compiler_and_library_simulate_the_same_runs(other_build):
    ours = written_by(BIN / "penstock_sim_outputs", "1", "1000")
    assert len(ours) > 5_000_000
    assert ours == other_build("1", "1000")


def test_a_log_of_another_version_is_refused_with_its_version(recorded, tmp_path):
    old = tmp_path / "old.log"
    old.write_bytes(b"penstock input log 1\n" + recorded.read_bytes()[21:])
    done = subprocess.run([BIN / "penstock-replay", "run", old], capture_output=True, text=True)
    assert done.returncode == 2
    assert "an input log of version 1; this program reads version" in done.stderr


def test_a_run_of_a_log_that_fails_ends_with_1(recorded, tmp_path):
    """2 is for what cannot be run at all."""
    whole = recorded.read_bytes()
    cut = tmp_path / "cut.log"
    cut.write_bytes(whole[:-1])
    done = subprocess.run([BIN / "penstock-replay", "run", cut], capture_output=True, text=True)
    assert done.returncode == 1 and "the log is cut off" in done.stderr
    assert subprocess.run([BIN / "penstock-replay", "run", recorded], capture_output=True).returncode == 0


@pytest.mark.parametrize("command", ["run", "lengths", "what-if"])
@pytest.mark.parametrize("contents", [b"", b"text"])
def test_a_file_that_is_no_log_is_refused_with_the_line_that_it_needs(contents, command, tmp_path):
    file = tmp_path / "a.log"
    file.write_bytes(contents)
    done = subprocess.run([BIN / "penstock-replay", command, file], capture_output=True, text=True)
    assert done.returncode == 2
    assert "not an input log (it must begin with `penstock input log" in done.stderr


def what_if(*words):
    return subprocess.run([BIN / "penstock-replay", "what-if", *words], capture_output=True,
                          text=True, timeout=120)


def test_what_if_answers_for_a_live_record(recorded, tmp_path):
    """A third group takes requests from the queue; the recorded column is that of the log."""
    done = what_if(recorded, "--num-replicas", "4", "--json", tmp_path / "figures.json",
                   "--page", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "--num-replicas 4" in done.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert list(figures) == ["recorded", "simulated", "what if"]
    assert figures["recorded"]["requests"] == figures["what if"]["requests"] >= 25
    assert figures["what if"]["end_to_end_ms"]["p90"] < figures["recorded"]["end_to_end_ms"]["p90"]
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_what_if_explains_a_request(recorded):
    done = what_if(recorded, "--explain", "1")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^end to end +[\d.]+ ms$", done.stdout, re.MULTILINE)
    assert "--num-replicas 3" in done.stdout


def test_what_if_names_a_request_that_is_not_there(recorded):
    done = what_if(recorded, "--explain", "999999")
    assert done.returncode == 2 and "--explain 999999" in done.stderr


def test_what_if_refuses_another_file(tmp_path):
    other = tmp_path / "other"
    other.write_text("no log\n")
    done = what_if(other)
    assert done.returncode == 2 and str(other) in done.stderr
