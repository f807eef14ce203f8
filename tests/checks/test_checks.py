"""Each check finds a planted violation and passes a clean tree."""

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import classes
import documents
import format_cpp
import layering
import names
import pytest
import rules
import shared_names
import sizes
import summary
import unbuilt
from functions import cpp_functions, python_functions, rust_functions


def plant(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def problems_of(check, root, files):
    plant(root, files)
    return check(root)[0]


@pytest.mark.parametrize(
    "path, include, expected",
    [
        ("scheduler/core.cc", '"router/engine.h"', "scheduler/ must not include router/"),
        ("scheduler/core.cc", "<absl/status/status.h>", "only common/ and the standard library"),
        ("scheduler/core.cc", '"absl/status/status.h"', "only common/ and the standard library"),
        ("common/ids.cc", '"scheduler/core.h"', "common/ must not include scheduler/"),
        ("shard/executor/run.cc", '"scheduler/core.h"', "shard/ must not include scheduler/"),
        ("tools/bench.cc", '"router/engine.h"', "tools/ must not include router/"),
        ("router/http/session.cc", '"scheduler/core.h"', "router/http/ must not reach"),
        ("launcher/main.cc", '"penstock/v1/shard.pb.h"', "launcher/ must not include proto/"),
        ("shard/executor/run.cc", '"run.h"', "named from its root"),
        ("shard/executor/run.cc", "<ATen/core/Tensor.h>", "reaches a torch header"),
        (
            "shard/executor/run.cc",
            '"shard/backend/reference/tensor.h"',
            "tensor.h -> ATen/core/Tensor.h",
        ),
        ("shard/backend/reference/ops.cc", "<torch/torch.h>", "costs 20 s"),
        ("router/api/a.cc", '"router/engine.h"', "engine.h -> scheduler/core.h"),
        ("router/stream/a.cc", '"penstock/v1/shard.pb.h"', "router/stream/ must not reach"),
        ("scheduler/a.cc", '"common/log.h"', "scheduler/ must not reach common/log.h"),
        ("scheduler/a.cc", '"common/status.h"', "common/status.h -> absl/status/status.h"),
        ("scheduler/a.cc", "<thread>", "scheduler/ must not reach thread"),
        ("scheduler/a.inc", '"router/engine.h"', "scheduler/ must not include router/"),
        ("scheduler/a.cc", '"tests/sim/mutants/bug.inc"', "scheduler/ must not include tests/"),
        ("shard/a.cc", '"../tests/sim/mutants/bug.inc"', "named from its root"),
        ("shard/a.cc", "<./bug.h>", "named from its root"),
        ("tools/a.cc", "<sim/mutants/bug.h>", "named from its root"),
    ],
)
def test_layering_finds(tmp_path, path, include, expected):
    headers = {
        "common/log.h": "",
        "common/status.h": "#include <absl/status/status.h>\n",
        "scheduler/core.h": "",
        "tests/sim/mutants/bug.inc": "",
        "router/engine.h": '#include "scheduler/core.h"\n',
        "shard/backend/reference/tensor.h": "#include <ATen/core/Tensor.h>\n",
    }
    found = problems_of(layering.check, tmp_path, {**headers, path: f"#include {include}\n"})
    assert len(found) == 1 and expected in found[0] and found[0].startswith(path)


@pytest.mark.parametrize(
    "path, text",
    [
        ("scheduler/CMakeLists.txt", "target_sources(a PRIVATE\n  ../tests/sim/mutants/switch.cc)\n"),
        ("text/src/a.rs", '\nconst A: &str = include_str!("../../tests/a.txt");\n'),
        ("text/src/a.rs", '\n#[path = "../../tests/a.rs"]\nmod a;\n'),
    ],
)
def test_layering_finds_files_of_tests_in_the_product(tmp_path, path, text):
    [problem] = problems_of(layering.check, tmp_path, {path: text})
    assert problem == f"{path}:2: {path.split('/')[0]}/ must not use a file of tests/"


def test_layering_passes_what_the_design_allows(tmp_path):
    assert (
        problems_of(
            layering.check,
            tmp_path,
            {
                "common/ids.h": "#include <cstdint>\n",
                "common/kv/block_pool.h": '#include "common/ids.h"\n',
                "shard/cache/x.cc": '#include "common/kv/block_pool.h"\n#include "penstock/v1/shard.pb.h"\n',
                "shard/backend/reference/ops.cc": "#include <ATen/core/Tensor.h>\n",
                "router/a.cc": '// #include "tools/no.h"\n#include "absl/status/status.h"\n',
                "router/CMakeLists.txt": "# its test is in tests/unit\n",
                "tests/CMakeLists.txt": "add_subdirectory(tests/unit)\n",
            },
        )
        == []
    )


def test_sizes_finds_long_files_functions_mains_and_deep_nesting(tmp_path):
    body = "  f();\n" * 69
    deep = "if (a) { " * 5 + "}" * 5
    found = problems_of(
        sizes.check,
        tmp_path,
        {
            "a.cc": "int x;\n" * 501,
            "b.cc": "void F() {\n" + body + "}\n",
            "c.cc": "TEST(A, B) {\n" + body + "}\n",
            "d.cc": f"void G() {{ {deep} }}\n",
            "tools/x/main.cc": "int x;\n" * 61,
            "ok.cc": "void F() {\n" + "  f();\n" * 68 + "}\n",
        },
    )
    assert [p.split(":")[0] for p in found] == ["a.cc", "b.cc", "c.cc", "d.cc", "tools/x/main.cc"]


def test_cpp_functions_are_told_from_types_initializers_and_literals():
    source = r"""
namespace a { namespace {
constexpr int kTable[] = {1, 2, 3};
struct S { int x = 3; explicit S(int y) : x{y}, z_(y) {} bool operator==(const S&) const = default;
  std::vector<int> v() const { return {1, 2}; } };
enum class E : int { kA, kB };
const char* k = R"({ "a": { )"; char c = '{'; // {
#define M(x) { x
auto f = [](int a) { return a; };
template <typename T> requires (sizeof(T) > 1)
T Get(T a) {
  for (;;) { if (a) { [&] { return a; }(); } }
}
std::vector<int> G() noexcept
try { return {1'000}; } catch (...) { throw; }
}}
"""
    found = {f.name: f for f in cpp_functions(source)}
    assert {"S", "v", "G"} <= set(found) and "kTable" not in found and "E" not in found
    assert (found["Get"].lines, found["Get"].nesting, found["Get"].line) == (4, 2, 10)


def test_rust_and_python_functions():
    rust = list(
        rust_functions('fn a() {\n  let s = "}";\n}\ntrait T { fn b(&self); }\npub fn c() { x }\n')
    )
    assert [(f.name, f.lines) for f in rust] == [("a", 3), ("c", 1)]
    assert [(f.name, f.lines) for f in python_functions("def a():\n  x = 1\n  return x\n")] == [
        ("a", 3)
    ]


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("a.cc", "std::this_thread::sleep_for(1ms);\n", "sleeps"),
        ("a.rs", "std::thread::sleep(d);\n", "sleeps"),
        ("a.py", "time." + "sleep(1)\n", "sleeps"),
        ("a.sh", "sleep 1\n", "sleeps"),
        ("a.cc", "// TO" + "DO: later\n", "left in the text"),
        ("docs/a.md", "see /home" + "/me/x\n", "a path of one machine"),
        ("a.cc", "int " + "x" * 100 + ";\n", "columns"),
        ("a.h", "int x;\n", "no #pragma once"),
        ("a.h", "#pragma once\nabsl::string_view x();\n", "absl::string_view"),
    ],
)
def test_rules_find(tmp_path, name, text, expected):
    found = problems_of(rules.check, tmp_path, {name: text})
    assert len(found) == 1 and expected in found[0]


