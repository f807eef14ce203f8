"""--weights-cache: what a start keeps for the next one, and a folder that can keep nothing."""

from penstock_testing import Server


def tokens(server):
    details = server.generate("Once upon a time", max_new_tokens=8)["details"]
    return [token["id"] for token in details["tokens"]]


def test_a_second_start_takes_what_the_first_one_kept(tmp_path):
    folder = tmp_path / "kept"
    options = ("--dtype", "bfloat16", "--weights-cache", folder)
    with Server(*options) as server:
        expected = tokens(server)
        server.wait_said("weights cache: .* written to", 60)
    with Server(*options) as server:
        assert tokens(server) == expected
        server.wait_said(f"weights: .* from {folder}", 60)
    assert sorted(path.suffix for path in folder.iterdir()) == [".packed", ".warmup"]


def test_a_file_in_the_place_of_the_folder_is_named_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    with Server("--weights-cache", file) as server:
        assert len(tokens(server)) == 8
    warnings = [line for line in server.lines if " warning " in line]
    assert len(warnings) == 1, warnings
    assert warnings[0].endswith(f"nothing is kept. Given: {file}")
    assert file.read_text() == "not a folder"
