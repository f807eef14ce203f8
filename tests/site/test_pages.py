"""The documentation site: each page has a place, and the pages name what exists."""

import pathlib
import re

import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
OPTIONS = set(re.findall(r"`--([a-z0-9-]+)`", (DOCS / "api/options.md").read_text()))
TOOL_OPTIONS = {name for tool in ("replay", "plan") for path in (REPOSITORY / "tools" / tool).glob("*_rows.cc")
                for name in re.findall(r'OptionSpec\(\s*"([a-z0-9-]+)"', path.read_text())}
FROM_THE_ROOT = {"repository.md", "contributing.md", "changelog.md"}  # deploy/docs copies them


def pages_of(entry):
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [page for value in values for page in pages_of(value)]


def test_the_navigation_has_every_page_once():
    named = pages_of(yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text())["nav"])
    assert len(named) == len(set(named))
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    records = {page for page in there if re.match(r"decisions/\d", page)}
    assert set(named) == (there - records) | FROM_THE_ROOT


def cells(page):
    """The rows of the tables of a page, as lists of cells."""
    lines = (DOCS / page).read_text().splitlines()
    return [line.strip("|").split("|") for line in lines if line.startswith("|")]


def test_the_options_beside_vllm_s_flags_exist():
    named = [flag for row in cells("how-to/vllm-flags.md") for flag in re.findall(r"`--([a-z0-9-]+)`", row[1])]
    assert len(named) > 25
    assert set(named) - OPTIONS == set()


def test_the_options_of_the_how_to_pages_exist():
    for path in [*DOCS.glob("how-to/*.md"), DOCS / "start.md", DOCS / "sizing.md"]:
        text = path.read_text()
        if path.name == "vllm-flags.md":
            continue  # it names vLLM's too
        named = set(re.findall(r"`--([a-z0-9-]+)[` ]", text)) | set(
            re.findall(r"penstock-launcher.* --([a-z0-9-]+) ", text))
        assert named - OPTIONS - TOOL_OPTIONS - {"set"} == set(), path  # helm has --set


def test_each_alert_has_a_row():
    rules = yaml.safe_load((REPOSITORY / "deploy/monitoring/penstock.rules.yaml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    assert set(re.findall(r"`(Penstock\w+)`", (DOCS / "how-to/monitor.md").read_text())) == alerts


def test_the_values_of_the_kubernetes_page_exist():
    values = yaml.safe_load((REPOSITORY / "deploy/helm/penstock/values.yaml").read_text())
    text = (DOCS / "how-to/kubernetes.md").read_text()
    for group, key, number in re.findall(r"`(\w+)\.(\w+)`(?: \((\d+)\))?", text):
        assert key in values[group], f"{group}.{key}"
        assert not number or values[group][key] == int(number), f"{group}.{key}"


def test_the_readme_links_what_is_there():
    text = (REPOSITORY / "README.md").read_text()
    links = [link for link in re.findall(r'(?:\]\(|src="|srcset=")([^)#"\s]+)', text) if "://" not in link]
    assert "docs/README.md" in links
    assert [link for link in links if not (REPOSITORY / link).exists()] == []


def test_the_pictures_of_the_pages_are_there_and_small():
    named = {page.parent / name for page in [REPOSITORY / "README.md", *DOCS.rglob("*.md")]
             for name in re.findall(r'(?:!\[[^]]*\]\(|src="|srcset=")([^)"\s]+)', page.read_text())}
    assert {path.name for path in named} >= {"live-light.png", "live-dark.png"}
    assert [path for path in named if not path.exists()] == []
    assert [path.name for path in named if path.stat().st_size > 120_000] == []
