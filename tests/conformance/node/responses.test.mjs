import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { ANSWER, FUNCTIONS, QUESTION, all, says, toolResult, url } from "./common.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0 });
const tools = FUNCTIONS.map((each) => ({ type: "function", strict: false, ...each }));
const ask = (input, more = {}) => client.responses.create({ model: "tgi", input, temperature: 0, ...more });

for (const stream of [false, true]) {
  test(`an agent loop with two tools${stream ? ", streamed" : ""}`, async () => {
    const conversation = [{ role: "user", content: QUESTION }];
    let answer, calls;
    do {
      answer = await ask(conversation, { tools, stream, store: false });
      if (stream) answer = (await all(answer)).at(-1).response;
      calls = answer.output.filter((item) => item.type === "function_call");
      conversation.push(...answer.output, ...calls.map(({ call_id, name, arguments: text }) =>
        ({ type: "function_call_output", call_id, output: toolResult(name, JSON.parse(text)) })));
    } while (calls.length > 0 && conversation.length < 20);
    assert.equal(conversation.filter((item) => item.type === "function_call_output").length, 2);
    assert.equal(answer.output.at(-1).content[0].text, ANSWER);
  });
}

test("the stream helper, which puts the answer together", async () => {
  const stream = client.responses.stream({ model: "tgi", input: QUESTION, temperature: 0, tools });
  const answer = await stream.finalResponse();
  assert.deepEqual(answer.output.map((item) => item.type), ["reasoning", "message", "function_call", "function_call"]);
});

test("a stored response", async () => {
  const first = await ask(says("Hello."));
  const second = await ask(says("Again."), { previous_response_id: first.id });
  assert.equal((await client.responses.retrieve(second.id)).output_text, "Again.");
  assert.equal((await all(client.responses.inputItems.list(second.id, { limit: 1 }))).length, 3);
  await client.responses.delete(second.id);
  await assert.rejects(client.responses.retrieve(second.id), OpenAI.NotFoundError);
});

test("a bad value is BadRequestError", () => assert.rejects(ask("x", { temperature: 5 }), OpenAI.BadRequestError));
