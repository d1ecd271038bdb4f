// Columns of tokens and of waiters, as the views of a flow and of a client show them.

import { count, duration, moment, quoted } from "./format.js";
import { command, element } from "./dom.js";
import { keyOfHolder } from "./flows.js";

// `first`: the column that says whose a token is, or of which flow.
export function tokenColumns(first) {
  return [
    first,
    { title: "Calls", numeric: true, text: (row) => count(row.count) },
    { title: "Held for", numeric: true, text: (row) => duration(row.issued_age_ms) },
    { title: "Since", text: (row) => moment(row.issued_ms) },
    { title: "Expires in", numeric: true, text: (row) => duration(row.deadline_in_ms) },
    { title: "Key", text: (row) => row.param ?? "–" },
    { title: "Fence", numeric: true, name: "id", text: (row) => row.fence },
    { title: "Token", numeric: true, name: "id", text: (row) => row.token_id },
    { title: "Command", name: "command", text: (row) => row.token_id,
      build: (row) => command(`reclaim ${row.token_id} --reason 'stuck'`) },
  ];
}

export function waiterColumns(first) {
  return [
    { title: "Place", numeric: true, text: (row) => count(row.place) },
    first,
    { title: "Calls", numeric: true, text: (row) => count(row.count) },
    { title: "Has waited", numeric: true, text: (row) => duration(row.since_age_ms) },
    { title: "Gives up in", numeric: true, text: (row) => duration(row.deadline_in_ms) },
    { title: "Key", text: (row) => row.param ?? "–" },
    { title: "Command", name: "command", text: (row) => `${row.flow_id} ${row.client_id}`,
      build: (row) => command(`waiters --flow ${row.flow_id} ${clientOf(row)}`) },
  ];
}

// Of a row of a client, a token or a waiter. The name may be that of a connection.
const clientOf = (row) => `--client ${quoted(row.client_id)}` +
  (row.instance === undefined ? "" : ` --instance ${row.instance}`);
export const holderOf = (row) => `${clientOf(row)} --namespace ${quoted(row.namespace)}`;

// The instance is there where a client id has several processes.
export const clientName = (row) =>
  row.client_id + (row.instance === undefined ? "" : ` #${row.instance}`);

// A waiter has no session in its row: the list has those of its name.
export function clientLink(row) {
  const named = new URLSearchParams({ filter: row.client_id, namespace: row.namespace });
  const href = row.session === undefined ? `#/clients?${named}` : `#/client/${row.session}`;
  return element("a", { href }, clientName(row));
}

export const flowColumn = {
  title: "Flow", name: "name", text: (row) => JSON.stringify([row.resource, keyOfHolder(row)]),
  build: (row) => [element("a", { href: `#/flow/${keyOfHolder(row)}` },
                           row.resource || `flow ${row.flow_id}`)],
};

// "These are the oldest 200 of 1,000."
export function oldestOf(rows, all, more) {
  return more ? `These are the oldest ${count(rows.length)} of ${count(all)}.` : "";
}
