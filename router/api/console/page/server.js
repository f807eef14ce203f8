// Calls of the server: the key, errors in plain words, events of a stream.

const KEY = "penstock.key";
let askForKey = async () => null;

export const onKeyWanted = (ask) => { askForKey = ask; };
export const hasKey = () => sessionStorage.getItem(KEY) !== null;

export class ServerError extends Error {
  constructor(message, status, type) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

// What an error body of any of the server's dialects says.
function errorOf(body, status) {
  let parsed = null;
  try { parsed = JSON.parse(body); } catch { /* plain text */ }
  const error = parsed?.error ?? parsed;
  const message = error?.message ?? (typeof error === "string" ? error : null) ?? parsed?.message;
  return new ServerError(message ?? (body.trim().slice(0, 500) || `The server answered ${status}.`),
                         status, error?.type ?? error?.code ?? parsed?.error_type ?? "");
}

async function send(path, options) {
  const headers = { ...options.headers };
  const key = sessionStorage.getItem(KEY);
  if (key !== null) headers.authorization = `Bearer ${key}`;
  try {
    return await fetch(path, { ...options, headers, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server cannot be reached. Is it running?", 0, "offline");
  }
}

// The answer, if it is a success. Asks for the key when the server does.
export async function call(path, options = {}) {
  for (;;) {
    const response = await send(path, options);
    if (response.ok) return response;
    const error = errorOf(await response.text(), response.status);
    if (response.status !== 401) throw error;
    const key = await askForKey(hasKey());
    if (key === null) throw error;
    sessionStorage.setItem(KEY, key);
  }
}

// The data of each server-sent event.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const parts = rest.split(/\r?\n\r?\n/);
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split(/\r?\n/).filter((line) => line.startsWith("data:"))
          .map((line) => line.slice(5).replace(/^ /, ""));
        if (data.length > 0) yield data.join("\n");
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// The objects of a stream of completions until [DONE].
export async function* stream(path, body, signal) {
  const response = await call(path, {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
  for await (const data of events(response)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw errorOf(data, response.status);
    yield chunk;
  }
  throw new ServerError("The connection ended before the answer did.", 0, "offline");
}
