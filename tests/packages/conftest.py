"""The packages, made twice, and places without Penstock's libraries to try them in.

They take minutes, so they run with PENSTOCK_LONG_TESTS=1 (`make package-test`, `make soak`).
PENSTOCK_MADE_PACKAGES: a folder of packages that are made already.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / "packages"), str(REPOSITORY / "tests" / "integration")]

from penstock_testing import BUILD  # noqa: E402

MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
SUITE = "bookworm"


@pytest.fixture(scope="session")
def long_tests():
    if not os.environ.get("PENSTOCK_LONG_TESTS"):
        pytest.skip("takes minutes: make package-test runs it")


@pytest.fixture(scope="session")
def make_packages(long_tests, tmp_path_factory):
    """make_packages(option..., **variables): the files of a run of deploy/package, by name."""
    for program in ("patchelf", "dpkg-shlibdeps"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (deploy/bootstrap installs it)")

    def make(*options, **variables):
        folder = tmp_path_factory.mktemp("packages")
        environment = {**os.environ, "PENSTOCK_BUILD_DIR": str(BUILD), "PENSTOCK_PACKAGE_DIR": str(folder),
                       **variables}
        done = subprocess.run([REPOSITORY / "deploy" / "package", "--no-build", *options], env=environment,
                              capture_output=True, text=True, timeout=3600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return {path.name: path for path in folder.iterdir()}

    return make


@pytest.fixture(scope="session")
def packages(request, long_tests):
    if made := os.environ.get("PENSTOCK_MADE_PACKAGES"):
        return {path.name: path for path in pathlib.Path(made).iterdir() if path.is_file()}
    return request.getfixturevalue("make_packages")()


@pytest.fixture(scope="session")
def package(packages):
    """package(suffix): the one package whose name ends so."""
    def find(suffix):
        [path] = [path for name, path in packages.items() if name.endswith(suffix)]
        return path
    return find


@pytest.fixture(scope="session")
def sandbox(long_tests):
    if not shutil.which("bwrap"):
        pytest.skip("bwrap is not installed (deploy/bootstrap --tests installs it)")
    if os.geteuid() != 0:
        pytest.skip("needs root, for folders that belong to other users")


@pytest.fixture(scope="session")
def bare_system(sandbox):
    """The folder of a minimal Debian 12, kept in the build folder. Tests work on copies."""
    if not pathlib.Path("/usr/sbin/debootstrap").exists():
        pytest.skip("debootstrap is not installed (deploy/bootstrap --tests installs it)")
    folder = BUILD / "chroots" / f"bare-{SUITE}"
    if not folder.exists():
        draft = folder.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["/usr/sbin/debootstrap", "--variant=minbase", SUITE, draft, MIRROR],
                              capture_output=True, text=True, timeout=1800, check=False)
        if done.returncode != 0:
            pytest.skip(f"debootstrap cannot fetch {SUITE} from {MIRROR}: {done.stdout[-300:]}")
        draft.rename(folder)
    return folder


@pytest.fixture
def system(bare_system, tmp_path):
    """A copy of the minimal Debian 12 that a test may change."""
    folder = tmp_path / "system"
    subprocess.run(["cp", "-a", "--reflink=auto", bare_system, folder], check=True, timeout=600)
    shutil.copyfile("/etc/resolv.conf", folder / "etc" / "resolv.conf")
    yield folder
    shutil.rmtree(folder)
