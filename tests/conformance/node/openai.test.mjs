import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { CALL, SAID, SCHEMA, WEATHER, all, messages, says, url } from "./common.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0 });
const chat = (content, more = {}) =>
  client.chat.completions.create({ model: "tgi", messages: messages(content), max_tokens: 400, ...more });

test("chat", async () => {
  assert.equal((await chat(says(SAID))).choices[0].message.content, SAID);
});

test("streamed chat", async () => {
  const chunks = await all(await chat(says(SAID), { stream: true }));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), SAID);
});

test("completion, plain and streamed", async () => {
  const request = { model: "tgi", prompt: says(SAID), max_tokens: 400 };
  assert.equal((await client.completions.create(request)).choices[0].text, SAID);
  const chunks = await all(await client.completions.create({ ...request, stream: true }));
  assert.ok(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("").startsWith(SAID));
});

test("grammar", async () => {
  const answer = await chat("[[dump]]", { response_format: { type: "json", value: SCHEMA } });
  assert.ok([1, 2].includes(JSON.parse(answer.choices[0].message.content).grammar_type));
});

test("tool call, plain and streamed", async () => {
  const tools = { tools: [WEATHER], tool_choice: "required" };
  const call = (await chat(says(CALL), tools)).choices[0].message.tool_calls[0].function;
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Paris" }]);
  const chunks = await all(await chat(says(CALL), { ...tools, stream: true }));
  const pieces = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []).flat();
  assert.deepEqual(JSON.parse(pieces.map((piece) => piece.function.arguments ?? "").join("")), { city: "Paris" });
});

test("the client's own error", async () => {
  await assert.rejects(chat("Hello", { max_tokens: 0 }), OpenAI.UnprocessableEntityError);
});
