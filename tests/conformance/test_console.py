"""The page on `/` in headless Chromium: chat, key and live view. The shard is simulated.

deploy/bootstrap --tests installs Chromium; without it the tests skip.
"""

import json

import chromium
import pytest

from penstock_testing import BIN, Server

TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: "
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}]
CALL = ('<think>\nLook it up.\n</think>\n\nI *look*.\n'
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n')
ANSWER = "document.querySelector('article.assistant .text')?.innerText ?? ''"
IDLE = "!document.getElementById('send').hidden && document.querySelectorAll('.actions').length > 1"


@pytest.fixture
def serve(tmp_path):
    """serve(*options): a server that says the text between <<< and >>>."""
    if chromium.find() is None:
        pytest.skip("no Chromium on this machine (deploy/bootstrap --tests installs one)")
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": TEMPLATE}))
    servers = []

    def start(*options):
        servers.append(Server("--shard-program", BIN / "penstock-simshard", "--tool-format", "hermes",
                              "--tokenizer-config-path", config, *options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def page(tmp_path):
    """A page that must end without errors and without requests to other origins."""
    if chromium.find() is None:
        pytest.skip("no Chromium on this machine (deploy/bootstrap --tests installs one)")
    with chromium.Browser(tmp_path / "profile") as browser:
        browser.allowed = ()  # texts of errors that a test expects
        yield browser
        assert [e for e in browser.errors if not any(text in e for text in browser.allowed)] == []
        assert [u for u in browser.requests if not u.startswith(browser.url)] == []


def open_page(page, server):
    page.url = server.url
    page.open(server.url + "/")
    page.wait("document.title.includes('·')")


def say(page, text):
    page.run("document.getElementById('box').focus()")
    page.type(text)
    page.press("Enter")


def test_a_chat_streams_and_shows_reasoning_and_a_tool_call(page, serve):
    open_page(page, serve("--tokens", "echo"))
    page.run(f"document.getElementById('tools').value = {json.dumps(json.dumps(TOOLS))}")
    say(page, f"Say <<<{CALL}>>>")
    page.wait(IDLE)
    assert page.run(ANSWER).strip() == "I look."
    assert page.run("document.querySelector('.text em').textContent") == "look"
    assert page.run("document.querySelector('.reasoning p').textContent").strip() == "Look it up."
    assert "get_weather" in page.run("document.querySelector('.call .bar').textContent")
    assert json.loads(page.run("document.querySelector('.call pre').textContent")) == {"city": "Paris"}
    assert "answer tokens" in page.run("document.querySelector('article.assistant .note').textContent")


def test_text_of_the_model_is_never_markup(page, serve):
    open_page(page, serve("--tokens", "echo"))
    say(page, 'Say <<<<img src="x"> [a](javascript:alert) `<b>`>>>')
    page.wait(IDLE)
    assert page.run("document.querySelectorAll('#log img, #log a, #log b').length") == 0
    assert page.run(ANSWER).strip() == '<img src="x"> a <b>'


def test_stop_ends_the_request(page, serve):
    server = serve("--tokens", "hash", "--step-time", "20ms")
    open_page(page, server)
    say(page, "Tell a long story.")
    page.wait(f"({ANSWER}).length > 0")
    page.press("Escape")
    page.wait(IDLE)
    assert page.run("document.querySelector('article.assistant .note').textContent") == "Stopped."


def test_an_answer_still_grows_after_the_page_has_asked_for_the_model_again(page, serve):
    open_page(page, serve("--tokens", "hash", "--step-time", "20ms"))
    say(page, "Tell a long story.")
    page.wait(f"({ANSWER}).length > 0")
    page.run("document.getElementById('model').textContent = ''")
    page.run("globalThis.dispatchEvent(new Event('online'))")
    page.wait("document.getElementById('model').textContent !== ''")
    shown = len(page.run(ANSWER))
    assert shown > 0
    page.wait(f"({ANSWER}).length > {shown} && !document.getElementById('stop').hidden")
    page.press("Escape")
    page.wait(IDLE)


def test_a_key_is_asked_for_and_used(page, serve):
    server = serve("--tokens", "echo", "--api-key", "secret")
    page.allowed = ("401",)
    page.url = server.url
    page.open(server.url + "/")
    page.wait("document.title.includes('·') || document.getElementById('ask').open")
    if not page.run("document.getElementById('ask').open"):
        say(page, "Say <<<hello>>>")
        page.wait("document.getElementById('ask').open")
    page.run("document.getElementById('key').focus()")
    page.type("secret")
    page.press("Enter")
    page.wait(IDLE)
    assert page.run(ANSWER).strip() == "hello"


def test_the_live_view_shows_a_step_soon(page, serve):
    open_page(page, serve("--tokens", "echo"))
    page.run("document.getElementById('tab-live').click()")
    page.wait("document.getElementById('live-state').textContent.startsWith('Connected')")
    seen = page.run("""(async () => {
      const text = document.getElementById('step-text');
      const shown = new Promise((done) =>
        new MutationObserver(() => done(performance.now())).observe(text, { childList: true }));
      await (await fetch('v1/completions', { method: 'POST', body: JSON.stringify({
        prompt: 'Say <<<a>>>', max_tokens: 1 }), headers: { 'content-type': 'application/json' } })).text();
      return [performance.now(), await shown];
    })()""")
    assert seen[1] - seen[0] < 250
    assert page.run("document.getElementById('step-text').textContent").startswith("Step ")
    assert " of " in page.run("document.getElementById('block-text').textContent")


def test_the_live_view_names_the_queue_and_the_time_of_a_request(page, serve):
    open_page(page, serve("--tokens", "hash", "--step-time", "20ms", "--max-batch-size", "1"))
    page.run("document.getElementById('tab-live').click()")
    page.wait("document.getElementById('live-state').textContent.startsWith('Connected')")
    page.run("""globalThis.answers = ['first', 'second'].map((id) => fetch('v1/completions', {
      method: 'POST', headers: { 'content-type': 'application/json', 'x-request-id': id },
      body: JSON.stringify({ prompt: 'a', max_tokens: 60, ignore_eos: true }) })
      .then((response) => response.text())); 0""")
    page.wait("document.querySelector('#queue button') !== null")
    assert "the batch holds as many requests as it may" in page.run(
        "document.getElementById('queue').textContent")
    # Until then the request has waited longer for the step that refused it.
    page.wait("""(document.querySelector('#queue button').click(),
      document.getElementById('ledger-text').textContent.includes('most of it: the batch holds'))""")
    assert page.run("document.querySelectorAll('#ledger-bar span').length") > 0
    page.run("Promise.all(answers).then(() => 0)")
    page.wait("document.querySelectorAll('#hour li').length > 0")


def test_a_view_scrolls_alone(page, serve):
    page.call("Emulation.setDeviceMetricsOverride", width=1000, height=500, deviceScaleFactor=1, mobile=False)
    open_page(page, serve("--tokens", "echo"))
    for view in ("chat", "live"):
        page.run(f"document.getElementById('tab-{view}').click()")
        assert page.run("document.documentElement.scrollHeight <= innerHeight"), f"{view} has two scroll bars"


def test_tabs_are_used_with_the_keyboard(page, serve):
    open_page(page, serve("--tokens", "echo"))
    page.run("document.getElementById('tab-chat').focus()")
    page.press("ArrowRight")
    page.wait("!document.getElementById('live').hidden && document.activeElement.id === 'tab-live'")
