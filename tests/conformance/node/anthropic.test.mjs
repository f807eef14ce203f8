import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { SAID, SCHEMA, all, messages, says, url } from "./common.mjs";

const client = new Anthropic({ baseURL: url, apiKey: "unused", maxRetries: 0 });
const CALLS = `<think>\nLook it up.\n</think>\n\nI look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>\n`;
const TOOLS = ["get_weather", "get_time"].map((name) => ({ name, description: "Looks it up.", input_schema: SCHEMA }));
const request = (text, more = {}) => ({ model: "tgi", max_tokens: 400, messages: messages(says(text)), ...more });

test("a message and its usage", async () => {
  const answer = await client.messages.create(request(SAID));
  assert.equal(answer.content[0].text, SAID);
  assert.equal(answer.stop_reason, "end_turn");
  assert.ok(answer.usage.output_tokens > 5);
});

test("the stream helper gathers thinking, text and calls", async () => {
  const seen = { text: "", thinking: "", json: "" };
  const stream = client.messages.stream(request(CALLS, { tools: TOOLS, thinking: { type: "adaptive" } }));
  stream.on("text", (delta) => { seen.text += delta; });
  stream.on("thinking", (delta) => { seen.thinking += delta; });
  stream.on("inputJson", (delta) => { seen.json += delta; });
  const answer = await stream.finalMessage();
  assert.deepEqual(answer.content.map((block) => block.type), ["thinking", "text", "tool_use", "tool_use"]);
  assert.equal(seen.text, "I look.");
  assert.equal(seen.thinking, "Look it up.");
  assert.equal(seen.json, '{"city": "Paris"}{"city": "Rome"}');
  assert.deepEqual(answer.content[3].input, { city: "Rome" });
  assert.equal(answer.stop_reason, "tool_use");
});

test("an agent loop with two tools", async () => {
  const history = messages(says(CALLS));
  const first = await client.messages.create({ ...request(""), messages: history, tools: TOOLS });
  const results = first.content.filter((block) => block.type === "tool_use").map((block) => ({
    type: "tool_result", tool_use_id: block.id, content: block.name === "get_time" ? says("It is noon.") : "12" }));
  assert.equal(results.length, 2);
  history.push({ role: "assistant", content: first.content }, { role: "user", content: results });
  const last = await client.messages.create({ ...request(""), messages: history, tools: TOOLS });
  assert.equal(last.content[0].text, "It is noon.");
});

test("raw events", async () => {
  const events = await all(await client.messages.create(request(SAID, { stream: true })));
  assert.equal(events[0].type, "message_start");
  assert.equal(events.at(-1).type, "message_stop");
});

test("tokens are counted", async () => {
  const counted = await client.messages.countTokens({ model: "tgi", messages: messages("Hello") });
  assert.ok(counted.input_tokens > 1);
});

test("errors are the library's", async () => {
  await assert.rejects(client.messages.create(request(SAID, { model: "other" })), Anthropic.NotFoundError);
  await assert.rejects(client.messages.create(request(SAID, { max_tokens: 20000 })), Anthropic.BadRequestError);
  const failing = { ...request(""), messages: messages("[[loop]][[fail:3]]"), stream: true };
  await assert.rejects(async () => all(await client.messages.create(failing)), Anthropic.APIError);
});
