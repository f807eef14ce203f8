// @huggingface/inference 2, the last that speaks TGI's own form to an endpoint.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HfInference } from "huggingface-inference-2";
import { CALL, SAID, SCHEMA, WEATHER, all, messages, says, url, whileFull } from "./common.mjs";

const client = new HfInference("unused", { retry_on_error: false }).endpoint(url);
const chats = new HfInference("unused", { retry_on_error: false }).endpoint(`${url}/v1/chat/completions`);
// Without a model this version asks the hub for one, even if the endpoint is given.
const model = "tgi";
const parameters = { max_new_tokens: 400, return_full_text: false };

test("text generation with details", async () => {
  const answer = await client.textGeneration({ model, inputs: says(SAID), parameters: { ...parameters, details: true } });
  assert.equal(answer.generated_text, SAID);
  assert.equal(answer.details.finish_reason, "eos_token");
  assert.equal(answer.details.generated_tokens, answer.details.tokens.length);
});

test("streamed text generation with details", async () => {
  const events = await all(client.textGenerationStream({
    model, inputs: says(SAID), parameters: { ...parameters, details: true } }));
  assert.equal(events.map((event) => (event.token.special ? "" : event.token.text)).join(""), SAID);
  assert.ok(events.length > 5);
  assert.equal(events.at(-1).generated_text, SAID);
  assert.equal(events.at(-1).details.finish_reason, "eos_token");
});

test("best of several", async () => {
  const answer = await client.textGeneration({
    model, inputs: says(SAID), parameters: { ...parameters, details: true, do_sample: true, best_of: 2 } });
  assert.equal(answer.details.best_of_sequences.length, 1);
});

test("grammar", async () => {
  const answer = await client.textGeneration({
    model, inputs: "[[dump]]", parameters: { ...parameters, grammar: { type: "json", value: SCHEMA } } });
  const shown = JSON.parse(answer.generated_text);
  assert.ok([1, 2].includes(shown.grammar_type));
  assert.match(JSON.stringify(shown.grammar), /city/);
});

test("chat, plain and streamed", async () => {
  const request = { model, messages: messages(says(SAID)), max_tokens: 400 };
  assert.equal((await chats.chatCompletion(request)).choices[0].message.content, SAID);
  const chunks = await all(chats.chatCompletionStream(request));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), SAID);
});

test("tool call", async () => {
  const answer = await chats.chatCompletion({
    model, messages: messages(says(CALL)), max_tokens: 400, tools: [WEATHER], tool_choice: "required" });
  const call = answer.choices[0].message.tool_calls[0].function;
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Paris" }]);
});

test("a bad value", () =>
  assert.rejects(client.textGeneration({ model, inputs: "Hello", parameters: { max_new_tokens: 0 } }),
    /`max_new_tokens` must be strictly positive/));

test("a failed generation", () =>
  assert.rejects(client.textGeneration({ model, inputs: "[[fail:1]]", parameters }), /Request failed during generation/));

test("overload", () => whileFull(() =>
  assert.rejects(client.textGeneration({ model, inputs: "Hello", parameters }), /Model is overloaded/)));

test("an error inside a stream", () =>
  assert.rejects(all(client.textGenerationStream({ model, inputs: "[[fail:3]] one two three four five", parameters })),
    /Request failed during generation/));
