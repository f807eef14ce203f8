"""Certificates that tests make for themselves, with the openssl program."""

import shutil
import subprocess

import pytest

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def need_openssl():
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")


def openssl(*arguments, folder):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_authority(folder, name):
    openssl("req", "-x509", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
            "-subj", f"/CN={name}", folder=folder)


def make_certificate(folder, name, authority, addresses, key=KEY, days=2):
    openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}",
            folder=folder)
    with open(f"{folder}/{name}.ext", "w", encoding="ascii") as file:
        file.write("subjectAltName=" + ",".join(f"IP:{address}" for address in addresses))
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey",
            f"{authority}.key", "-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext",
            "-out", f"{name}.pem", folder=folder)