def test_rules_find_a_link_out_of_the_tree(tmp_path):
    plant(tmp_path, {"tests/a.py": ""})
    (tmp_path / "tests" / "b.py").symlink_to("a.py")
    assert rules.check(tmp_path)[0] == []
    (tmp_path / ".venv").symlink_to("/nowhere/.venv")
    assert rules.check(tmp_path)[0] == [
        ".venv:1: a link to a path of one machine (/nowhere/.venv)"
    ]


def test_rules_pass_comments_strings_and_paths_of_every_machine(tmp_path):
    assert (
        problems_of(
            rules.check,
            tmp_path,
            {
                "a.cc": '// never sleep(1)\nauto x = "sleep(1)";\nauto y = "/opt/ml/model";\n',
                "b.cc": 'auto j = R"({"k": "' + "v" * 120 + '"})";\n',
                "run": 'echo "${HOME:-/root}/x"\n',
            },
        )
        == []
    )


def test_unbuilt_finds_a_source_that_no_list_names(tmp_path):
    found = problems_of(
        unbuilt.check,
        tmp_path,
        {
            "a/CMakeLists.txt": "file(GLOB found CONFIGURE_DEPENDS c/*.cc)\n"
            "penstock_library(a SOURCES x.cc b/y.cc ${found} DEPS c)\n",
            "a/x.cc": "",
            "a/b/y.cc": "",
            "a/c/z.cc": "",
            "a/z.cc": "",
            "a/b/x.cc": "",
        },
    )
    assert [p.split(":")[0] for p in found] == ["a/b/x.cc", "a/z.cc"]


