#!/usr/bin/env python3
"""Writes an OCI image of Penstock, as one tar archive, without a daemon.

usage: image.py TREE ARCHIVE VERSION [VARIANT.json]

TREE: the folder that deploy/bundle fills. The image has two layers: the files of this system that the
programs need (C library, shell, certificates), and Penstock. Two runs write the same bytes.
SOURCE_DATE_EPOCH: date of the files. `docker load`, `podman load` and `skopeo` read the archive.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
USER = 1000
PREFIX = "opt/penstock"
# Copied from the system. The bundle has every other library.
LIBRARIES = ("libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libresolv.so.2")
SYSTEM_FOLDER = "lib/x86_64-linux-gnu"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
SYSTEM_PACKAGES = ("libc6", "dash", "ca-certificates")
TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/:/bin/sh\npenstock:x:{USER}:{USER}:Penstock:/data:/bin/sh\n",
    "etc/group": f"root:x:0:\npenstock:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\npasswd: files\ngroup: files\n",
}
# The image of text-generation-inference sets PORT and HF_HOME too.
ENVIRONMENT = {"PORT": "80", "HF_HOME": "/data", "HOME": "/data", "PATH": f"/{PREFIX}/bin:/bin"}


def epoch():
    return int(os.environ["SOURCE_DATE_EPOCH"])


class Archive:
    """A tar archive in memory whose bytes depend on its files alone. Folders come before their files."""

    def __init__(self):
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w", format=tarfile.GNU_FORMAT)
        self._folders = set()

    def add_folder(self, name, mode=0o755, owner=0):
        if name in self._folders or name == ".":
            return
        self.add_folder(os.path.dirname(name) or ".")
        self._folders.add(name)
        self._add(name, tarfile.DIRTYPE, mode, owner)

    def add_bytes(self, name, data, mode=0o644):
        self.add_folder(os.path.dirname(name) or ".")
        self._add(name, tarfile.REGTYPE, mode, 0, data=data)

    def add_link(self, name, target):
        self.add_folder(os.path.dirname(name) or ".")
        self._add(name, tarfile.SYMTYPE, 0o777, 0, link=target)

    def add_file(self, name, path, mode=None):
        path = pathlib.Path(path)
        if mode is None:
            mode = 0o755 if os.access(path, os.X_OK) else 0o644
        self.add_bytes(name, path.read_bytes(), mode)

    def add_tree(self, name, folder):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            inside = f"{name}/{path.relative_to(folder)}"
            if path.is_symlink():
                self.add_link(inside, os.readlink(path))
            elif path.is_dir():
                self.add_folder(inside)
            else:
                mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                self.add_file(inside, path, mode)

    def _add(self, name, kind, mode, owner, data=b"", link=""):
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.uid, info.gid = kind, mode, owner, owner
        info.size, info.mtime, info.linkname = len(data), epoch(), link
        self._tar.addfile(info, io.BytesIO(data))

    def bytes(self):
        self._tar.close()
        return self._buffer.getvalue()


def system_layer():
    layer = Archive()
    layer.add_file("bin/sh", "/bin/dash", 0o755)
    layer.add_file("lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2", 0o755)
    for library in LIBRARIES:
        layer.add_file(f"{SYSTEM_FOLDER}/{library}", f"/{SYSTEM_FOLDER}/{library}", 0o755)
    layer.add_file(CERTIFICATES, f"/{CERTIFICATES}", 0o644)
    for name, text in TEXTS.items():
        layer.add_bytes(name, text.encode())
    for package in SYSTEM_PACKAGES:
        name = f"usr/share/doc/{package}/copyright"
        layer.add_file(name, f"/{name}", 0o644)
    layer.add_folder("proc")
    layer.add_folder("sys")
    layer.add_folder("dev")
    layer.add_folder("tmp", 0o1777)
    layer.add_folder("data", 0o775, USER)
    return layer.bytes()


def penstock_layer(tree):
    layer = Archive()
    layer.add_tree(PREFIX, tree)
    layer.add_file(f"{PREFIX}/entrypoint", HERE / "entrypoint", 0o755)
    return layer.bytes()


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Image:
    """An OCI image: its blobs, each under its digest, and the files that list them."""

    def __init__(self, version, variant):
        self.version = version + (f"-{variant['name']}" if variant else "")
        self.environment = {**ENVIRONMENT, **(variant["environment"] if variant else {})}
        self.blobs = {}
        self.layers = []
        self.diff_ids = []

    def add_layer(self, data):
        self.diff_ids.append("sha256:" + hashlib.sha256(data).hexdigest())
        self.layers.append(self._blob("application/vnd.oci.image.layer.v1.tar+gzip",
                                      gzip.compress(data, 9, mtime=0)))

    def _blob(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def _config(self):
        created = datetime.datetime.fromtimestamp(epoch(), datetime.timezone.utc)
        return {
            "architecture": "amd64", "os": "linux", "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "rootfs": {"type": "layers", "diff_ids": self.diff_ids},
            "config": {
                "User": f"{USER}:{USER}", "WorkingDir": "/data", "StopSignal": "SIGTERM",
                "Env": [f"{name}={value}" for name, value in sorted(self.environment.items())],
                "Entrypoint": [f"/{PREFIX}/entrypoint"],
                "ExposedPorts": {"80/tcp": {}, "8080/tcp": {}}, "Volumes": {"/data": {}},
                "Labels": {"org.opencontainers.image.title": "penstock",
                           "org.opencontainers.image.version": self.version,
                           "org.opencontainers.image.licenses": "Apache-2.0"},
            },
        }

    def write(self, path):
        config = self._blob("application/vnd.oci.image.config.v1+json", as_json(self._config()))
        manifest = self._blob("application/vnd.oci.image.manifest.v1+json", as_json({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config, "layers": self.layers}))
        manifest["annotations"] = {"org.opencontainers.image.ref.name": self.version}
        archive = Archive()
        for digest, data in sorted(self.blobs.items()):
            archive.add_bytes(f"blobs/sha256/{digest}", data)
        archive.add_bytes("index.json", as_json({"schemaVersion": 2, "manifests": [manifest]}))
        # What older `docker load` reads.
        archive.add_bytes("manifest.json", as_json([{
            "Config": blob_path(config), "RepoTags": [f"penstock:{self.version}"],
            "Layers": [blob_path(layer) for layer in self.layers]}]))
        archive.add_bytes("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive.bytes())


def blob_path(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def read_variant(path):
    return {**json.loads(path.read_text()), "name": path.stem}


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__.strip())
    tree, archive, version, *variant = sys.argv[1:]
    image = Image(version, read_variant(pathlib.Path(variant[0])) if variant else None)
    image.add_layer(system_layer())
    image.add_layer(penstock_layer(tree))
    image.write(pathlib.Path(archive))


if __name__ == "__main__":
    main()
