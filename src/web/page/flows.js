// All flows: how full they are, what waits, what is refused.

import { count, duration, rate, words } from "./format.js";
import { bar, command, element, Table } from "./dom.js";
import { Window } from "./window.js";

const ORDERS = {
  fullness: "fullest", now_calls: "most calls", waiting: "most waiting", oldest: "oldest token",
  granted: "most grants", refused: "most refusals", held: "longest held", id: "flow id",
};

// A flow id may have a rule of the flow and one by value: two rows, two views.
export function flowKey(row) {
  return row.kind === "value" ? `${row.flow_id}/value` : row.flow_id;
}

// The flow of a token or a waiter, which tells the kind by having a parameter.
export function keyOfHolder(row) {
  return row.param === undefined ? row.flow_id : `${row.flow_id}/value`;
}

export function flowCommand(row) {
  return `flow ${row.flow_id}${row.kind === "value" ? " --kind value" : ""}`;
}

export function flowLink(row) {
  return element("a", { href: `#/flow/${flowKey(row)}` }, row.resource || `flow ${row.flow_id}`);
}

export function badges(row) {
  const found = [];
  if (row.kind === "value") found.push(element("span", { class: "badge" }, "by value"));
  if (row.draining) found.push(element("span", { class: "badge" }, "draining"));
  if (row.removed) found.push(element("span", { class: "badge" }, "rule removed"));
  if (row.other_kind) found.push(element("span", { class: "badge" }, "asked for the other kind"));
  return found;
}

// "3 / 5", or what limits the flow otherwise.
function callsText(row) {
  const parts = [];
  if (row.level !== null && !(row.rate && !row.now_calls)) {
    parts.push(`${count(row.now_calls)} / ${count(row.level)}`);
  } else if (row.now_calls || !row.rate) {
    parts.push(count(row.now_calls));
  }
  if (row.keys) parts.push(`${count(row.keys)} ${row.keys === 1 ? "key" : "keys"}`);
  if (row.rate) {
    const limit = row.rate.limit === null ? "" : ` / ${count(row.rate.limit)}`;
    parts.push(`${count(row.rate.in_window)}${limit} in ${duration(row.rate.window_ms)}`);
  }
  return parts.join(" · ");
}

// What a cell says of the calls of a flow; a bar where there is a limit.
export function callsCell(row) {
  const limited = row.level !== null || (row.rate && row.rate.limit !== null);
  return [...(limited ? [bar(row.fullness)] : []), element("span", {}, callsText(row))];
}

// Whether there are times of tokens that ended.
export function hasEnded(row) {
  return Object.keys(row.counters?.ended ?? {}).length > 0;
}

// What refused, a second, the most first: from one event to the next.
export class Refusals {
  constructor() {
    this.before = new Map();
    this.unixMs = 0;
    this.reasons = new Map();
  }

  take(unixMs, rows) {
    const seconds = (unixMs - this.unixMs) / 1000;
    // The same rows once more, when the view has asked anew.
    if (seconds === 0) return;
    const now = new Map();
    this.reasons.clear();
    for (const row of rows) {
      const refused = row.counters?.refused ?? {};
      now.set(flowKey(row), refused);
      const before = this.before.get(flowKey(row));
      if (!before || seconds > 10 || seconds < 0) continue;
      const found = Object.entries(refused)
        .map(([word, value]) => [word, (value - (before[word] ?? 0)) / seconds])
        .filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
      this.reasons.set(flowKey(row), found);
    }
    this.before = now;
    this.unixMs = unixMs;
  }

  text(row) {
    const found = this.reasons.get(flowKey(row)) ?? [];
    const named = found.slice(0, 2)
      .map(([word, value]) => found.length > 1 ? `${words(word)} ${rate(value)}` : words(word));
    return named.join(", ") + (found.length > 2 ? " …" : "");
  }
}

function small(text) {
  return text ? element("small", {}, text) : null;
}