_OVERLOAD = "namespace p {\nnamespace {\nint Read(bool tied) { return tied; }\n}\n}\n"
_OTHER = "namespace p {\nnamespace {\nint Read(Options options) { return 1; }\n}\n}\n"


def test_shared_names_finds_an_overload_in_a_neighbour(tmp_path):
    found = problems_of(shared_names.check, tmp_path, {"a/x.cc": _OVERLOAD, "a/y.cc": _OTHER})
    assert found == ["a/x.cc:3: Read is also defined in a/y.cc"]


def test_shared_names_finds_a_name_that_hides_one_of_an_outer_namespace(tmp_path):
    sources = {
        "p.h": "namespace p {\ninline constexpr int kMost = 3;\n}\n",
        "a/x.cc": "namespace p::a {\nnamespace {\nconstexpr int kMost = 4;\n}\n}\n",
        "a/y.cc": "namespace p::a {\nint Most() { return kMost; }\n}\n",
    }
    found = problems_of(shared_names.check, tmp_path, sources)
    assert found == ["a/x.cc:3: kMost hides that of p.h in a/y.cc"]


def test_shared_names_passes_other_folders_and_files_compiled_alone(tmp_path):
    sources = {
        "a/x.cc": _OVERLOAD,
        "b/y.cc": _OTHER,
        "a/z.cc": _OTHER,
        "a/CMakeLists.txt": "penstock_library(a SOURCES x.cc ALONE z.cc DEPS b)\n",
    }
    assert problems_of(shared_names.check, tmp_path, sources) == []


def test_classes_finds_a_class_in_two_sources(tmp_path):
    found = problems_of(
        classes.check,
        tmp_path,
        {
            "a/x.cc": "namespace p::a {\nint X::F() const { return 1; }\nX::~X() {}\n}\n",
            "a/x_rest.cc": "namespace p::a {\nstd::vector<int> X::G() { return Y::H(); }\n}\n",
        },
    )
    assert found == ["a/x_rest.cc:2: p::a::X is also defined in a/x.cc"]


@pytest.mark.parametrize(
    "elsewhere", ["void penstock::a::X::G() {}\n", "namespace penstock::a {\nX::~X() = default;\n}\n"]
)
def test_classes_finds_qualified_and_defaulted_methods(tmp_path, elsewhere):
    sources = {"a/x.cc": "namespace penstock::a {\nvoid X::F() {}\n}\n", "b/y.cc": elsewhere}
    found = problems_of(classes.check, tmp_path, sources)
    assert len(found) == 1 and "penstock::a::X is also defined in a/x.cc" in found[0]


@pytest.mark.parametrize(
    "name, method",
    [
        ("b/x_rest.inc", "void X::G() {}\n"),
        ("b/y.cc", "std::vector<int> X::\n    G() {}\n"),
        ("b/y.cc", "std::vector<int> X\n    ::G() {}\n"),
        ("b/y.cc", "X::\n    ~X() = default;\n"),
    ],
)
def test_classes_finds_included_parts_and_broken_lines(tmp_path, name, method):
    sources = {
        "a/x.cc": "namespace p::a {\nvoid X::F() {}\n}\n",
        name: "namespace p::a {\n" + method + "}\n",
    }
    found = problems_of(classes.check, tmp_path, sources)
    assert found == [f"{name}:2: p::a::X is also defined in a/x.cc"]


@pytest.mark.parametrize("method", ["void X::G() {}", "X::~X() = default;"])
def test_classes_finds_methods_in_a_namespace_of_one_line(tmp_path, method):
    sources = {
        "a/x.cc": "namespace p::a { class Y; void X::F() {} }\n",
        "b/y.cc": "namespace p { namespace a { class Y; " + method + " } }\n",
        "c/y.cc": "namespace q { " + method + " }\nnamespace { " + method + " }\n",
    }
    found = problems_of(classes.check, tmp_path, sources)
    assert found == ["b/y.cc:1: p::a::X is also defined in a/x.cc"]


def test_classes_passes_nested_classes_namespaces_templates_and_declarations(tmp_path):
    assert (
        problems_of(
            classes.check,
            tmp_path,
            {
                "a/x.cc": "namespace p {\nvoid X::F() { X::G(); Y::H(); }\nvoid X::I::F() {}\n}\n",
                "a/i.cc": "namespace p {\nvoid X::J::F() {}\nint x = X::G();\n}\n",
                "b/x.cc": "namespace p::b {\nvoid X::F() {}\n}\n",
                "c/x.cc": "namespace p { namespace {\nvoid X::F() {}\n}\n}\n",
                "a/x.h": "namespace p {\ntemplate <typename T> T X<T>::F() { return {}; }\n}\n",
            },
        )
        == []
    )


