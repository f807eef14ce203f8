// The chat: messages, streaming, parameters, and the history in the browser.

import { copy, render } from "./markdown.js";
import { ServerError, stream } from "./server.js";

const $ = (id) => document.getElementById(id);
const STORE = "penstock.chats";
const MOST_CHATS = 50;
const MOST_BYTES = 2_000_000;
const REDRAW_MS = 60;
const SHORTEST_S = 0.05;  // a rate of less time says nothing
const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];

const make = (name, className, text) => {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};

const button = (text, action) => {
  const node = make("button", "", text);
  node.addEventListener("click", () => action(node));
  return node;
};

function load() {
  try {
    const chats = JSON.parse(localStorage.getItem(STORE));
    if (Array.isArray(chats)) return chats;
  } catch { /* nothing kept, or not readable */ }
  return [];
}

let model = "";
let plain = false;  // the model has no chat template
let chats = load();
let chat = fresh();
let abort = null;  // of the answer that streams
let growing = null;  // its article, which is not of a message yet

function fresh() {
  return { id: Date.now(), title: "", system: "", messages: [] };
}

// Drops the oldest chats until the rest fits.
function save() {
  chats = [chat, ...chats.filter((each) => each.id !== chat.id)].filter((each) => each.messages.length > 0);
  chats = chats.slice(0, MOST_CHATS);
  while (chats.length > 1 && JSON.stringify(chats).length > MOST_BYTES) chats.pop();
  try {
    localStorage.setItem(STORE, JSON.stringify(chats));
  } catch { /* storage is full or off: the chat goes on without it */ }
  drawHistory();
}

function drawHistory() {
  $("chats").replaceChildren(...chats.map((each) => {
    const item = make("li");
    const open = button(each.title || "Chat", () => show(each));
    if (each.id === chat.id) open.setAttribute("aria-current", "true");
    const remove = button("×", () => {
      chats = chats.filter((other) => other.id !== each.id);
      localStorage.setItem(STORE, JSON.stringify(chats));
      if (each.id === chat.id) show(fresh());
      drawHistory();
    });
    remove.setAttribute("aria-label", `Delete ${each.title || "chat"}`);
    item.append(open, remove);
    return item;
  }));
}

function show(which) {
  abort?.abort();
  growing = null;
  chat = which;
  $("system").value = chat.system;
  draw();
  drawHistory();
  $("box").focus();
}

// --- Drawing

function drawCall(call) {
  const box = make("div", "call");
  box.append(make("div", "bar", `Tool call: ${call.name}`));
  let text = call.arguments;
  try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* still streaming */ }
  box.append(make("pre", "", text));
  return box;
}

function drawReasoning(message, node) {
  const open = node.querySelector("details")?.open ?? false;
  const box = make("details", "reasoning");
  box.open = open;
  box.append(make("summary", "", message.content || message.calls?.length ? "Reasoning" : "Reasoning…"),
             make("p", "", message.reasoning));
  return box;
}

// The parts of an answer that grow while it streams.
function fill(node, message) {
  const parts = [];
  if (message.reasoning) parts.push(drawReasoning(message, node));
  const text = make("div", "text");
  if (message.role === "assistant" && !message.plain) text.append(render(message.content));
  else text.append(make("p", "verbatim", message.content));
  parts.push(text, ...(message.calls ?? []).map(drawCall));
  if (message.error) parts.push(make("p", "error", message.error));
  if (message.note) parts.push(make("p", "note", message.note));
  node.querySelector(".body").replaceChildren(...parts);
}

function actionsOf(message, index) {
  const actions = make("div", "actions");
  const last = index === chat.messages.length - 1;
  if (message.content) actions.append(button("Copy", (self) => copy(message.content, self)));
  if (message.role === "assistant" && last) actions.append(button("Regenerate", regenerate));
  const lastUser = chat.messages.findLastIndex((each) => each.role === "user");
  if (index === lastUser) actions.append(button("Edit", edit));
  return actions;
}

function drawMessage(message, index) {
  const node = make("article", message.role);
  const names = { user: "You", assistant: plain ? "Completion" : "Model", tool: "Tool result" };
  node.append(make("h2", "", names[message.role]), make("div", "body"));
  fill(node, message);
  if (!abort) node.append(actionsOf(message, index));
  return node;
}

function draw() {
  const empty = make("p", "empty", plain
    ? "This model has no chat template, so it continues your text."
    : "Ask something. Chats are kept in this browser only.");
  $("log").replaceChildren(...(chat.messages.length > 0 ? chat.messages.map(drawMessage) : [empty]));
  if (growing) $("log").append(growing);
  $("log").scrollTop = $("log").scrollHeight;
  $("send").hidden = abort !== null;
  $("stop").hidden = abort === null;
  $("log").setAttribute("aria-busy", String(abort !== null));
  const call = openCalls()[0];
  $("box").placeholder = call ? `Result of ${call.name}`
    : "Message. Enter sends, Shift+Enter starts a new line";
}

// --- Requests

// Calls of the newest answer that have no result yet.
function openCalls() {
  const at = chat.messages.findLastIndex((each) => each.role === "assistant");
  const calls = at < 0 ? [] : chat.messages[at].calls ?? [];
  return calls.slice(chat.messages.length - 1 - at);
}

