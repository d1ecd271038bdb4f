// The page: its address names a view, Poll brings the view's figures, the view shows them.

import { count, clock, rate } from "./format.js";
import { Figures, setServer, setText } from "./dom.js";
import { Poll } from "./poll.js";
import { FlowsView } from "./flows.js";
import { FlowView } from "./flow.js";
import { ClientsView, HistoryView } from "./lists.js";
import { ClientView } from "./client.js";
import { ServerView } from "./server.js";

// By the first word of the address. A view has: root (an element), take(words, parameters) when the
// address changes, query() for its figures, title(), show(json), close().
const VIEWS = {
  flows: FlowsView, flow: FlowView, clients: ClientsView, client: ClientView,
  history: HistoryView, server: ServerView,
};

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const state = document.getElementById("state");
const totals = new Figures("All flows together");
totals.root.id = "totals";
totals.root.className = "totals";
document.getElementById("totals").replaceWith(totals.root);

let view = null;
let viewName = "";
let problem = "";
let goodMs = 0;  // When the server answered last, by its own clock.

function say(text) {
  setText(banner, text);
  banner.hidden = text === "";
}

function sayState(word, since, why) {
  state.dataset.state = problem && word === "live" ? "quiet" : word;
  document.body.classList.toggle("old", word !== "live" || problem !== "");
  const at = since ? ` since ${clock(since)}` : "";
  if (word === "lost") {
    setText(state, "no connection");
    say(`No connection${at}${why && ` (${why})`}. The page tries again and comes back by itself.`);
  } else if (word === "refused") {
    setText(state, "refused");
    say(`No figures${at}. The answer was: ${why}`);
  } else if (word === "ended") {
    setText(state, "signed out");
    say(`Access ended${at}: reload the page to sign in.`);
  } else if (word === "quiet") {
    setText(state, "waiting");
    say(`No new figures${at}. The server is busy, or it does not answer.`);
  } else {
    setText(state, problem ? "old figures" : `live ${clock(since)}`);
    say(problem);
  }
}

function show(json) {
  if (json.standby) {
    // It serves nobody, so flows and clients are of before; its own state is of now.
    problem = `No figures of now: ${json.standby}.`;
    if (json.ledger_ms === 0 && viewName !== "server") return;
  } else if (json.problem) {
    const since = goodMs ? ` since ${clock(goodMs)}` : "";
    problem = `The server has not answered${since}: ${json.problem}`;
    // It has never answered, since it has just started: what the page shows is still the latest.
    if (json.ledger_ms === 0) return;
  } else {
    problem = "";
    goodMs = json.unix_ms;
  }
  setServer(json.server);
  const sums = json.totals;
  totals.show({
    "calls in progress": count(sums.now_calls), waiting: count(sums.waiters),
    tokens: count(sums.tokens), flows: count(sums.flows),
    "granted/s": rate(sums.granted_per_s), "refused/s": rate(sums.refused_per_s),
    "failed/s": rate(sums.exceptions_per_s),
  });
  view.show(json);
  sayTitle();
}

// Two tabs, or two servers, are told apart by it. It has no figures: those of a hidden tab are old.
function sayTitle() {
  const place = location.host + location.pathname.replace(/\/$/, "");
  document.title = `${view.title()} – nowcalls ${place}`;
}

const poll = new Poll(show, sayState);

// What views may do to the page.
const page = {
  // Another question; the address follows, without an entry in the history.
  ask(address) {
    history.replaceState(null, "", address);
    sayTitle();
    poll.open(view.query());
  },
};

function route() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const words = path.split("/");
  const name = Object.hasOwn(VIEWS, words[0]) ? words[0] : "flows";
  if (name !== viewName) {
    view?.close();
    view = new VIEWS[name](page);
    viewName = name;
    const leaves = main.contains(document.activeElement);
    main.replaceChildren(view.root);
    if (leaves) main.focus({ preventScroll: true });  // What had the focus is gone.
    scrollTo(0, 0);
  }
  view.take(words.slice(1), new URLSearchParams(search ?? ""));
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  sayTitle();
  poll.open(view.query());
}

// A fault of the page itself must not look like figures that stand still.
addEventListener("unhandledrejection", ({ reason }) => say(`This page failed: ${reason}`));
addEventListener("hashchange", route);
route();
