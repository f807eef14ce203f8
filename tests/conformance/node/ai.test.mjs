import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { ANSWER, FUNCTIONS, QUESTION, says, toolResult, url } from "./common.mjs";

const model = createOpenAICompatible({ name: "penstock", baseURL: `${url}/v1`, apiKey: "unused", includeUsage: true })("tgi");
const used = [];
const tools = Object.fromEntries(FUNCTIONS.map(({ name, description, parameters }) => [name, tool({
  description,
  inputSchema: jsonSchema(parameters),
  execute: async (input) => {
    used.push(name);
    return toolResult(name, input);
  },
})]));
const loop = { model, tools, prompt: QUESTION, stopWhen: stepCountIs(4), maxRetries: 0 };

test("an agent loop with two tools", async () => {
  used.length = 0;
  const answer = await generateText(loop);
  assert.equal(answer.text, ANSWER);
  assert.equal(answer.steps.length, 2);
  assert.equal(answer.steps[0].finishReason, "tool-calls");
  assert.equal(answer.steps[0].reasoningText, "Look it up.");
  assert.deepEqual(used.sort(), ["get_time", "get_weather"]);
});

test("an agent loop with two tools, streamed", async () => {
  used.length = 0;
  const answer = streamText({ ...loop, onError: ({ error }) => { throw error; } });
  let text = "";
  for await (const delta of answer.textStream) text += delta;
  assert.ok(text.endsWith(ANSWER));
  assert.equal((await answer.steps).length, 2);
  assert.ok((await answer.usage).outputTokens > 0);
  assert.deepEqual(used.sort(), ["get_time", "get_weather"]);
});

test("a bad value is APICallError", async () => {
  await assert.rejects(generateText({ model, prompt: says("x"), temperature: 5, maxRetries: 0 }), (error) => {
    assert.ok(APICallError.isInstance(error));
    assert.equal(error.statusCode, 400);
    assert.match(error.message, /temperature/);
    return true;
  });
});
