// The one stream of this page: Server-Sent Events that bring the view with each new snapshot.

const RETRY_MS = 500;    // Between attempts to reach a server that is away.
const QUIET_MS = 4_000;  // Without an event: the figures are old. The server looks once a second.
const LOST_MS = 20_000;  // Without an event: the connection is taken for lost.

export class Stream {
  // onData(json); onState(state, since): "live", "quiet" or "lost", and since when (ms), 0: never.
  constructor(onData, onState) {
    this.onData = onData;
    this.onState = onState;
    this.query = "";
    this.source = null;
    this.lastMs = 0;
    this.timer = 0;
    // A page that nobody sees asks for nothing.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.close();
      else this.connect();
    });
  }

  open(query) {
    this.query = query;
    this.connect();
  }

  connect() {
    this.close();
    if (document.hidden) return;
    const source = new EventSource(`api/stream?${this.query}`);
    this.source = source;
    source.onmessage = (event) => {
      if (source !== this.source) return;
      this.lastMs = Date.now();
      this.expect();
      this.onData(JSON.parse(event.data));
      this.onState("live", this.lastMs);
    };
    source.onerror = () => {
      if (source !== this.source) return;
      this.lost(RETRY_MS);
    };
    this.expect();
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  expect() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.onState("quiet", this.lastMs);
      this.timer = setTimeout(() => this.lost(0), LOST_MS - QUIET_MS);
    }, QUIET_MS);
  }

  lost(retryMs) {
    this.close();
    this.onState("lost", this.lastMs);
    this.timer = setTimeout(() => this.connect(), retryMs);
  }
}
