// The live view: what each step computed, as the scheduler reports it.

import * as ledger from "./ledger.js";
import { call, events } from "./server.js";

const $ = (id) => document.getElementById(id);
const MOST_STEPS = 60;
const RETRY_MS = 2000;
const AXIS = 64;  // px at the left of a picture
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

// The vertical axis: the largest value with its unit, and zero.
function drawAxis(paint, width, height, most) {
  paint.globalAlpha = 1;
  paint.strokeStyle = color("--line");
  paint.fillStyle = color("--soft");
  paint.font = "12px system-ui, sans-serif";
  paint.beginPath();
  for (const y of [4, height - 0.5]) {
    paint.moveTo(AXIS, y);
    paint.lineTo(width, y);
  }
  paint.stroke();
  paint.textAlign = "right";
  paint.fillText(most, AXIS - 6, 12);
  paint.fillText("0", AXIS - 6, height - 3);
}

function drawSteps() {
  const [paint, width, height] = surface($("steps"));
  const most = Math.max(1, ...steps.map((step) => step.parts.reduce((sum, part) => sum + part.rows, 0)));
  const column = (width - AXIS) / MOST_STEPS;
  drawAxis(paint, width, height, `${most} rows`);
  steps.forEach((step, i) => {
    let bottom = height;
    for (const part of step.parts) {
      const size = Math.max(1, (part.rows / most) * (height - 4));
      paint.fillStyle = color(part.prompt ? "--prompt" : "--decode");
      paint.globalAlpha = 1 - 0.5 * ((part.slot % 4) / 4);
      const x = AXIS + (MOST_STEPS - steps.length + i) * column;
      paint.fillRect(x, bottom - size, Math.max(1, column - 2), Math.max(1, size - 1));
      bottom -= size;
    }
  });
}

function drawTimes() {
  const [paint, width, height] = surface($("times"));
  const most = Math.max(1, ...steps.map((step) => Math.max(step.taken_us, step.predicted_us)));
  const column = (width - AXIS) / MOST_STEPS;
  drawAxis(paint, width, height, milliseconds(most));
  const place = (us) => height - Math.max(1, (us / most) * (height - 4));
  steps.forEach((step, i) => {
    const x = AXIS + (MOST_STEPS - steps.length + i) * column;
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

// A request of another key has no id.
function drawWaiting(waiting) {
  const item = document.createElement("li");
  const own = waiting.request !== undefined;
  const name = document.createElement(own ? "button" : "span");
  name.textContent = own ? waiting.client_id || `request ${waiting.request}` : "another key's request";
  if (own) name.addEventListener("click", () => ledger.show(String(waiting.request)));
  const who = waiting.behind === undefined ? "" : ` (request ${waiting.behind})`;
  item.append(name, ` waits ${milliseconds(waiting.waits_us)}: ` +
    ledger.describe(waiting.reason) + who);
  return item;
}

function drawQueue(report) {
  $("queue-text").textContent = `${report.running} running, ${report.waiting} waiting` +
    (report.queue_left_out ? `, ${report.queue_left_out} of them not shown` : "");
  // A button that has the focus stays.
  if ($("queue").contains(document.activeElement) && report.queue.length > 0) return;
  $("queue").replaceChildren(...report.queue.map(drawWaiting));
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
  ledger.drawHour(report.last_hour_us);
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

export const set = ledger.set;

export function show() {
  if (abort) return;
  abort = new AbortController();
  follow(abort.signal);
}

export function hide() {
  abort?.abort();
  abort = null;
}
