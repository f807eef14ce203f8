#!/usr/bin/env python3
"""Dependencies run one way (docs/architecture.md), and torch headers stay where they belong.

usage: layering.py [ROOT]
"""

import re
import sys
from pathlib import Path

from sources import blank, list_cpp, list_files, report, root_from

# Folder -> folders whose headers it may include, besides its own.
ARROWS = {
    "common": set(),
    "scheduler": {"common"},
    "proto": {"common"},
    "text": {"common"},
    "sim": {"common", "scheduler"},
    "router": {"common", "scheduler", "proto", "text"},
    "shard": {"common", "proto", "text"},
    "launcher": {"common"},
    "tools": {"common", "scheduler", "sim", "proto", "text", "shard"},
    "cli": {"common", "launcher", "tools"},
    "docs": {"proto"},  # examples: clients, which see the wire alone
    "tests": {
        "common",
        "scheduler",
        "sim",
        "proto",
        "text",
        "router",
        "shard",
        "launcher",
        "tools",
        "cli",
    },
}
# Folder -> folders whose headers it may not reach, not even through other headers.
FORBIDDEN = {
    "router/http": ("router/api", "router/dispatch", "router/stream", "scheduler", "text", "proto"),
    "router/api": ("router/dispatch", "scheduler", "proto"),
    "router/stream": ("router/api", "router/http", "scheduler", "proto"),
}
TORCH_PLACES = (
    "shard/backend/reference/",
    "shard/backend/cuda/",
    "tests/unit/shard/backend/",
    "tests/gpu/",
)
TORCH_HEADER = re.compile(r"^(ATen|c10|caffe2|torch)/")
STANDARD_HEADER = re.compile(r"^[a-z_]+$")
# The scheduler is pure: it has no thread and no stream, and its numbers are drawn by the caller.
IMPURE = frozenset(
    "atomic condition_variable filesystem fstream future iostream latch mutex random semaphore "
    "shared_mutex stop_token thread".split()
)
GENERATED_HEADER = re.compile(r"\.(pb|grpc\.pb)\.h$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

CMAKE_TEST_FILE = re.compile(r"^[^#\n]*?\btests/", re.MULTILINE)
RUST_TEST_FILE = re.compile(r'(?:include(?:_str|_bytes)?!\s*\(|#\[path\s*=)\s*"[^"]*\btests/')


def read_includes(root):
    """File -> list of (line, whether it is quoted, header)."""
    graph = {}
    for path in list_cpp(root):
        text = blank((root / path).read_text(errors="replace"), keep_strings=True)
        graph[path.as_posix()] = [
            (text.count("\n", 0, m.start(1)) + 1, m.group(1) == '"', m.group(2))
            for m in INCLUDE.finditer(text)
        ]
    return graph


def folder_of(header):
    return "proto" if GENERATED_HEADER.search(header) else header.split("/")[0]


def in_folder(header, prefixes):
    return header.startswith(prefixes) or f"{folder_of(header)}/" in prefixes


def is_ours(header, quoted):
    """Whether a header claims to be of this repository; absl/ and the like may be quoted too."""
    start = header.split("/")[0]
    return start in (".", "..") or start in ARROWS or (quoted and "/" not in header)


def arrow_problems(graph):
    for path, includes in graph.items():
        folder = path.split("/")[0]
        if folder not in ARROWS or "/" not in path:
            continue
        for line, quoted, header in includes:
            target = folder_of(header)
            if is_ours(header, quoted) and header not in graph:
                yield f'{path}:{line}: "{header}" is no header of this repository, named from its root'
            elif target in ARROWS and target != folder and target not in ARROWS[folder]:
                yield f'{path}:{line}: {folder}/ must not include {target}/ ("{header}")'


def route(path, graph, is_target, routes):
    """How path reaches a header that is_target: a list of files that ends in it, or None."""
    if path in routes:
        return routes[path]
    routes[path] = None  # cuts cycles
    for _, _, header in graph[path]:
        if is_target(header):
            routes[path] = [path, header]
            break
        onward = route(header, graph, is_target, routes) if header in graph else None
        if onward:
            routes[path] = [path] + onward
            break
    return routes[path]


def forbidden_problems(graph):
    for inner, banned in FORBIDDEN.items():
        prefixes = tuple(folder + "/" for folder in banned)
        routes = {}
        for path in graph:
            if path.startswith(inner + "/"):
                found = route(path, graph, lambda header: in_folder(header, prefixes), routes)
                if found:
                    yield f"{path}:1: {inner}/ must not reach {found[-1]}: {' -> '.join(found)}"


def scheduler_problems(graph):
    """The core stands on common/ and the pure part of the standard library, and does not log."""
    routes = {}

    def is_foreign(header):
        if header in graph:
            return header == "common/log.h"
        is_standard = STANDARD_HEADER.match(header) or header.startswith("absl/container/")
        return not is_standard or header in IMPURE

    for path, includes in graph.items():
        if not path.startswith("scheduler/"):
            continue
        for line, quoted, header in includes:
            if not (quoted and is_ours(header, quoted)) and not STANDARD_HEADER.match(header):
                yield f"{path}:{line}: scheduler/ includes only common/ and the standard library, not <{header}>"
                break
        else:
            found = route(path, graph, is_foreign, routes)
            if found:
                yield f"{path}:1: scheduler/ must not reach {found[-1]}: {' -> '.join(found)}"


def torch_problems(graph):
    routes = {}
    for path, includes in graph.items():
        for line, _, header in includes:
            if header == "torch/torch.h":
                yield f"{path}:{line}: torch/torch.h costs 20 s a file: include the ATen headers that are needed"
        if path.startswith(TORCH_PLACES):
            continue
        found = route(path, graph, TORCH_HEADER.match, routes)
        if found:
            yield f"{path}:1: reaches a torch header outside its places: {' -> '.join(found)}"


def test_file_problems(root):
    """Files of tests/ that CMake or Rust code of the product uses."""
    for path in list_files(root):
        pattern = {".rs": RUST_TEST_FILE, ".txt": CMAKE_TEST_FILE, ".cmake": CMAKE_TEST_FILE}.get(path.suffix)
        if pattern and path.parts[0] in ARROWS and path.parts[0] != "tests":
            text = (root / path).read_text(errors="replace")
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: {path.parts[0]}/ must not use a file of tests/"


def check(root):
    graph = read_includes(root)
    problems = [
        *arrow_problems(graph),
        *forbidden_problems(graph),
        *scheduler_problems(graph),
        *torch_problems(graph),
        *test_file_problems(root),
    ]
    return (
        problems,
        f"{len(graph)} files, {sum(map(len, graph.values()))} includes follow the arrows",
    )


if __name__ == "__main__":
    sys.exit(report("layering", *check(Path(root_from(sys.argv[1:])))))
