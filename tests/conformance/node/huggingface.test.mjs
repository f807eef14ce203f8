import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceClient } from "@huggingface/inference";
import { CALL, SAID, SCHEMA, WEATHER, all, messages, says, url } from "./common.mjs";

const client = new InferenceClient("unused", { endpointUrl: url, retry_on_error: false });
const parameters = { max_new_tokens: 400, return_full_text: false };

test("text generation", async () => {
  assert.equal((await client.textGeneration({ inputs: says(SAID), parameters })).generated_text, SAID);
});

test("streamed text generation with details", async () => {
  const events = await all(client.textGenerationStream({
    inputs: says(SAID), parameters: { ...parameters, details: true } }));
  assert.equal(events.map((event) => (event.token.special ? "" : event.token.text)).join(""), SAID);
  assert.equal(events.at(-1).generated_text, SAID);
  assert.equal(events.at(-1).details.finish_reason, "eos_token");
});

test("grammar", async () => {
  const answer = await client.textGeneration({
    inputs: "[[dump]]", parameters: { ...parameters, grammar: { type: "json", value: SCHEMA } } });
  assert.ok([1, 2].includes(JSON.parse(answer.generated_text).grammar_type));
});

test("chat, plain and streamed", async () => {
  const request = { messages: messages(says(SAID)), max_tokens: 400 };
  assert.equal((await client.chatCompletion(request)).choices[0].message.content, SAID);
  const chunks = await all(client.chatCompletionStream(request));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), SAID);
});

test("tool call", async () => {
  const answer = await client.chatCompletion({
    messages: messages(says(CALL)), max_tokens: 400, tools: [WEATHER], tool_choice: "required" });
  const call = answer.choices[0].message.tool_calls[0].function;
  assert.equal(call.name, "get_weather");
});

test("the client's own error", async () => {
  await assert.rejects(client.textGeneration({ inputs: "Hello", parameters: { max_new_tokens: 0 } }), Error);
});
