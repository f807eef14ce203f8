// The text that the shard outputs, and the address of the server. test_node_clients.py sets both.
export const url = process.env.PENSTOCK_URL;
export const SAID = 'The quick brown fox: "ja", naïve.';
export const says = (text) => `Say <<<${text}>>> please.`;
export const messages = (content) => [{ role: "user", content }];
export const CALL = '{"function": {"_name": "get_weather", "city": "Paris"}}';
export const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
export const WEATHER = {
  type: "function",
  function: { name: "get_weather", description: "The weather of a city", parameters: SCHEMA },
};
export async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}
// Runs `body` while the server runs as many endless requests as it admits (test_node_clients.py: 8).
export async function whileFull(body) {
  const abort = new AbortController();
  const held = Array.from({ length: 8 }, () =>
    fetch(`${url}/generate_stream`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ inputs: "[[loop]][[slow:50]]", parameters: { max_new_tokens: 200 } }),
      signal: abort.signal,
    }));
  try {
    for (const response of await Promise.all(held)) await response.body.getReader().read();
    await body();
  } finally {
    abort.abort();
  }
}

// For agents: two functions, an answer that calls both, and what the model says to their results.
export const FUNCTIONS = ["get_weather", "get_time"].map((name) => ({ name, description: "Looks it up.", parameters: SCHEMA }));
export const ANSWER = "It is 12 and noon.";
export const QUESTION = says(`<think>
Look it up.
</think>

I look.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>
<tool_call>
{"name": "get_time", "arguments": {"city": "Rome"}}
</tool_call>
`);
export const toolResult = (name, { city }) => (name === "get_time" ? `noon in ${city}: <<<${ANSWER}>>>` : `12 degrees in ${city}`);
