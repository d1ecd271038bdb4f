// Clients with what they hold, and history: the tokens that did not end well.

import { count, duration, moment, words } from "./format.js";
import { command, element, Table } from "./dom.js";
import { clientLink, clientName, flowColumn, holderOf } from "./holders.js";
import { Window } from "./window.js";

class ListView {
  constructor(page, { name, title, what, table }) {
    this.page = page;
    this.name = name;
    this.heading = title;
    this.window = new Window({ what, onChange: () => this.ask() });
    this.table = new Table(table);
    this.root = element("section", {}, element("h1", {}, title), this.window.controls,
                        this.table.root, this.window.pages);
  }

  take(_words, parameters) {
    this.window.take(parameters);
    this.table.anew();
  }

  title() {
    return this.window.title(this.heading);
  }

  ask() {
    const parameters = this.window.parameters();
    this.table.anew();
    this.page.ask(`#/${this.name}${parameters.size ? `?${parameters}` : ""}`);
  }

  query() {
    return this.window.query(this.name);
  }

  show(json) {
    // The server looks at these only while somebody does: the first event is without them.
    if (!json.asked) return;
    this.window.show(json);
    this.table.show(json.rows);
  }

  close() {
    this.window.close();
  }
}

export function clientState(row) {
  if (row.online === false) return `offline for ${duration(row.offline_age_ms)}`;
  if (row.instances > 1) return `online, one of ${row.instances} instances`;
  return row.hosts > 1 ? `online from ${row.hosts} hosts` : "online";
}

const CLIENT_COLUMNS = [
  { title: "Client", name: "name",
    text: (row) => JSON.stringify([clientName(row), row.namespace]),
    build: (row) => [clientLink(row), element("small", {}, row.namespace)] },
  { title: "State", text: clientState },
  { title: "Calls", numeric: true, text: (row) => count(row.now_calls) },
  { title: "Tokens", numeric: true, text: (row) => count(row.tokens) },
  { title: "Waiting", numeric: true, text: (row) => count(row.waiters) },
  { title: "Connections", numeric: true, text: (row) => count(row.connections) },
  { title: "Address", name: "id", text: (row) => row.addresses?.[0] ?? "–" },
  { title: "Last message", numeric: true,
    text: ({ last_message_age_ms: age }) => age === undefined ? "–" : duration(age) },
  { title: "Known for", numeric: true, text: (row) => duration(row.opened_age_ms) },
  { title: "Command", name: "command",
    text: (row) => JSON.stringify([clientName(row), row.namespace]),
    build: (row) => command(`tokens ${holderOf(row)}`) },
];

export class ClientsView extends ListView {
  constructor(page) {
    super(page, {
      name: "clients", title: "Clients", what: "clients",
      table: {
        caption: "Clients, those with most calls first", columns: CLIENT_COLUMNS,
        key: (row) => row.session, empty: "No clients.",
      },
    });
  }
}

const REASONS = {
  released: "released in time, but its call did not end well",
  released_late: "released, but after the rule's resourceTimeout",
  client_offline: "its client stayed offline for clientOfflineTime",
  resource_timeout: "neither kept nor released in time",
  rule_removed: "purged after its rule was removed",
  admin: "taken back by an administrator",
};

const HISTORY_COLUMNS = [
  { title: "Ended", name: "time",
    text: (row) => `${duration(row.ended_age_ms)} ${row.ended_ms}`,
    build: (row) => [`${duration(row.ended_age_ms)} ago`,
                     element("small", {}, moment(row.ended_ms))] },
  { title: "Why", text: (row) => `${row.reason} ${row.outcome ?? ""} ${row.note}`,
    build: (row) => [words(row.reason) + (row.outcome ? `, call ${words(row.outcome)}` : ""),
                     element("small", {}, row.note || REASONS[row.reason] || "")] },
  { title: "Client", name: "name", text: (row) => JSON.stringify([clientName(row), row.namespace]),
    build: (row) => [clientLink(row), element("small", {}, row.namespace)] },
  flowColumn,
  { title: "Held for", numeric: true, text: (row) => duration(row.held_ms) },
  { title: "Calls", numeric: true, text: (row) => count(row.count) },
  { title: "Key", text: (row) => row.param ?? "–" },
  { title: "Fence", numeric: true, name: "id", text: (row) => row.fence },
  { title: "Token", numeric: true, name: "id", text: (row) => row.token_id },
  { title: "Command", name: "command", text: (row) => row.sequence,
    build: (row) => command(`history --flow ${row.flow_id} ` +
                            holderOf({ ...row, instance: undefined })) },
];

export class HistoryView extends ListView {
  constructor(page) {
    super(page, {
      name: "history", title: "History", what: "ended tokens",
      table: {
        caption: "Tokens that did not end well, the latest first",
        columns: HISTORY_COLUMNS, key: (row) => row.sequence,
        empty: "None, or none that the filter finds. Tokens that end well are not listed.",
      },
    });
  }
}
