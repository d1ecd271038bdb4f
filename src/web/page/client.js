// One client: what it holds, the oldest first, and what it waits for.

import { count, duration } from "./format.js";
import { command, element, Figures, setText, Table } from "./dom.js";
import { clientName, flowColumn, holderOf, oldestOf, tokenColumns,
         waiterColumns } from "./holders.js";
import { clientState } from "./lists.js";

// "From 10.0.0.5:4711 and 10.0.0.5:4712." Of more than a few connections the first few.
function addressesOf(row) {
  const addresses = row.addresses ?? [];
  if (addresses.length === 0) return "";
  const more = row.connections - addresses.length;
  const shown = more > 0 ? [...addresses, `${count(more)} more`] : addresses;
  return `From ${new Intl.ListFormat("en").format(shown)}.`;
}

export class ClientView {
  constructor() {
    this.heading = element("h1");
    this.place = element("p", { class: "place" });
    this.figures = new Figures("The client now");
    this.addresses = element("p", { class: "told" });
    this.tokens = new Table({
      caption: "Tokens, the oldest first", columns: tokenColumns(flowColumn),
      key: (row) => row.token_id, empty: "It holds no token.",
    });
    this.more = element("p", { class: "told" });
    this.waiters = new Table({
      caption: "It waits for", columns: waiterColumns(flowColumn),
      key: (row) => JSON.stringify([row.flow_id, row.param, row.place]),
      empty: "It waits for nothing.",
    });
    this.body = element("div", {}, this.figures.root, this.addresses, this.tokens.root, this.more,
                        this.waiters.root);
    this.root = element("section", {}, this.heading, this.place, this.body);
  }

  take([session]) {
    if (session === this.session) return;
    this.session = session;
    for (const table of [this.tokens, this.waiters]) table.anew();
    setText(this.heading, `Session ${session}`);
    this.say("Waiting for figures.");
  }

  title() {
    return `${this.heading.textContent}, client`;
  }

  query() {
    return new URLSearchParams({ view: "client", id: this.session });
  }

  say(...words) {
    this.placeText = "";
    this.place.replaceChildren(...words);
    this.body.hidden = true;
  }

  show({ asked, row, tokens, waiters, more_tokens: more }) {
    if (!asked) return;
    if (row === null) {
      return this.say("There is no such session: its client left, and holds nothing. See ",
                      element("a", { href: "#/clients" }, "clients"), " and ",
                      element("a", { href: "#/history" }, "history"), ".");
    }
    this.body.hidden = false;
    const text = JSON.stringify([clientName(row), row.namespace]);
    if (text !== this.placeText) {
      this.placeText = text;
      setText(this.heading, clientName(row));
      this.place.replaceChildren(
        element("a", { href: `#/clients?namespace=${encodeURIComponent(row.namespace)}` },
                row.namespace),
        ` · session ${row.session} `, command(`tokens ${holderOf(row)}`),
        command(`reclaim ${holderOf(row)} --reason 'stuck'`));
    }
    this.figures.show({
      state: clientState(row), calls: count(row.now_calls), tokens: count(row.tokens),
      waiting: count(row.waiters), connections: count(row.connections),
      "last message": row.last_message_age_ms === undefined
        ? "–" : `${duration(row.last_message_age_ms)} ago`,
      "known for": duration(row.opened_age_ms),
    });
    setText(this.addresses, addressesOf(row));
    this.tokens.show(tokens);
    setText(this.more, oldestOf(tokens, row.tokens, more));
    this.waiters.show(waiters);
  }

  close() {}
}
