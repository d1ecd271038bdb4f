// Asks for the figures of the view once a second.
//
// Requests, and no stream: a browser has six connections to a host for all its windows together. A
// stream keeps one, so the seventh window would stay blank.

// A little less than a second, in which the server looks once: so each look is seen soon after it
// was taken. A request that comes before it is told that nothing is new, and follows soon.
const EVERY_MS = 950;
const SOON_MS = 100;
const RETRY_MS = 500;     // When the server is away: longer and longer, up to RETRY_MS_MAX.
const RETRY_MS_MAX = 4_000;
const QUIET_MS = 4_000;   // Without a new look: the figures are old.
const SLOW_MS = 10_000;   // Without an answer: the connection is taken for lost.

// Beside the page, wherever a proxy has put it. Not relative: to an address with a password, which
// a bookmark may have, browsers fetch nothing.
const LOOK = new URL("api/look", location.origin + location.pathname);

export class Poll {
  // onData(json); onState(state, since, why): "live", "quiet", "lost", "refused" or "ended"; when
  // figures came last (ms), 0: never; the words of whoever refused, "" without any. Behind "ended"
  // nothing is asked any more: the browser's secret is missing or wrong.
  constructor(onData, onState) {
    this.onData = onData;
    this.onState = onState;
    this.lastMs = 0;
    this.asking = null;
    this.ended = false;
    // A page that nobody sees asks for nothing.
    document.addEventListener("visibilitychange", () => this.begin());
  }

  open(query) {
    this.query = query;
    this.etag = "";
    this.again = SOON_MS;
    this.begin();
  }

  begin() {
    this.asking?.abort();
    this.asking = null;
    clearTimeout(this.timer);
    clearTimeout(this.quiet);
    if (document.hidden || this.ended) return;
    this.expect();
    this.ask();
  }

  async ask() {
    const asking = new AbortController();
    this.asking = asking;
    const slow = setTimeout(() => asking.abort(), SLOW_MS);
    const answer = await this.answer(asking.signal);
    clearTimeout(slow);
    if (asking !== this.asking) return;  // Of another question, or nobody looks any more.
    this.ended = answer.state === "ended";
    if (!this.ended) this.timer = setTimeout(() => this.ask(), this.waitMs(answer));
    if (answer.json) this.take(answer);
    else if (answer.state) this.lose(answer);
  }

  // {json, etag}; {} when nothing is new; {state, why} of what is no figures.
  async answer(signal) {
    try {
      const headers = this.etag ? { "If-None-Match": this.etag } : {};
      const response = await fetch(`${LOOK}?${this.query}`, { headers, signal, cache: "no-store" });
      if (response.status === 304) return {};
      const type = response.headers.get("Content-Type") ?? "";
      if (response.ok && type.startsWith("application/json")) {
        return { json: await response.json(), etag: response.headers.get("ETag") };
      }
      // The server's own words are text; a proxy answers with a page of its own.
      const words = type.startsWith("text/plain") ? (await response.text()).slice(0, 500) : "";
      const why = words.trim() || `${response.status} ${response.statusText}`.trim();
      if (response.status === 401) return { state: "ended", why };
      return { state: response.status >= 500 ? "lost" : "refused", why };
    } catch {
      return { state: "lost", why: "" };
    }
  }

  waitMs({ json, state }) {
    const again = this.again;
    this.again = json ? SOON_MS : Math.min(RETRY_MS_MAX, again * 1.5);
    if (state) return Math.max(RETRY_MS, again);
    // The first look may lack what nobody asked for before, and the next one comes soon.
    return json && this.etag ? EVERY_MS : Math.min(EVERY_MS, again);
  }

  take({ json, etag }) {
    this.etag = etag;
    this.lastMs = Date.now();
    this.expect();
    this.onData(json);
    this.onState("live", this.lastMs, "");
  }

  lose({ state, why }) {
    this.etag = "";
    clearTimeout(this.quiet);
    this.onState(state, this.lastMs, why);
  }

  expect() {
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.onState("quiet", this.lastMs, ""), QUIET_MS);
  }
}
