import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { CALL, SAID, SCHEMA, WEATHER, all, messages, says, url, whileFull } from "./common.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0 });
const chat = (content, more = {}) =>
  client.chat.completions.create({ model: "tgi", messages: messages(content), max_tokens: 400, ...more });
const contentOf = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");

test("chat, its usage and why it ended", async () => {
  const answer = await chat(says(SAID));
  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.choices[0].message.content, SAID);
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.ok(answer.usage.completion_tokens > 5);
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
});

test("a chat that is cut by its length", async () => {
  const answer = await chat(says(SAID), { max_tokens: 3 });
  assert.deepEqual([answer.choices[0].finish_reason, answer.usage.completion_tokens], ["length", 3]);
});

test("streamed chat", async () => {
  const chunks = await all(await chat(says(SAID), { stream: true }));
  assert.equal(contentOf(chunks), SAID);
  assert.ok(chunks.length > 5);
  assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
});

test("streamed usage", async () => {
  const chunks = await all(await chat(says(SAID), { stream: true, stream_options: { include_usage: true } }));
  assert.equal(chunks.at(-1).choices.length, 0);
  assert.ok(chunks.at(-1).usage.completion_tokens > 5);
});

test("details: log probabilities of each token", async () => {
  const { content } = (await chat(says(SAID), { logprobs: true, top_logprobs: 2 })).choices[0].logprobs;
  assert.ok(content.length > 5);
  assert.ok(content.every((token) => typeof token.logprob === "number" && token.top_logprobs.length === 2));
});

test("the stream helper, which puts the answer together", async () => {
  const runner = client.chat.completions.stream({ model: "tgi", messages: messages(says(SAID)), max_tokens: 400 });
  const completion = await runner.finalChatCompletion();
  assert.equal(completion.choices[0].message.content, SAID);
});

test("an aborted stream", async () => {
  const stream = await chat("[[loop]]", { stream: true, max_tokens: 1000 });
  for await (const chunk of stream) {
    assert.equal(chunk.object, "chat.completion.chunk");
    break; // closes the connection
  }
  assert.equal((await chat(says(SAID))).choices[0].message.content, SAID);
});

test("completion, plain and streamed", async () => {
  const request = { model: "tgi", prompt: says(SAID), max_tokens: 400 };
  assert.equal((await client.completions.create(request)).choices[0].text, SAID);
  const chunks = await all(await client.completions.create({ ...request, stream: true }));
  assert.ok(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("").startsWith(SAID));
});

test("models", async () => {
  const models = await all(client.models.list());
  assert.equal(models.length, 1);
  assert.equal(models[0].object, "model");
});

test("grammar", async () => {
  const answer = await chat("[[dump]]", { response_format: { type: "json", value: SCHEMA } });
  const shown = JSON.parse(answer.choices[0].message.content);
  assert.ok([1, 2].includes(shown.grammar_type));
  assert.match(JSON.stringify(shown.grammar), /city/);
});

test("tool call, plain and streamed", async () => {
  const tools = { tools: [WEATHER], tool_choice: "required" };
  const call = (await chat(says(CALL), tools)).choices[0].message.tool_calls[0].function;
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Paris" }]);
  const chunks = await all(await chat(says(CALL), { ...tools, stream: true }));
  const pieces = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []).flat();
  assert.equal(pieces[0].function.name, "get_weather");
  assert.deepEqual(JSON.parse(pieces.map((piece) => piece.function.arguments ?? "").join("")), { city: "Paris" });
});

test("a bad value is UnprocessableEntityError", async () => {
  await assert.rejects(chat("Hello", { max_tokens: 0 }), (error) => {
    assert.ok(error instanceof OpenAI.UnprocessableEntityError);
    assert.equal(error.status, 422);
    return true;
  });
});

test("overload is RateLimitError", () => whileFull(() =>
  assert.rejects(chat("Hello"), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.ok(Number(error.headers.get("retry-after")) > 0);
    return true;
  })));

test("a failed generation is APIError 424", async () => {
  await assert.rejects(chat("[[fail:1]]"), (error) => {
    assert.ok(error instanceof OpenAI.APIError);
    assert.equal(error.status, 424);
    return true;
  });
});

test("an error inside a stream is APIError", async () => {
  const stream = await chat("[[fail:3]] one two three four five", { stream: true });
  await assert.rejects(all(stream), OpenAI.APIError);
});

test("an unknown path is NotFoundError", async () => {
  await assert.rejects(client.files.list(), OpenAI.NotFoundError);
});
