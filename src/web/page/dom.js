// Elements, tables whose rows keep their place in the document, and commands to copy.
//
// Text only ever enters the page as text: names of clients and resources are strangers' words.

import { quoted } from "./format.js";

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// How much of a limit is used. The number stands beside it, so the bar is for the eye alone.
export function bar(share) {
  const fill = element("i");
  fill.style.width = `${Math.min(100, Math.max(0, share * 100))}%`;
  return element("span", { class: share >= 1 ? "bar full" : "bar", "aria-hidden": "true" }, fill);
}

const DEFAULT_SERVER = "127.0.0.1:18730";  // Of nowcalls-admin.
let server = "";

// The address of the token port, so that copied commands reach it. A server that says 127.0.0.1 to
// a browser on another machine is meant by the name under which the page was found. Whoever made
// the link chose that name.
export function setServer(address) {
  const port = address.slice(address.lastIndexOf(":") + 1);
  const here = ["127.0.0.1", "localhost", "[::1]"];
  const local = here.some((host) => address === `${host}:${port}`);
  server = local && !here.includes(location.hostname) ? `${location.hostname}:${port}` : address;
}

// A button that copies `nowcalls-admin TEXT`, and says which command that is.
export function command(text) {
  const usual = server === "" || server === DEFAULT_SERVER;
  const line = `nowcalls-admin ${text}${usual ? "" : ` --server ${quoted(server)}`}`;
  return element("button", {
    type: "button", class: "copy", title: line, "aria-label": `Copy: ${line}`,
    onclick: () => copy(line),
  }, `copy ${text.split(" ")[0]}`);
}

let toastTimer = 0;

// The command is shown too: it is read before it is run, and selected where the browser forbids to
// copy, as it does on plain HTTP from another machine.
async function copy(line) {
  const toast = document.getElementById("toast");
  const code = element("code", {}, line);
  const said = element("span");
  toast.replaceChildren(said, code);
  toast.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.hidden = true; }, 10_000);
  try {
    await navigator.clipboard.writeText(line);
    said.textContent = "Copied";
  } catch {
    said.textContent = "Press Ctrl+C to copy";
    getSelection().selectAllChildren(code);
  }
}

const HELD_ROWS_MAX = 50;  // Rows that are gone and still shown.

// A table whose rows are patched: what somebody has focused or selected stays so, although figures
// change each second. While the pointer or the keyboard is on a row, each row stays where it is:
// those that are gone are pale, those that came are at the end.
//
// A column: {title, name?, sort?, numeric?, text(row), build?(row)}. `text` is what the cell says
// and tells whether it has changed; `build` makes its content where that is more than the text.
export class Table {
  // `key(row)` names a row. `onSort(order)` is called with a column's `sort`.
  constructor({ caption, columns, key, empty, onSort }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.latest = [];
    this.moves = true;  // The rows answer another question than those before.
    this.pointed = false;
    const settle = () => setTimeout(() => { if (this.holds) this.show(this.latest); });
    this.body = element("tbody", {
      role: "rowgroup", onfocusout: settle,
      // A finger that has left stays where it was, for the browser.
      onpointerover: (event) => { this.pointed = event.pointerType === "mouse"; },
      onpointerleave: () => { this.pointed = false; settle(); },
    });
    this.heads = columns.map((column) => this.head(column, onSort));
    this.nothing = empty;
    this.empty = element("p", { class: "empty" }, "Waiting for figures.");
    const head = element("thead", { role: "rowgroup" },
                         element("tr", { role: "row" }, ...this.heads));
    this.table = element("table", { role: "table" },
                         element("caption", {}, caption), head, this.body);
    this.table.hidden = true;
    this.root = element("div", { class: "table" }, this.table, this.empty);
  }

  head(column, onSort) {
    const head = element("th", {
      scope: "col", role: "columnheader", class: column.numeric ? "number" : "",
    });
    if (column.sort) {
      head.append(element("button", {
        type: "button", onclick: () => onSort(column.sort), "data-sort": column.sort,
      }, column.title));
    } else {
      head.append(column.title);
    }
    return head;
  }

  sortedBy(order) {
    this.columns.forEach((column, i) => {
      if (!column.sort) return;
      const direction = column.sort === "id" ? "ascending" : "descending";
      this.heads[i].setAttribute("aria-sort", column.sort === order ? direction : "none");
    });
  }

  // What comes next is in an order of its own, whoever points at what is there.
  anew() {
    this.moves = true;
  }

  // The rows in the order in which they are shown.
  placed(rows) {
    const held = this.pointed || this.body.querySelector(":focus-visible") !== null;
    if (this.moves || !held) return rows;
    const came = new Map(rows.map((row) => [this.key(row), row]));
    const placed = [...this.rows].map(([key, line]) => came.get(key) ?? line.row);
    placed.push(...rows.filter((row) => !this.rows.has(this.key(row))));
    return placed.length > rows.length + HELD_ROWS_MAX ? rows : placed;
  }

  show(latest) {
    this.latest = latest;
    const rows = this.placed(latest);
    this.moves = false;
    this.holds = rows.length !== latest.length ||
      rows.some((row, i) => this.key(row) !== this.key(latest[i]));
    this.root.classList.toggle("holds", this.holds);
    const came = new Set(latest);
    const focused = document.activeElement;
    const kept = new Map();
    let place = this.body.firstChild;
    for (const row of rows) {
      const key = this.key(row);
      const line = this.rows.get(key) ?? this.line();
      this.fill(line, row);
      line.row = row;
      line.root.classList.toggle("gone", !came.has(row));
      if (line.root === place) place = place.nextSibling;
      else this.body.insertBefore(line.root, place);
      kept.set(key, line);
    }
    for (const [key, line] of this.rows) if (!kept.has(key)) line.root.remove();
    this.rows = kept;
    setText(this.empty, this.nothing);
    this.empty.hidden = rows.length > 0;
    this.table.hidden = rows.length === 0;
    // A row that moved has lost the focus on its way.
    if (focused !== document.activeElement && this.body.contains(focused)) {
      focused.focus({ preventScroll: true });
    }
  }

  line() {
    const cells = this.columns.map((column) => element("td", {
      role: "cell", "data-label": column.title,
      class: [column.numeric ? "number" : "", column.name ?? ""].join(" ").trim(),
    }));
    return { root: element("tr", { role: "row" }, ...cells), cells, texts: [] };
  }

  fill(line, row) {
    this.columns.forEach((column, i) => {
      const text = column.text(row);
      if (line.texts[i] === text) return;
      line.texts[i] = text;
      if (column.build) line.cells[i].replaceChildren(...[column.build(row)].flat());
      else line.cells[i].textContent = text;
    });
  }
}

// Figures with names: {name: text}. Patched, too.
export class Figures {
  constructor(label) {
    this.root = element("dl", { class: "figures", "aria-label": label });
    this.values = new Map();
  }

  show(figures) {
    for (const [name, value] of this.values) {
      if (Object.hasOwn(figures, name)) continue;
      value.parentNode.remove();
      this.values.delete(name);
    }
    for (const [name, text] of Object.entries(figures)) {
      let value = this.values.get(name);
      if (!value) {
        value = element("dd");
        this.values.set(name, value);
        this.root.append(element("div", {}, element("dt", {}, name), value));
      }
      setText(value, text);
    }
  }
}
