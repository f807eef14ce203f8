"""The same files give the same bytes, whatever their dates, order and modes are."""

import hashlib
import os
import pathlib
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PARTS = REPOSITORY / "deploy" / "packages"
FILES = {"bin/penstock-launcher": 0o755, "lib/libone.so": 0o644, "share/doc/penstock/LICENSE": 0o644}


def make_tree(folder, names, date, extra_mode):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(FILES[name] | extra_mode)
        os.utime(path, (date, date))
    (folder / "bin" / "text-generation-launcher").symlink_to("penstock-launcher")
    return folder


@pytest.mark.parametrize("script,last", [("wheel.py", "out"), ("image.py", "out/image.tar")])
def test_a_package_does_not_depend_on_dates_order_and_modes(tmp_path, script, last):
    if script == "image.py" and not pathlib.Path("/etc/ssl/certs/ca-certificates.crt").exists():
        pytest.skip("ca-certificates is not installed")
    digests = []
    for place, names, date, extra in (("a", list(FILES), 1, 0), ("b", reversed(FILES), 10**9, 0o020)):
        tree = make_tree(tmp_path / place / "tree", names, date, extra)
        out = tmp_path / place / last
        subprocess.run([sys.executable, PARTS / script, tree, out, "1.2.3"], check=True, timeout=300,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}, capture_output=True)
        [file] = [path for path in (tmp_path / place / "out").iterdir()]
        digests.append(hashlib.sha256(file.read_bytes()).hexdigest())
    assert digests[0] == digests[1]


def test_two_runs_give_the_same_packages(packages, make_packages):
    def digests(files):
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    first = digests(packages)
    assert len(first) == 4
    assert digests(make_packages()) == first


def test_no_program_holds_the_path_of_its_builder(package, tmp_path):
    subprocess.run(["tar", "-xzf", package(".tar.gz"), "-C", tmp_path], check=True, timeout=300)
    cargo = os.environ.get("CARGO_HOME") or str(pathlib.Path.home() / ".cargo")
    for program in tmp_path.glob("*/bin/*"):
        content = program.read_bytes()
        for path in (str(REPOSITORY), cargo):
            assert path.encode() not in content, f"{program.name} holds {path}"
