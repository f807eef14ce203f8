// Plain Node: fetch, and server-sent events read as an EventSource reads them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CALL, SAID, WEATHER, messages, says, url } from "./common.mjs";

const post = (path, body, signal) =>
  fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });

// The data of each event. The network may divide lines anywhere.
async function* events(response) {
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    rest += piece;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const event = rest.slice(0, end);
      if (event.startsWith("data:")) yield event.slice(5).trimStart();
    }
  }
  assert.equal(rest, "");
}

test("generate", async () => {
  const response = await post("/generate", { inputs: says(SAID), parameters: { details: true } });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^application\/json/);
  assert.ok(Number(response.headers.get("x-generated-tokens")) > 5);
  const answer = await response.json();
  assert.equal(answer.generated_text, SAID);
  assert.equal(answer.details.finish_reason, "eos_token");
});

test("generate_stream", async () => {
  const response = await post("/generate_stream", { inputs: says(SAID), parameters: { details: true } });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const all = [];
  for await (const data of events(response)) all.push(JSON.parse(data));
  assert.deepEqual(all.map((event) => event.index), all.map((_, i) => i + 1));
  assert.equal(all.at(-1).generated_text, SAID);
  assert.equal(all.map((e) => (e.token.special ? "" : e.token.text)).join(""), SAID);
});

test("streamed chat ends with [DONE]", async () => {
  const response = await post("/v1/chat/completions", { messages: messages(says(SAID)), stream: true });
  const all = [];
  for await (const data of events(response)) all.push(data);
  assert.equal(all.pop(), "[DONE]");
  assert.equal(all.map((data) => JSON.parse(data).choices[0].delta.content ?? "").join(""), SAID);
});

test("tool call", async () => {
  const response = await post("/v1/chat/completions", {
    messages: messages(says(CALL)), tools: [WEATHER], tool_choice: "required" });
  const call = (await response.json()).choices[0].message.tool_calls[0].function;
  assert.equal(call.name, "get_weather");
  assert.deepEqual(JSON.parse(call.arguments), { city: "Paris" });
});

test("errors are JSON", async () => {
  const response = await post("/generate", { inputs: "", parameters: {} });
  assert.equal(response.status, 422);
  assert.deepEqual(await response.json(), {
    error: "Input validation error: `inputs` cannot be empty", error_type: "validation" });
});

test("an aborted stream leaves the server serving", async () => {
  const abort = new AbortController();
  const response = await post("/generate_stream", { inputs: "[[loop]]", parameters: { max_new_tokens: 1000 } },
    abort.signal);
  await events(response).next();
  abort.abort();
  assert.equal((await post("/generate", { inputs: says(SAID) })).status, 200);
});