function numbers() {
  const body = {};
  for (const name of NUMBERS) {
    if ($(name).value !== "") body[name] = Number($(name).value);
  }
  return body;
}

function toMessage(message) {
  if (message.role !== "assistant" || !message.calls?.length) {
    const { role, content, tool_call_id } = message;
    return tool_call_id ? { role, content, tool_call_id } : { role, content };
  }
  const calls = message.calls.map((call) => ({
    id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } }));
  return { role: "assistant", content: message.content, tool_calls: calls };
}

function requestBody() {
  const common = { model, stream: true, stream_options: { include_usage: true }, ...numbers() };
  if (plain) {
    return { ...common, prompt: chat.messages.map((each) => each.content).join("") };
  }
  const messages = chat.messages.map(toMessage);
  if (chat.system) messages.unshift({ role: "system", content: chat.system });
  const tools = $("tools").value.trim();
  if (!tools) return { ...common, messages };
  let parsed;
  try {
    parsed = JSON.parse(tools);
  } catch (error) {
    throw new ServerError(`The field Tools is no JSON: ${error.message}`, 0, "tools");
  }
  return { ...common, messages, tools: parsed };
}

function takeDelta(answer, choice) {
  const delta = choice.delta ?? { content: choice.text };
  answer.content += delta.content ?? "";
  answer.reasoning += delta.reasoning_content ?? "";
  for (const piece of delta.tool_calls ?? []) {
    const call = (answer.calls[piece.index ?? 0] ??= { id: "", name: "", arguments: "" });
    call.id ||= piece.id ?? "";
    call.name += piece.function?.name ?? "";
    call.arguments += piece.function?.arguments ?? "";
  }
  return choice.finish_reason ?? null;
}

function noteOf(usage, reason, first, last) {
  const parts = [];
  if (usage) {
    parts.push(`${usage.prompt_tokens} prompt tokens, ${usage.completion_tokens} answer tokens`);
    const seconds = (last - first) / 1000;
    if (usage.completion_tokens > 1 && seconds >= SHORTEST_S) {
      parts.push(`${((usage.completion_tokens - 1) / seconds).toFixed(1)} tokens/s`);
    }
  }
  if (reason === "length") parts.push("ended at the most tokens");
  return parts.join(" · ");
}

async function receive(answer, redraw) {
  let usage = null;
  let reason = null;
  let first = 0;
  let last = 0;
  const path = plain ? "v1/completions" : "v1/chat/completions";
  for await (const chunk of stream(path, requestBody(), abort.signal)) {
    usage = chunk.usage ?? usage;
    if (!chunk.choices?.length) continue;
    last = performance.now();
    first ||= last;
    reason = takeDelta(answer, chunk.choices[0]) ?? reason;
    redraw();
  }
  answer.note = noteOf(usage, reason, first, last);
}

// Answers the messages of the chat.
async function generate() {
  const answer = { role: "assistant", content: "", reasoning: "", calls: [], plain };
  const mine = chat;
  abort = new AbortController();
  const request = requestStart(answer);
  let pending = 0;
  const redraw = () => {
    pending ||= setTimeout(() => { pending = 0; if (chat === mine) request.redraw(); }, REDRAW_MS);
  };
  try {
    await receive(answer, redraw);
  } catch (error) {
    if (error.name === "AbortError") answer.note = "Stopped.";
    else answer.error = error.message;
  }
  clearTimeout(pending);
  abort = null;
  growing = null;
  mine.messages.push(answer);
  if (chat === mine) {
    save();
    draw();
  }
}

// Shows the answer below the messages while it grows.
function requestStart(answer) {
  const node = drawMessage(answer, -1);
  node.querySelector(".body").append(make("p", "note", "…"));
  growing = node;
  draw();
  return {
    redraw() {
      const log = $("log");
      const follow = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
      fill(node, answer);
      if (follow) log.scrollTop = log.scrollHeight;
    },
  };
}

function send() {
  const text = $("box").value;
  if (abort || !text.trim()) return;
  const calls = openCalls();
  chat.system = $("system").value.trim();
  chat.title ||= text.trim().slice(0, 60);
  chat.messages.push(calls.length > 0 ? { role: "tool", content: text, tool_call_id: calls[0].id }
                                      : { role: "user", content: text });
  $("box").value = "";
  save();
  if (calls.length > 1) draw();
  else generate();
}

function regenerate() {
  if (abort) return;
  chat.messages.pop();
  chat.system = $("system").value.trim();
  generate();
}

function edit() {
  if (abort) return;
  const at = chat.messages.findLastIndex((each) => each.role === "user");
  $("box").value = chat.messages[at].content;
  chat.messages.length = at;
  draw();
  $("box").focus();
}

export function start(name, hasTemplate) {
  model = name;
  plain = !hasTemplate;
  draw();
}

export function set() {
  $("send").addEventListener("click", send);
  $("stop").addEventListener("click", () => abort?.abort());
  $("new").addEventListener("click", () => show(fresh()));
  $("box").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") abort?.abort();
  });
  const narrow = matchMedia("(max-width: 700px)").matches;
  $("history").open = !narrow;
  drawHistory();
  draw();
}