@pytest.mark.parametrize("place", ["scheduler/kv/a.cc", "common/kv/a.h", "scheduler/a.inc"])
def test_classes_finds_a_planted_bug_in_the_product(tmp_path, place):
    bug = 'if (PENSTOCK_MUTANT("x")) return;\n'
    found = problems_of(classes.check, tmp_path, {place: bug, "tests/sim/mutants/a.cc": bug})
    assert len(found) == 1 and found[0].startswith(f"{place}:1: planted bugs")


NAMED = {
    "router/engine.h": "class Engine { void CheckStep(); int kept_; };\n",
    "docs/decisions/0002-we-chose-this.md": "# 0002 We chose this\n",
    "options.cc": 'Row row{"max-batch-size"};\n',
    "tool.py": 'parser.add_argument("--only", help="one")\n',
    "script": "case $1 in\n  --fix) ;;\nesac\n",
}


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("a.h", "// See CheckNow.\n", "no source defines CheckNow"),
        ("a.cc", "int x;  // LaneState in request_task.h\n", "no file request_task.h"),
        ("a.cc", "/* kNothing of it */\n", "no source defines kNothing"),
        ("a.cc", "// The rest is in gone_.\n", "no source defines gone_"),
        ("a.cc", "// Calls Gone() at its end.\n", "no source defines Gone"),
        ("a.cc", "// Engine::Gone ends it.\n", "no source defines Gone"),
        ("a.cc", "// router/motor.h\n", "no file router/motor.h"),
        ("a.rs", "// see router/motor for more\n", "no router/motor"),
        ("a.py", '"""Reads LoadedFacts."""\n', "no source defines LoadedFacts"),
        ("run", "# starts LoadedFacts\n", "no source defines LoadedFacts"),
        ("docs/a.md", "It is `LoadedFacts` there.\n", "no source defines LoadedFacts"),
        ("docs/a.md", "It is in `guarantees.md`.\n", "no file guarantees.md"),
        ("docs/a.md", "`router` takes `--max-size`.\n", "no program has an option --max-size"),
        ("docs/a.md", "    penstock-router --max-size 3\n", "no program has an option --max-size"),
        ("docs/a.md", "    curl -s x | sort --max-size 3\n", "no program has an option --max-size"),
        ("docs/a.md", "    CheckNow();\n", "no source defines CheckNow"),
        ("docs/a.md", "As decision 0001 says.\n", "no decision 0001"),
        ("a.h", "// as docs/decisions/0001 says\n", "no docs/decisions/0001"),
        ("a.h", "// as decision 0001 says\n", "no decision 0001"),
    ],
)
def test_names_finds_what_does_not_exist(tmp_path, name, text, expected):
    found = [p for p in problems_of(names.check, tmp_path, {**NAMED, name: text})]
    assert len(found) >= 1 and all(p.startswith(name + ":1: ") for p in found)
    assert any(expected in p for p in found)


def test_names_passes_what_exists_and_what_is_known_to_be_external(tmp_path):
    comment = (
        "// CheckStep() of router/engine.h, engine.{h,cc}, kept_; x_i of arXiv; text/plain;\n"
        "// decision 0002, docs/decisions/0002, max_batch_size, PENSTOCK_MAX_BATCH_SIZE;\n"
        "//   auto a_local = Engine(some_options);\n"
        "// Engines, build/bin/x.sh, shard.pb.h, ResourceExhausted, https://a.b/GoneAway/x.md\n"
    )
    document = (
        "A word: LoadedFacts. `router/`; decision 0002; `--max-batch-size 3`, `--only`, `--fix`\n"
        "\n```\nX=1 penstock-router --no-max-batch-size \\\n  --only --fix\n"
        "curl -H x --cacert ca.pem \\\n  --other\n```\n"
        "    ExecStart=/x/router --only\n    turn() {\n    turn()\n"
    )
    files = {**NAMED, "router/engine.cc": comment, "docs/a.md": document}
    assert problems_of(names.check, tmp_path, files) == []


RECORD = "# 0002 We chose this\n"
FIGURES = "| goal | machine | commit |\n|---|---|---|\n"
INDEX = "* [0002 We chose this](0002-we-chose-this.md)\n"


