"""plant_bugs.py plants bugs in a copy, and refuses those that do not apply."""

import plant_bugs
import pytest

TEXT = "int Half(int n) {\n  return n / 2;\n}\n"


def make_bug(**fields):
    bug = {"name": "half-is-third", "breaks": "G1", "file": "half.cc", "table": "t.toml"}
    return {**bug, "before": "n / 2", "after": "n / (BUG ? 3 : 2)", **fields}


def test_a_bug_replaces_its_text_and_asks_its_switch():
    planted = plant_bugs.plant(TEXT, [make_bug()])
    assert 'return n / (PENSTOCK_MUTANT("half-is-third") ? 3 : 2);' in planted
    assert planted.startswith(f'#include "{plant_bugs.SWITCH_HEADER}"\n')


def test_white_space_may_differ():
    assert "PENSTOCK_MUTANT" in plant_bugs.plant(TEXT, [make_bug(before="{ return n / 2;", after="{ BUG;")])


def test_a_file_without_bugs_is_copied_as_it_is():
    assert plant_bugs.plant(TEXT, []) == TEXT


@pytest.mark.parametrize(("before", "count"), [("n / 4", 0), ("n", 5)])
def test_a_text_that_does_not_occur_exactly_once_is_refused(before, count):
    with pytest.raises(plant_bugs.BadBug, match=f"half-is-third does not apply.* {count} times"):
        plant_bugs.plant(TEXT, [make_bug(before=before)])


def test_texts_that_overlap_are_refused():
    other = make_bug(name="other", before="return n / 2", after="return BUG")
    with pytest.raises(plant_bugs.BadBug, match="overlaps"):
        plant_bugs.plant(TEXT, [make_bug(), other])


def test_a_table_without_a_switch_is_refused(tmp_path):
    table = tmp_path / "t.toml"
    table.write_text("[[bug]]\nname = 'a'\nbreaks = 'G1'\nfile = 'f'\nbefore = 'x'\nafter = 'y'\n")
    with pytest.raises(plant_bugs.BadBug, match="never asks for BUG"):
        plant_bugs.read_bugs([table])
