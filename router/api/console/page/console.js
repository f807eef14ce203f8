// Starts the page: tabs, the key, the model's name.

import * as chat from "./chat.js";
import * as live from "./live.js";
import { call, onKeyWanted } from "./server.js";

const $ = (id) => document.getElementById(id);
const TABS = ["chat", "live"];

function select(name) {
  for (const each of TABS) {
    const chosen = each === name;
    $(`tab-${each}`).setAttribute("aria-selected", String(chosen));
    $(`tab-${each}`).tabIndex = chosen ? 0 : -1;
    $(each).hidden = !chosen;
  }
  if (name === "live") live.show();
  else live.hide();
}

function setTabs() {
  for (const each of TABS) {
    $(`tab-${each}`).addEventListener("click", () => select(each));
    $(`tab-${each}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = TABS.find((name) => name !== each);
      select(other);
      $(`tab-${other}`).focus();
    });
  }
}

let asking = null;  // one dialog for all calls that wait for a key

function askForKey(refused) {
  asking ??= new Promise((done) => {
    const end = (key) => {
      $("ask").close();
      asking = null;
      done(key);
    };
    const accept = () => { if ($("key").value) end($("key").value.trim()); };
    $("ask-title").textContent = refused ? "This key was refused. API key" : "API key";
    $("key").value = "";
    $("key-ok").onclick = accept;
    $("key-cancel").onclick = () => end(null);
    $("key").onkeydown = (event) => { if (event.key === "Enter") accept(); };
    $("ask").oncancel = (event) => { event.preventDefault(); end(null); };
    $("ask").showModal();
  });
  return asking;
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = text === "";
}

async function readModel() {
  try {
    const models = await (await call("v1/models")).json();
    const name = models.data[0].id;
    const info = await (await call("info")).json();
    chat.start(name, info.has_chat_template !== false);
    $("model").textContent = name;
    $("model").title = name;
    document.title = `${name} · Penstock`;
    notice("");
  } catch (error) {
    notice(error.message);
  }
}

addEventListener("offline", () => notice("This device is offline."));
addEventListener("online", readModel);
onKeyWanted(askForKey);
setTabs();
chat.set();
live.set();
readModel();
