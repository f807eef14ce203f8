"""The bundle starts in a folder of its own, and brings every library that it needs."""

import pathlib
import re
import subprocess

import pytest

from penstock_testing import BUILD, REPOSITORY, Server

# Every Linux of the supported kinds has these.
OF_THE_SYSTEM = re.compile(r"/(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv)\.so")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "unpacked"
    subprocess.run([REPOSITORY / "deploy" / "bundle", "--folder", folder], check=True,
                   env={"PATH": "/usr/bin:/bin", "PENSTOCK_BUILD_DIR": str(BUILD)}, timeout=120,
                   capture_output=True)
    return folder


def libraries_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if ".so" in line}


def test_the_demo_model_is_served_from_a_bundle_without_torch(bundle):
    with Server(launcher=bundle / "bin" / "penstock-launcher",
                model=bundle / "share" / "penstock" / "demo-model") as server:
        assert server.generate("Once upon a time", max_new_tokens=5)["generated_text"]
        processes = [server.popen.pid, *server.children()]
        used = {pathlib.Path(path) for path in set().union(*map(libraries_of, processes))}
    assert len(processes) == 3
    assert [path for path in used if not OF_THE_SYSTEM.search(str(path))
            and not path.is_relative_to(bundle)] == []
    assert {path.name for path in used} & {path.name for path in (bundle / "lib").iterdir()}


def test_every_program_of_a_bundle_starts_anywhere(bundle, tmp_path):
    for program in (bundle / "bin").iterdir():
        done = subprocess.run([program, "--help"], cwd=tmp_path, capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin"}, timeout=60)
        assert done.returncode == 0 and "sage: " in done.stdout, program.name + done.stderr
