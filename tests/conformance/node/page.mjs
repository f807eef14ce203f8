// Runs in a browser, in a page of another origin than the server (test_browser.py). Sends what it saw to the origin of
// the page.
import OpenAI from "/openai/index.mjs";

const { url, key, prompt } = await (await fetch("/settings")).json();
const client = (options) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, dangerouslyAllowBrowser: true, ...options });
const request = { model: "tgi", messages: [{ role: "user", content: prompt }], max_tokens: 400 };

const calls = {
  async plain() {
    const { data, request_id } = await client().chat.completions.create(request).withResponse();
    return [data.choices[0].message.content, request_id !== null];
  },
  async streaming() {
    const parts = [];
    for await (const chunk of await client().chat.completions.create({ ...request, stream: true })) {
      parts.push(chunk.choices[0]?.delta.content ?? "");
    }
    return [parts.join(""), parts.length > 5];
  },
  async headers_of_an_account() {
    const own = client({ organization: "org", project: "proj", defaultHeaders: { "x-request-id": "of-the-page" } });
    return (await own.chat.completions.create(request).withResponse()).request_id;
  },
  async an_ignored_key() {
    const { response } = await client().chat.completions.create({ ...request, temprature: 1 }).withResponse();
    return response.headers.get("x-penstock-ignored");
  },
  async a_wrong_key() {
    return (await client({ apiKey: "wrong" }).chat.completions.create(request).catch((error) => error)).status;
  },
  async a_header_that_is_not_allowed() {
    const other = client({ defaultHeaders: { "x-forbidden": "1" } });
    return (await other.chat.completions.create(request).catch((error) => error)).constructor.name;
  },
  async deleting() {
    return (await fetch(`${url}/cached_prompts`, { method: "DELETE", headers: { authorization: `Bearer ${key}` } })).status;
  },
};

const seen = {};
for (const [name, call] of Object.entries(calls)) {
  seen[name] = await call().catch((error) => `failed: ${error} ${error.cause ?? ""}`);
}
await fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
