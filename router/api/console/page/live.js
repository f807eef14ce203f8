// The live view: what each step computed, as the scheduler reports it.

import { call, events } from "./server.js";

const $ = (id) => document.getElementById(id);
const MOST_STEPS = 60;
const RETRY_MS = 2000;
const REASONS = {
  not_examined: "the next step decides",
  step_tokens: "the step is full",
  prefill_tokens: "the step holds as many prompt tokens as it may",
  total_tokens: "the batch holds as many tokens as it may",
  blocks: "not enough free K/V blocks",
  slots: "all slots are taken",
  batch_size: "the batch holds as many requests as it may",
  order: "an earlier request goes first",
  group: "no group is up",
  step_time: "the step would take longer than its target",
  prefix: "another request is about to compute the same prefix",
};

let abort = null;
let steps = [];

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rowsOf = (step, prompt) =>
  step.parts.reduce((sum, part) => sum + (part.prompt === prompt ? part.rows : 0), 0);
const milliseconds = (us) => (us / 1000).toFixed(us < 10_000 ? 2 : 1) + " ms";

function surface(canvas) {
  const scale = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * scale;
  canvas.height = canvas.clientHeight * scale;
  const paint = canvas.getContext("2d");
  paint.scale(scale, scale);
  return [paint, canvas.clientWidth, canvas.clientHeight];
}

function drawSteps() {
  const [paint, width, height] = surface($("steps"));
  const most = Math.max(1, ...steps.map((step) => step.parts.reduce((sum, part) => sum + part.rows, 0)));
  const column = width / MOST_STEPS;
  steps.forEach((step, i) => {
    let bottom = height;
    for (const part of step.parts) {
      const size = Math.max(1, (part.rows / most) * (height - 4));
      paint.fillStyle = color(part.prompt ? "--prompt" : "--decode");
      paint.globalAlpha = 1 - 0.5 * ((part.slot % 4) / 4);
      const x = (MOST_STEPS - steps.length + i) * column;
      paint.fillRect(x, bottom - size, Math.max(1, column - 2), Math.max(1, size - 1));
      bottom -= size;
    }
  });
}

function drawTimes() {
  const [paint, width, height] = surface($("times"));
  const most = Math.max(1, ...steps.map((step) => Math.max(step.taken_us, step.predicted_us)));
  const column = width / MOST_STEPS;
  const place = (us) => height - Math.max(1, (us / most) * (height - 4));
  steps.forEach((step, i) => {
    const x = (MOST_STEPS - steps.length + i) * column;
    paint.fillStyle = color("--taken");
    paint.fillRect(x, place(step.taken_us), Math.max(1, column - 2), height);
    if (step.predicted_us === 0) return;
    paint.fillStyle = color("--predicted");
    paint.fillRect(x - 1, place(step.predicted_us) - 1, column, 3);
  });
}

function drawBlocks(blocks) {
  const total = Math.max(1, Object.values(blocks).reduce((sum, count) => sum + count, 0));
  $("blocks").replaceChildren(...["used", "retiring", "cached", "free"].map((state) => {
    const bar = document.createElement("span");
    bar.className = state;
    bar.style.flexGrow = String(blocks[state]);
    bar.title = `${blocks[state]} ${state}`;
    return bar;
  }));
  $("block-text").textContent =
    `${blocks.used} used, ${blocks.retiring} retiring, ${blocks.cached} cached, ${blocks.free} free of ${total}`;
}

function drawQueue(report) {
  $("queue-text").textContent = `${report.running} running, ${report.waiting} waiting`;
  $("queue").replaceChildren(...Object.entries(report.waiting_for).map(([reason, count]) => {
    const item = document.createElement("li");
    item.textContent = `${count} waiting: ${REASONS[reason] ?? reason.replaceAll("_", " ")}`;
    return item;
  }));
}

function take(report) {
  steps = [...steps, ...report.steps].slice(-MOST_STEPS);
  const last = steps.at(-1);
  if (last) {
    const sequences = last.parts.length + last.parts_left_out;
    $("step-text").textContent = `Step ${last.step}: ${rowsOf(last, true)} prompt tokens and ` +
      `${rowsOf(last, false)} decode rows of ${sequences} ${sequences === 1 ? "sequence" : "sequences"}`;
    $("time-text").textContent = `Measured ${milliseconds(last.taken_us)}` +
      (last.predicted_us ? `, predicted ${milliseconds(last.predicted_us)}` : ", no prediction yet");
  }
  drawSteps();
  drawTimes();
  drawBlocks(report.blocks);
  drawQueue(report);
}

async function follow(signal) {
  while (!signal.aborted) {
    try {
      const response = await call("console/events", { signal });
      $("live-state").textContent = "Connected. Steps appear as they end.";
      for await (const data of events(response)) {
        const report = JSON.parse(data);
        if (report.error) throw new Error(report.error);
        take(report);
      }
    } catch (error) {
      if (signal.aborted) return;
      $("live-state").textContent = `Not connected: ${error.message}`;
      if (error.status === 401) return;
    }
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

export function show() {
  if (abort) return;
  abort = new AbortController();
  follow(abort.signal);
}

export function hide() {
  abort?.abort();
  abort = null;
}