export class FlowsView {
  constructor(page) {
    this.page = page;
    this.order = "fullness";
    this.refusals = new Refusals();
    this.window = new Window({ what: "flows", onChange: () => this.ask() });
    this.select = element("select", {
      "aria-label": "Sort by", class: "narrow", onchange: () => this.sort(this.select.value),
    }, ...Object.entries(ORDERS).map(([value, text]) => element("option", { value }, text)));
    this.window.controls.append(this.select);
    this.table = new Table({
      caption: "Flows", key: flowKey, onSort: (order) => this.sort(order),
      empty: "No flows. Load rules, or change the filter.", columns: this.columns(),
    });
    this.root = element("section", {}, element("h1", {}, "Flows"), this.window.controls,
                        this.table.root, this.window.pages);
  }

  columns() {
    const held = (row) => hasEnded(row)
      ? `${duration(row.counters.held_p50_ms)} / ${duration(row.counters.held_p99_ms)}` : "–";
    const waits = (row) => row.waiters ? duration(row.waiting_age_ms) : "";
    const waited = ({ counters }) => counters?.waited_count
      ? `waited ${duration(counters.waited_p50_ms)} / ${duration(counters.waited_p99_ms)}` : "";
    const failed = (row) => row.exceptions_per_s ? `${rate(row.exceptions_per_s)} failed/s` : "";
    return [
      { title: "Flow", sort: "id", name: "name",
        text: (row) => JSON.stringify([row.resource, row.namespace, badges(row).length,
                                       row.draining]),
        build: (row) => [flowLink(row), ...badges(row),
                         small(`${row.namespace} · ${row.flow_id}`)] },
      { title: "Calls / level", sort: "fullness", name: "calls",
        text: (row) => `${callsText(row)} ${row.fullness}`,
        build: callsCell },
      { title: "Waiting", sort: "waiting", numeric: true,
        text: (row) => `${row.waiters} ${waits(row)}`,
        build: (row) => [count(row.waiters), small(waits(row))].filter(Boolean) },
      { title: "Oldest token", sort: "oldest", numeric: true,
        text: (row) => duration(row.oldest_age_ms) },
      { title: "Granted/s", sort: "granted", numeric: true,
        text: (row) => `${rate(row.granted_per_s)} ${failed(row)}`,
        build: (row) => [rate(row.granted_per_s), small(failed(row))].filter(Boolean) },
      { title: "Refused/s", sort: "refused", numeric: true,
        text: (row) => `${rate(row.refused_per_s)} ${this.refusals.text(row)}`,
        build: (row) => [rate(row.refused_per_s), small(this.refusals.text(row))].filter(Boolean) },
      { title: "Held p50 / p99", sort: "held", numeric: true,
        text: (row) => `${held(row)} ${waited(row)}`,
        build: (row) => [held(row), small(waited(row))].filter(Boolean) },
      { title: "Command", name: "command", text: flowKey,
        build: (row) => command(flowCommand(row)) },
    ];
  }

  take(_words, parameters) {
    const order = parameters.get("sort") ?? "fullness";
    this.order = Object.hasOwn(ORDERS, order) ? order : "fullness";
    this.select.value = this.order;
    this.table.sortedBy(this.order);
    this.window.take(parameters);
    this.table.anew();
  }

  sort(order) {
    this.order = order;
    this.select.value = order;
    this.window.offset = 0;
    this.table.sortedBy(order);
    this.ask();
  }

  title() {
    return this.window.title("Flows");
  }

  ask() {
    this.table.anew();
    const parameters = this.window.parameters();
    if (this.order !== "fullness") parameters.set("sort", this.order);
    this.page.ask(`#/flows${parameters.size ? `?${parameters}` : ""}`);
  }

  query() {
    const query = this.window.query("flows");
    query.set("sort", this.order);
    return query;
  }

  show(json) {
    this.refusals.take(json.unix_ms, json.rows);
    this.window.show(json);
    this.table.show(json.rows);
  }

  close() {
    this.window.close();
  }
}
