"""The Debian package: Debian's own checker, and installing, serving, upgrading and removing on a bare system."""

import pathlib
import shutil
import subprocess

import pytest

from places import Started, inside, run_inside

CONFIGURATION = "etc/penstock/penstock.yaml"
UNIT = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "systemd" / "penstock.service"


def install(system, deb):
    shutil.copyfile(deb, system / "tmp" / deb.name)
    run_inside(system, "apt-get", "-q", "-y", "--no-install-recommends", "-o", "APT::Sandbox::User=root",
               "install", f"/tmp/{deb.name}")


def serve_as_the_service_does(system):
    """The unit's command, as its user."""
    user = ["setpriv", "--reuid=penstock", "--regid=penstock", "--clear-groups", "--no-new-privs"]
    [command] = [line.removeprefix("ExecStart=") for line in UNIT.read_text().splitlines()
                 if line.startswith("ExecStart=")]
    return Started([*inside(system, "--cap-add", "ALL"), *user, *command.split(), "--port", "0"])


def installed_version(system):
    return run_inside(system, "dpkg-query", "-W", "-f", "${Version}", "penstock")


def test_lintian_finds_nothing(package):
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed (deploy/bootstrap --tests installs it)")
    done = subprocess.run(["lintian", "--fail-on", "error,warning", package(".deb")], capture_output=True,
                          text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_takes_the_unit_and_finds_it_closed(package, tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    subprocess.run(["dpkg-deb", "-x", package(".deb"), tmp_path], check=True, timeout=300)
    # The threshold is an exposure of 2.0 of 10.
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                           f"--root={tmp_path}", "penstock.service"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-300:] + done.stderr


def test_install_serve_upgrade_and_purge(package, make_packages, system):
    run_inside(system, "apt-get", "-q", "-o", "APT::Sandbox::User=root", "update")
    deb = package(".deb")
    install(system, deb)
    version = installed_version(system)
    with serve_as_the_service_does(system) as server:
        assert server.generate()
    configuration = system / CONFIGURATION
    configuration.write_text(configuration.read_text() + "max-batch-size: 3\n")

    [newer] = make_packages("--deb", PENSTOCK_PACKAGE_VERSION=version + "+1").values()
    install(system, newer)
    assert installed_version(system) == version + "+1"
    assert configuration.read_text().endswith("max-batch-size: 3\n"), "an upgrade changed the configuration"
    with serve_as_the_service_does(system) as server:
        assert server.generate()

    run_inside(system, "apt-get", "-q", "-y", "remove", "penstock")
    assert configuration.exists() and not (system / "usr/bin/penstock-router").exists()
    run_inside(system, "apt-get", "-q", "-y", "purge", "penstock")
    left = [path for top in ("etc", "usr", "var/cache", "var/lib/systemd") for path in
            (system / top).rglob("*penstock*")]
    assert left == []