@pytest.mark.parametrize(
    "files, expected",
    [
        ({"README.md": "word " * 21 + "\n"}, "columns, the limit of a document is 100"),
        ({"docs/a.md": "see [b](b.md)\n"}, "dead link b.md"),
        ({"docs/a.md": "# A\n\nsee [b](#c)\n"}, "has no heading c"),
        ({"CHANGELOG.md": "* one\n  two\n  three\n"}, "an entry of 3 lines"),
        ({"CHANGELOG.md": "## A\n" + "* one\n" * 120}, "121 lines of a version, the limit is 120"),
        ({"docs/benchmarks.md": "x\n" * 151}, "151 lines, the limit is 150"),
        ({"docs/benchmarks.md": FIGURES + "| a | Xeon | 2026-11-21 |\n"}, "is no commit"),
        ({"docs/benchmarks.md": FIGURES + "| a | Xeon; Zen 4 | 0123abc |\n"}, "not one commit for"),
        ({"docs/decisions/0002-we-chose-this.md": RECORD}, "does not list '0002 We chose this'"),
        (
            {"docs/decisions/0002-x.md": RECORD, "docs/decisions/README.md": ""},
            "the file name of this title is 0002-we-chose-this.md",
        ),
        ({"docs/decisions/0002-riddle.md": "# 0002 Riddle\n"}, "does not say what was decided"),
        ({"docs/decisions/0002-riddle.md": "# Riddle\n"}, "the first line of a record"),
    ],
)
def test_documents_finds(tmp_path, files, expected):
    found = problems_of(documents.check, tmp_path, files)
    assert found and any(expected in p for p in found)


def test_documents_passes_tables_code_lone_links_and_good_records(tmp_path):
    wide = "word " * 30
    files = {
        "README.md": f"# A b\n\n| {wide}|\n\n```\n{wide}\n```\n\n    {wide}\n\n"
        f"* [a{wide}](docs/decisions/README.md)\n[up](#a-b) [web](https://x.y/z)\n",
        "CHANGELOG.md": ("## A\n" + "* one\n  two\n* three\n" * 39) * 2,
        "docs/benchmarks.md": FIGURES + "| a | Xeon; Zen 4 | 0123abc; 4567def |\n",
        "docs/decisions/README.md": INDEX,
        "docs/decisions/0002-we-chose-this.md": RECORD,
    }
    assert problems_of(documents.check, tmp_path, files) == []


def test_documents_finds_a_commit_that_is_not_in_the_history(tmp_path):
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    described = subprocess.run(
        [*git, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=True
    )
    commit = described.stdout.strip()
    files = {"docs/benchmarks.md": f"{FIGURES}| a | x | {commit} |\n| b | x | 0123abc |\n"}
    [problem] = problems_of(documents.check, tmp_path, files)
    assert problem == "docs/benchmarks.md:4: commit 0123abc is not in the history"


@pytest.mark.skipif(not shutil.which("clang-format"), reason="no clang-format on this machine")
def test_format_finds_and_fixes(tmp_path):
    style = (Path(__file__).parents[2] / ".clang-format").read_text()
    plant(tmp_path, {".clang-format": style, "a.cc": "int   x ;\n"})
    assert len(format_cpp.check(tmp_path)[0]) >= 1
    format_cpp.check(tmp_path, fix=True)
    assert (tmp_path / "a.cc").read_text() == "int x;\n" and format_cpp.check(tmp_path)[0] == []


def junit(path, cases):
    suite = ElementTree.Element("testsuite")
    for name, child, text in cases:
        case = ElementTree.SubElement(suite, "testcase", name=name)
        if child:
            ElementTree.SubElement(case, child, message="m").text = text
    ElementTree.ElementTree(suite).write(path)


def test_summary_counts_every_runner_and_a_crash(tmp_path, capsys, monkeypatch):
    junit(tmp_path / "ctest.xml", [("a", None, ""), ("b", "failure", "why"), ("c", "skipped", "")])
    (tmp_path / "cargo.log").write_text(
        "test x ... ok\ntest y ... ignored, slow\ntest result: ok. 1 passed\n"
    )
    (tmp_path / "pytest.status").write_text("4\n")
    monkeypatch.setattr("sys.argv", ["summary.py", str(tmp_path), "--last-line"])
    assert summary.main() == 1
    output = capsys.readouterr().out
    assert output.splitlines()[-1] == "2 passed, 2 failed, 2 skipped"
    assert (
        "skipped  ctest: c: m" in output and "skipped  cargo: y: slow" in output and "why" in output
    )


def test_summary_of_nothing_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["summary.py", str(tmp_path)])
    assert summary.main() == 1
