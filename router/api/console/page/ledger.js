// The time of one request by what it was spent on, and the sums of the last hour.

import { call } from "./server.js";

const $ = (id) => document.getElementById(id);
const MOST_REASONS = 8;
const KINDS = {
  upload: "the client sends the body",
  parse: "the body is parsed",
  text_queue: "waits for a text thread",
  template: "the chat template is rendered",
  tokenize: "the prompt is tokenized",
  grammar: "the grammar is checked",
  mailbox: "waits for the scheduler",
  shard_queue: "its step waits for an earlier one in the shard",
  prefill: "the prompt is computed",
  recompute: "computed again after a preemption",
  decode: "tokens are computed",
  shared_decode: "tokens are computed in steps with prompts of others",
  grammar_mask: "the mask of the grammar is not ready",
  between_steps: "between its steps",
  preempted: "preempted, waits to continue",
  search: "beam search",
  text: "the end becomes text",
  socket: "the client takes the rest of the answer",
  queue_not_examined: "the next step decides",
  queue_step_tokens: "the step is full",
  queue_prefill_tokens: "the step holds as many prompt tokens as it may",
  queue_total_tokens: "the batch holds as many tokens as it may",
  queue_blocks: "not enough free K/V blocks",
  queue_slots: "all slots are taken",
  queue_batch_size: "the batch holds as many requests as it may",
  queue_order: "an earlier request goes first",
  queue_group: "no group is up",
  queue_step_time: "the step would take longer than its target",
  queue_prefix: "another request is about to compute the same prefix",
  queue_join_size: "too few requests to join together",
  queue_cells: "the padded batch would be too large",
  queue_alone: "a suspect of two losses runs alone",
};

export const describe = (kind) => KINDS[kind] ?? kind.replaceAll("_", " ");

const text = (ms) => (ms < 1000 ? `${ms.toFixed(ms < 10 ? 2 : 0)} ms` : `${(ms / 1000).toFixed(2)} s`);
const largest = (totals) => Object.entries(totals).sort((a, b) => b[1] - a[1]);

function items(entries, whole) {
  return entries.map(([kind, ms], i) => {
    const item = document.createElement("li");
    const key = document.createElement("span");
    key.className = `key kind${i % 6}`;
    const share = whole > 0 ? ` (${((100 * ms) / whole).toFixed(1)} %)` : "";
    item.append(key, `${text(ms)}${share}: ${describe(kind)}`);
    return item;
  });
}

function behind(ledger) {
  if (ledger.behind_other_key) return ", behind a request of another key";
  return ledger.behind === undefined ? "" : `, behind request ${ledger.behind}`;
}

function draw(record) {
  const ledger = record.ledger;
  const entries = largest(ledger.totals_ms);
  $("ledger-text").textContent = `Request ${record.request}, ${record.state}: ${text(ledger.wall_ms)}, ` +
    `most of it: ${describe(ledger.most)}${behind(ledger)}.`;
  $("ledger-bar").replaceChildren(...entries.map(([kind, ms], i) => {
    const bar = document.createElement("span");
    bar.className = `kind${i % 6}`;
    bar.style.flexGrow = String(ms);
    bar.title = `${text(ms)}: ${describe(kind)}`;
    return bar;
  }));
  $("ledger-kinds").replaceChildren(...items(entries, ledger.wall_ms));
}

export async function show(id) {
  $("ledger-id").value = id;
  try {
    const record = await (await call(`requests/${encodeURIComponent(id)}`)).json();
    if (record.ledger) draw(record);
    else $("ledger-text").textContent = "The times of this request are forgotten.";
  } catch (error) {
    $("ledger-text").textContent = error.message;
    $("ledger-bar").replaceChildren();
    $("ledger-kinds").replaceChildren();
  }
}

export function drawHour(sums) {
  const entries = largest(sums).map(([kind, us]) => [kind, us / 1000]);
  if (entries.length === 0) return;
  const whole = entries.reduce((sum, entry) => sum + entry[1], 0);
  $("hour-text").textContent = `${text(whole)} of all requests that ended`;
  $("hour").replaceChildren(...items(entries.slice(0, MOST_REASONS), whole));
}

export function set() {
  $("ledger-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const id = $("ledger-id").value.trim();
    if (id) show(id);
  });
}
