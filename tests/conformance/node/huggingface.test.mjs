// The present @huggingface/inference: all calls use the OpenAI routes (huggingface2.test.mjs has TGI's own).
import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceClient, InferenceClientProviderApiError } from "@huggingface/inference";
import { CALL, SAID, SCHEMA, WEATHER, all, messages, says, url, whileFull } from "./common.mjs";

const client = new InferenceClient("unused", { endpointUrl: url, retry_on_error: false });
const parameters = { max_new_tokens: 400, return_full_text: false };
const told = (error) => JSON.stringify(error.httpResponse.body);

// The class of errors that contain the server's answer.
const refused = (call, status, text) =>
  assert.rejects(call, (error) => {
    assert.ok(error instanceof InferenceClientProviderApiError, String(error));
    assert.equal(error.httpResponse.status, status);
    assert.ok(told(error).includes(text), told(error));
    return true;
  });

test("text generation", async () => {
  assert.equal((await client.textGeneration({ inputs: says(SAID), parameters })).generated_text, SAID);
});

// This version sends texts to the route of completions and returns its chunks unchanged.
test("streamed text generation", async () => {
  const chunks = await all(client.textGenerationStream({ inputs: says(SAID), parameters }));
  assert.ok(chunks.length > 5);
  assert.ok(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("").startsWith(SAID));
});

test("chat, plain and streamed", async () => {
  const request = { messages: messages(says(SAID)), max_tokens: 400 };
  assert.equal((await client.chatCompletion(request)).choices[0].message.content, SAID);
  const chunks = await all(client.chatCompletionStream(request));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), SAID);
});

test("chat with the grammar of TGI", async () => {
  const answer = await client.chatCompletion({
    messages: messages("[[dump]]"), max_tokens: 400, response_format: { type: "json", value: SCHEMA } });
  assert.ok([1, 2].includes(JSON.parse(answer.choices[0].message.content).grammar_type));
});

const request = { messages: messages(says(CALL)), max_tokens: 400, tools: [WEATHER], tool_choice: "required" };

test("tool call", async () => {
  const call = (await client.chatCompletion(request)).choices[0].message.tool_calls[0].function;
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Paris" }]);
});

test("streamed tool call", async () => {
  const chunks = await all(client.chatCompletionStream(request));
  const pieces = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []).flat();
  assert.equal(pieces[0].function.name, "get_weather");
  assert.deepEqual(JSON.parse(pieces.map((piece) => piece.function.arguments ?? "").join("")), { city: "Paris" });
});

test("a bad value", () =>
  refused(client.textGeneration({ inputs: "Hello", parameters: { max_new_tokens: 0 } }), 422,
    "`max_new_tokens` must be strictly positive"));

test("a failed generation", () =>
  refused(client.textGeneration({ inputs: "[[fail:1]]", parameters }), 424, "Request failed during generation"));

test("overload", () => whileFull(() =>
  refused(client.textGeneration({ inputs: "Hello", parameters }), 429, "Model is overloaded")));

test("an error inside a stream", async () => {
  const stream = client.textGenerationStream({ inputs: "[[fail:3]] one two three four five", parameters });
  await assert.rejects(all(stream), /Request failed during generation/);
});
