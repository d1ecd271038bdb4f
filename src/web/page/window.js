// The controls of a list of which the server sends a window: a filter, and pages.

import { count } from "./format.js";
import { element, setText } from "./dom.js";

const ROWS = 50;
const TYPING_MS = 150;

export class Window {
  // onChange() is called when the question is another.
  constructor({ what, onChange }) {
    this.what = what;
    this.onChange = onChange;
    this.filter = "";
    this.namespace = "";
    this.offset = 0;
    this.input = element("input", {
      type: "search", name: "filter", placeholder: `Filter ${what}`, "aria-label": `Filter ${what}`,
      autocomplete: "off", spellcheck: "false", oninput: () => this.typed(),
    });
    this.told = element("output", { class: "told" });
    this.earlier = element("button", { type: "button", onclick: () => this.turn(-ROWS) },
                           "Previous");
    this.later = element("button", { type: "button", onclick: () => this.turn(ROWS) }, "Next");
    this.controls = element("div", { class: "controls" }, this.input, this.told);
    this.pages = element("div", { class: "pages" }, this.earlier, this.later);
  }

  take(parameters) {
    this.filter = parameters.get("filter") ?? "";
    this.namespace = parameters.get("namespace") ?? "";
    this.offset = Math.max(0, Number.parseInt(parameters.get("offset") ?? "0", 10) || 0);
    if (document.activeElement !== this.input) this.input.value = this.filter;
  }

  // "Flows with “pay” in shop"
  title(what) {
    const filter = this.filter ? ` with “${this.filter}”` : "";
    return `${what}${filter}${this.namespace ? ` in ${this.namespace}` : ""}`;
  }

  // Of the address: only what is not as usual.
  parameters() {
    const parameters = new URLSearchParams();
    if (this.filter) parameters.set("filter", this.filter);
    if (this.namespace) parameters.set("namespace", this.namespace);
    if (this.offset) parameters.set("offset", this.offset);
    return parameters;
  }

  query(view) {
    const parameters = this.parameters();
    parameters.set("view", view);
    parameters.set("limit", ROWS);
    return parameters;
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.filter = this.input.value.trim().slice(0, 80);
      this.offset = 0;
      this.onChange();
    }, TYPING_MS);
  }

  turn(by) {
    this.offset = Math.max(0, this.offset + by);
    this.onChange();
  }

  show({ total, offset, rows, more }) {
    const last = offset + rows.length;
    const what = total === 1 && !more ? this.what.replace(/s$/, "") : this.what;
    const of = `${count(total)}${more ? "+" : ""} ${what}`;
    setText(this.told, rows.length < total ? `${count(offset + 1)}–${count(last)} of ${of}` : of);
    this.earlier.disabled = offset === 0;
    this.later.disabled = last >= total;
    this.pages.hidden = offset === 0 && last >= total;
  }

  close() {
    clearTimeout(this.timer);
  }
}
