#!/usr/bin/env python3
"""Unpacks the parts of the downloaded wheels that Penstock builds and runs with.

usage: unpack_wheels.py WHEEL_DIR SITE_DIR [--cuda]

--cuda: the compiler, headers and libraries of the CUDA build, instead of libtorch.

SITE_DIR is renamed into place when it is complete, so an interrupted run leaves no part of it.
The folder layout of the wheels is kept: the run path inside libtorch_cpu.so is relative.
"""

import os
import shutil
import sys
import zipfile

# Everything else in the wheels (Python code, the CUDA half of libtorch, profilers) is left out.
KEPT = (
    "torch/include/",
    "torch/lib/libc10.so",
    "torch/lib/libtorch_cpu.so",
    "torch/lib/libgomp",
    "nvidia/cu13/lib/libcudart.so",
    "nvidia/cu13/lib/libcupti.so",
)
KEPT_FOR_CUDA = (
    "nvidia/cu13/bin/",
    "nvidia/cu13/include/",
    "nvidia/cu13/nvvm/",
    "nvidia/cu13/lib/libcublasLt.so",
    "nvidia/cu13/lib/libcudart.so",
    "nvidia/cu13/lib/libnvvm.so",
    "nvidia/nccl/include/",
    "nvidia/nccl/lib/libnccl.so",
)
PROGRAMS = ("nvidia/cu13/bin/", "nvidia/cu13/nvvm/bin/")


def is_kept(name, kept):
    return name.startswith(kept) or (".dist-info/" in name and "LICENSE" in name.upper())


class Progress:
    """Prints the progress after each quarter of a large total."""

    def __init__(self, total):
        self.total, self.done, self.next_report = total, 0, 0.25

    def add(self, count):
        self.done += count
        if self.total > 100e6 and self.done / self.total >= self.next_report:
            print(f"    unpacked {self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB", flush=True)
            self.next_report += 0.25


def extract(archive, member, path, progress):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with archive.open(member) as source, open(path, "wb") as sink:
        while block := source.read(1 << 22):
            sink.write(block)
            progress.add(len(block))
    is_program = ".so" in member.filename or member.filename.startswith(PROGRAMS)
    os.chmod(path, 0o755 if is_program else 0o644)


def unpack(wheel, target, kept):
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist() if is_kept(m.filename, kept) and not m.is_dir()]
        progress = Progress(sum(m.file_size for m in members))
        for member in members:
            extract(archive, member, os.path.join(target, member.filename), progress)


def main():
    wheel_dir, site = sys.argv[1:3]
    kept = KEPT_FOR_CUDA if "--cuda" in sys.argv[3:] else KEPT
    partial = site + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    for name in sorted(os.listdir(wheel_dir)):
        if name.endswith(".whl"):
            unpack(os.path.join(wheel_dir, name), partial, kept)
    shutil.rmtree(site, ignore_errors=True)
    os.rename(partial, site)


if __name__ == "__main__":
    main()
