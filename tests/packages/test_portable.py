"""The tarball and the wheel serve where no library of Penstock is installed."""

import subprocess
import sys

from places import Started, inside, run_inside


def test_the_tarball_serves_on_a_bare_system(package, system):
    opt = system / "opt" / "penstock"
    opt.mkdir(parents=True)
    subprocess.run(["tar", "-xzf", package(".tar.gz"), "-C", opt, "--strip-components=1"], check=True, timeout=300)
    assert "libgrpc" not in run_inside(system, "dpkg-query", "-W")
    with Started([*inside(system), "/opt/penstock/bin/penstock-launcher", "--model-id",
                  "/opt/penstock/share/penstock/demo-model", "--port", "0"]) as server:
        assert server.generate()


def test_pip_installs_the_wheel_and_it_serves(package, tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=600)
    subprocess.run([python, "-m", "pip", "install", "--no-index", package(".whl")], check=True, timeout=600,
                   capture_output=True)
    [model] = tmp_path.glob("venv/lib/python3*/site-packages/penstock/share/penstock/demo-model")
    with Started([python.parent / "penstock", "serve", model, "--port", "0"]) as server:
        assert server.generate()
    help_ = subprocess.run([python.parent / "text-generation-launcher", "--help"], capture_output=True,
                           text=True, timeout=60, check=True)
    assert help_.stdout.startswith("Usage: text-generation-launcher")
    subprocess.run([python, "-m", "pip", "uninstall", "-y", "penstock"], check=True, timeout=600,
                   capture_output=True)
    assert not list(tmp_path.glob("venv/lib/python3*/site-packages/penstock*"))
