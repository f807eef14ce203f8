// What the shard is told to say, and where the server is: set by test_node_clients.py.
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
