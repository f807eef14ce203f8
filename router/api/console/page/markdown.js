// Markdown as DOM nodes. Text of the model becomes text nodes only, never markup.

const make = (name, text) => {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  return node;
};

const SAFE_LINK = /^(https?:|mailto:)/i;

// The inline forms, tried at each place in this order.
const INLINE = [
  [/^(`+)([^]*?[^`])\1(?!`)/, (m) => make("code", m[2].trim())],
  [/^\\([\\`*_{}[\]()#+\-.!|~>])/, (m) => document.createTextNode(m[1])],
  [/^\*\*(?=\S)([^]*?\S)\*\*/, (m) => filled("strong", m[1])],
  [/^__(?=\S)([^]*?\S)__(?!\w)/, (m) => filled("strong", m[1])],
  [/^~~(?=\S)([^]*?\S)~~/, (m) => filled("del", m[1])],
  [/^\*(?=[^\s*])([^*]*?[^\s*])\*/, (m) => filled("em", m[1])],
  [/^_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/, (m) => filled("em", m[1])],
  [/^\[([^\]]{1,300})\]\((\S{1,2000}?)(?:\s+"[^"]*")?\)/, (m) => link(m[1], m[2])],
  [/^https?:\/\/[^\s<>"')\]]{1,2000}[^\s<>"')\].,;:!?]/, (m) => link(m[0], m[0], true)],
];
const STARTS = /[`\\*_~[h]/g;

function filled(name, text) {
  const node = make(name);
  node.append(...inline(text));
  return node;
}

function link(text, target, plain) {
  if (!SAFE_LINK.test(target)) return document.createTextNode(text);
  const node = plain ? make("a", text) : filled("a", text);
  node.href = target;
  node.rel = "noopener noreferrer nofollow";
  node.target = "_blank";
  return node;
}

function inline(text) {
  const nodes = [];
  let plain = "";
  for (let at = 0; at < text.length;) {
    STARTS.lastIndex = at;
    const next = STARTS.exec(text)?.index ?? text.length;
    plain += text.slice(at, next);
    at = next;
    if (at === text.length) break;
    const rest = text.slice(at, at + 4000);
    const inWord = /\w$/.test(plain) && (rest[0] === "_" || rest[0] === "h");
    let found = null;
    for (const [form, build] of inWord ? [] : INLINE) {
      const match = form.exec(rest);
      if (!match) continue;
      found = [match[0].length, build(match)];
      break;
    }
    if (!found) {
      plain += text[at++];
      continue;
    }
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
    nodes.push(found[1]);
    at += found[0];
  }
  if (plain) nodes.push(document.createTextNode(plain));
  return nodes;
}

// Writes to the clipboard, also where the page has no secure origin.
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1200);
}

function fence(language, text) {
  const box = make("div");
  box.className = "code";
  const bar = make("div");
  bar.className = "bar";
  const button = make("button", "Copy");
  button.addEventListener("click", () => copy(text, button));
  bar.append(make("span", language || "code"), button);
  const pre = make("pre");
  pre.tabIndex = 0;
  pre.append(make("code", text));
  box.append(bar, pre);
  return box;
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const FENCE = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const CELLS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const cells = (line) =>
  line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));

function table(lines) {
  const node = make("table");
  const row = (line, name) => {
    const tr = make("tr");
    tr.append(...cells(line).slice(0, 100).map((cell) => filled(name, cell)));
    return tr;
  };
  const head = make("thead");
  head.append(row(lines[0], "th"));
  const body = make("tbody");
  body.append(...lines.slice(2).map((line) => row(line, "td")));
  node.append(head, body);
  const box = make("div");
  box.className = "table";
  box.append(node);
  return box;
}

// A list, whose deeper lines are rendered as blocks of their item.
function list(lines, depth) {
  const first = ITEM.exec(lines[0]);
  const ordered = /\d/.test(first[2]);
  const node = make(ordered ? "ol" : "ul");
  if (ordered) node.start = parseInt(first[2], 10);
  let item = null;
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (match && match[1].length <= first[1].length + 1) {
      item = [match[3]];
      node.append(Object.assign(make("li"), { lines: item }));
    } else {
      item.push(line.replace(/^\s{1,4}/, ""));
    }
  }
  for (const li of node.children) {
    const blocks = blocksOf(li.lines, depth + 1);
    const only = blocks[0]?.tagName === "P";
    li.append(...(only ? [...blocks[0].childNodes, ...blocks.slice(1)] : blocks));
  }
  return node;
}

const startsBlock = (line, next) =>
  FENCE.test(line) || HEADING.test(line) || RULE.test(line) || ITEM.test(line) || /^\s*>/.test(line) ||
  (line.includes("|") && next !== undefined && next.includes("-") && CELLS.test(next));

function blocksOf(lines, depth = 0) {
  const blocks = [];
  if (depth > 8) return [make("p", lines.join("\n"))];
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    const take = (more) => {
      const from = i;
      for (++i; i < lines.length && more(lines[i], i); ++i);
      return lines.slice(from, i);
    };
    let match;
    if (!line.trim()) {
      ++i;
    } else if ((match = FENCE.exec(line))) {
      const end = match[1];
      const body = take((next) => !(next.trim().startsWith(end) && /^[`~]+$/.test(next.trim())));
      ++i;
      blocks.push(fence(match[2], body.slice(1).join("\n")));
    } else if ((match = HEADING.exec(line))) {
      blocks.push(filled("h" + Math.min(6, match[1].length + 2), match[2]));
      ++i;
    } else if (RULE.test(line)) {
      blocks.push(make("hr"));
      ++i;
    } else if (/^\s*>/.test(line)) {
      const quote = make("blockquote");
      const body = take((next) => /^\s*>/.test(next));
      quote.append(...blocksOf(body.map((each) => each.replace(/^\s*> ?/, "")), depth + 1));
      blocks.push(quote);
    } else if (ITEM.test(line)) {
      const body = take((next, at) =>
        ITEM.test(next) || /^\s+\S/.test(next) || (!next.trim() && (ITEM.test(lines[at + 1] ?? "") || /^\s{2,}\S/.test(lines[at + 1] ?? ""))));
      blocks.push(list(body, depth));
    } else if (line.includes("|") && (lines[i + 1] ?? "").includes("-") && CELLS.test(lines[i + 1])) {
      blocks.push(table(take((next) => next.includes("|"))));
    } else {
      const body = take((next, at) => next.trim() && !startsBlock(next, lines[at + 1]));
      const p = make("p");
      body.forEach((each, n) => {
        if (n > 0) p.append(make("br"));
        p.append(...inline(each.trim()));
      });
      blocks.push(p);
    }
  }
  return blocks;
}

export function render(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(...blocksOf(text.split(/\r?\n/)));
  return fragment;
}
