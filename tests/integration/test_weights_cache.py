"""--weights-cache: the files of a start are used by the next one; unusable folders."""

from penstock_testing import Server


def tokens(server):
    details = server.generate("Once upon a time", max_new_tokens=8)["details"]
    return [token["id"] for token in details["tokens"]]


def test_a_second_start_uses_the_cache_of_the_first(tmp_path):
    folder = tmp_path / "kept"
    options = ("--dtype", "bfloat16", "--weights-cache", folder)
    with Server(*options) as server:
        expected = tokens(server)
        server.wait_said("weights cache: .* written to", 60)
    with Server(*options) as server:
        assert tokens(server) == expected
        server.wait_said(f"weights: .* from {folder}", 60)
    assert sorted(path.suffix for path in folder.iterdir()) == [".packed", ".warmup"]


def test_a_file_instead_of_the_folder_is_reported_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    with Server("--weights-cache", file) as server:
        assert len(tokens(server)) == 8
    warnings = [line for line in server.lines if " warning " in line]
    assert len(warnings) == 1, warnings
    assert warnings[0].endswith("nothing is kept") and str(file) in warnings[0]
    assert file.read_text() == "not a folder"
