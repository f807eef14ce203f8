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
