"""Python modules of our .proto files, made by the protoc of the build when they are missing or old."""

import importlib
import pathlib
import shutil
import subprocess
import sys

from penstock_testing import BUILD, REPOSITORY

PROTO = REPOSITORY / "proto"
OUT = BUILD / "python-proto"
FILES = ["generate/v3/generate.proto", "penstock/v1/shard.proto"]
EXAMPLES = REPOSITORY / "docs" / "examples" / "grpc"


def make():
    """Makes the modules, and puts their folder and that of the examples on sys.path."""
    sources = [PROTO / file for file in FILES]
    made = [OUT / file.replace(".proto", "_pb2_grpc.py") for file in FILES]
    newest = max(source.stat().st_mtime for source in sources)
    if not all(path.exists() and path.stat().st_mtime > newest for path in made):
        OUT.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["protoc", "-I", PROTO, f"--python_out={OUT}", f"--grpc_out={OUT}",
             f"--plugin=protoc-gen-grpc={shutil.which('grpc_python_plugin')}",
             "--experimental_allow_proto3_optional", *FILES], check=True, cwd=PROTO)
    for path in (OUT, EXAMPLES):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    return OUT


def load(name):
    make()
    return importlib.import_module(name)


def environment():
    """For programs that import the modules."""
    import os
    return {**os.environ, "PYTHONPATH": str(pathlib.Path(make()))}
