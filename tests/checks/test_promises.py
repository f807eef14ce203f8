"""The check of the promises finds a test that is not there."""

import promises
import pytest


@pytest.mark.parametrize(
    "test, expected",
    [
        ("tests/a_test.cc::Suite.Case", []),
        ("tests/test_b.py::test_it", []),
        ("tests/a_test.cc::Suite.Other", ["P1 names a test that is not there"]),
        ("tests/test_b.py::test_i", ["P1 names a test that is not there"]),
        ("tests/absent.py::test_it", ["P1 names a test that is not there"]),
    ],
)
def test_promises(tmp_path, test, expected):
    files = {
        "tests/a_test.cc": "TEST_F(Suite, Case) {}\n",
        "tests/test_b.py": "def test_it():\n    pass\n",
        "tests/promises/promises.toml": f"""[[section]]
title = "T"
[[section.promise]]
id = "P1"
promise = "p"
figure = "f"
tests = ["{test}"]
measured = "{{drills[lost]}}"
""",
        "tests/promises/results/drills.json": """{"lost": 0, "by_fault": {"kill": 1}, "commit": "c", "date": "d",
 "drills": 1}""",
        "docs/promises.md": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = promises.check(tmp_path)[0]
    assert "is not what" in found[-1]
    (tmp_path / "docs/promises.md").write_text(promises.make_page.write(tmp_path))
    found = promises.check(tmp_path)[0]
    assert [problem.split(": ", 1)[1][: len(e)] for problem, e in zip(found, expected, strict=True)] == expected
