// One flow: its holders, its waiters in their order, its keys, its last minutes.

import { count, duration, rate, words } from "./format.js";
import { bar, command, element, Figures, setText, Table } from "./dom.js";
import { badges, callsCell, flowCommand, hasEnded, Refusals } from "./flows.js";
import { PointCharts } from "./charts.js";
import { clientLink, clientName, oldestOf, tokenColumns, waiterColumns } from "./holders.js";

const HOLDER = {
  title: "Client", name: "name", text: (row) => JSON.stringify([clientName(row), row.online]),
  build: (row) => [clientLink(row), row.online === false ? " (offline)" : ""],
};

const WAITER = {
  title: "Client", name: "name",
  text: (row) => JSON.stringify([clientName(row), row.prioritized]),
  build: (row) => [clientLink(row), row.prioritized ? " (prioritized)" : ""],
};

function keyColumns(view) {
  const share = (row) => row.level ? row.now_calls / row.level : 0;
  const calls = (row) =>
    row.level === null ? count(row.now_calls) : `${count(row.now_calls)} / ${count(row.level)}`;
  return [
    { title: "Key", name: "name", text: (row) => row.param },
    { title: "Calls / level", name: "calls", text: calls,
      build: (row) => [bar(share(row)), element("span", {}, calls(row))] },
    { title: "Waiting", numeric: true, text: (row) => count(row.waiters) },
    { title: "Tokens", numeric: true, text: (row) => count(row.tokens) },
    { title: "Passed", numeric: true, text: (row) => count(row.passed) },
    { title: "Blocked", numeric: true, text: (row) => count(row.blocked) },
    { title: "Command", name: "command", text: () => view.id,
      build: () => command(`params --flow ${view.id}`) },
  ];
}

// To the other rule of the flow id.
function otherLink(row) {
  return row.kind === "value"
    ? element("a", { href: `#/flow/${row.flow_id}/flow` }, "its rule of the flow")
    : element("a", { href: `#/flow/${row.flow_id}/value` }, "its rule by value");
}

// {client_offline: 3} as {"client offline": "3"}.
function byWord(counts) {
  return Object.fromEntries(Object.entries(counts ?? {}).map(([k, v]) => [words(k), count(v)]));
}

// What releases say of their calls.
function callsBy(outcomes) {
  return Object.fromEntries(Object.entries(byWord(outcomes)).map(([k, v]) => [`call ${k}`, v]));
}

export class FlowView {
  constructor() {
    this.refusals = new Refusals();
    this.heading = element("h1");
    this.place = element("p", { class: "place" });
    this.figures = new Figures("The flow now");
    this.figures.root.classList.add("steady");
    this.level = element("div", { class: "level" });
    this.charts = new PointCharts({ leveled: true });
    this.holders = new Table({
      caption: "Holders, the oldest first", columns: tokenColumns(HOLDER),
      key: (row) => row.token_id,
      empty: "Nobody holds a token of this flow.",
    });
    this.waiters = new Table({
      caption: "Waiters, in their order", columns: waiterColumns(WAITER),
      key: (row) => JSON.stringify([row.param, row.place]), empty: "Nobody waits.",
    });
    this.keys = new Table({
      caption: "Keys, the fullest first", columns: keyColumns(this), key: (row) => row.param,
      empty: "No keys are in use.",
    });
    this.more = element("p", { class: "told" });
    this.refused = new Figures("Refused since the server started");
    this.ended = new Figures("Ended since the server started");
    this.counted = element("div", { class: "counted" },
      element("div", {}, element("h2", {}, "Refused since the server started"), this.refused.root),
      element("div", {}, element("h2", {}, "Ended since the server started"), this.ended.root));
    this.body = element("div", {}, this.level, this.figures.root, this.charts.root,
                        this.holders.root, this.more, this.waiters.root, this.keys.root,
                        this.counted);
    this.root = element("section", {}, this.heading, this.place, this.body);
  }

  take([id, kind]) {
    if (id === this.id && kind === this.kind) return;
    this.id = id;
    this.kind = kind;
    for (const table of [this.holders, this.waiters, this.keys]) table.anew();
    setText(this.heading, `Flow ${id}`);
    this.place.replaceChildren("Waiting for figures.");
    this.placeText = "";
    this.body.hidden = true;
  }

  title() {
    return `${this.heading.textContent}, flow`;
  }

  query() {
    const kind = this.kind && { kind: this.kind };
    return new URLSearchParams({ view: "flow", id: this.id, ...kind });
  }

  show({ row, other, detail, points, unix_ms: unixMs }) {
    this.body.hidden = row === null;
    if (row === null) {
      this.place.replaceChildren("There is no such flow: it has neither a rule nor tokens.");
      this.placeText = "";
      return;
    }
    this.refusals.take(unixMs, [row]);
    this.showHead(row, other);
    this.charts.show(points, row.level);
    this.refused.show(byWord(row.counters?.refused));
    this.ended.show({ ...byWord(row.counters?.ended), ...callsBy(row.counters?.outcomes) });
    if (!detail) return;
    this.holders.show(detail.tokens);
    setText(this.more, oldestOf(detail.tokens, row.tokens, detail.more_tokens));
    this.waiters.show(detail.waiters);
    this.keys.show(detail.params);
    this.keys.root.hidden = detail.params.length === 0;
  }

  showHead(row, other) {
    const text = JSON.stringify([row.kind, other, row.resource, row.namespace, row.draining,
                                 row.removed, Boolean(row.other_kind)]);
    if (text !== this.placeText) {
      this.placeText = text;
      setText(this.heading, row.resource || `Flow ${row.flow_id}`);
      this.place.replaceChildren(
        element("a", { href: `#/flows?namespace=${encodeURIComponent(row.namespace)}` },
                row.namespace),
        ` · flow ${row.flow_id} `, ...badges(row), ...(other ? [otherLink(row), " "] : []),
        command(flowCommand(row)));
    }
    this.level.replaceChildren(...callsCell(row));
    const counters = row.counters ?? {};
    const held = (name) => duration(hasEnded(row) ? counters[`held_${name}_ms`] : null);
    const waited = (name) => duration(counters.waited_count ? counters[`waited_${name}_ms`] : null);
    const refused = this.refusals.text(row);
    this.figures.show({
      waiting: row.waiters ? `${count(row.waiters)}, for ${duration(row.waiting_age_ms)}` : "0",
      "oldest token": duration(row.oldest_age_ms),
      "granted/s": rate(row.granted_per_s),
      "refused/s": rate(row.refused_per_s),
      "refused by": refused || "–",
      "failed/s": rate(row.exceptions_per_s),
      "waited p50": waited("p50"),
      "waited p99": waited("p99"),
      "waited longest": duration(counters.waited_count ? counters.longest_wait_ms : null),
      "held p50": held("p50"),
      "held p90": held("p90"),
      "held p99": held("p99"),
      "held longest": held("longest"),
      "sessions online": count(row.sessions),
    });
  }

  close() {
    this.charts.close();
  }
}
