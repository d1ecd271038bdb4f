// The server: is it well, what commits cost, how near it is to its limits.

import { bytes, count, duration, words } from "./format.js";
import { bar, command, element, Figures, setText, Table } from "./dom.js";
import { PointCharts } from "./charts.js";

// What stands beside which limit: [words, path of the value, name of the limit].
const LIMITS = [
  ["connections", "counts.connections", "connections_max"],
  ["sessions", "counts.sessions", "sessions_max"],
  ["namespaces", "counts.namespaces", "namespaces_max"],
  ["rules", "counts.rules", "rules_max"],
  ["flows", "counts.flows", "flows_max"],
  ["tokens", "counts.tokens", "tokens_max"],
  ["keys", "counts.keys", "keys_max"],
  ["waiters", "counts.waiters", "waiters_max"],
  ["bytes of waiters", "counts.waiter_bytes", "waiter_bytes_max"],
  ["history", "counts.history", "history_max"],
  ["bytes of remembered values", "counts.param_value_bytes", "param_value_bytes_max"],
];

function at(json, path) {
  return path.split(".").reduce((value, name) => value?.[name], json);
}

function microseconds(us) {
  return us < 1000 ? `${us} µs` : us < 1_000_000 ? `${us / 1000} ms` : duration(us / 1000);
}

// The bucket in which a share of all times lies: "up to 5 ms".
function quantile({ up_to_us: upTo, counts }, share) {
  const total = counts.reduce((sum, value) => sum + value, 0);
  if (total === 0) return "–";
  let sum = 0;
  for (let i = 0; i < upTo.length; i++) {
    sum += counts[i];
    if (sum >= total * share) return `up to ${microseconds(upTo[i])}`;
  }
  return `over ${microseconds(upTo[upTo.length - 1])}`;
}

// "ledger.disk_free_bytes" by names of members, in the order of the document.
function flatten(json, path = "", into = []) {
  for (const [name, value] of Object.entries(json)) {
    const inner = path ? `${path}.${name}` : name;
    if (value !== null && typeof value === "object") flatten(value, inner, into);
    else into.push({ name: inner, value: String(value) });
  }
  return into;
}

function limitColumns() {
  const text = (row) => row.format ? row.format(row.value) : count(row.value);
  return [
    { title: "Limit", name: "name", text: (row) => row.name },
    { title: "Used", name: "calls", text: (row) => `${row.value} ${row.limit}`,
      build: (row) => [bar(row.limit ? row.value / row.limit : 0),
                       element("span", {}, `${text(row)} / ${count(row.limit)}`)] },
  ];
}

const NAMESPACE_COLUMNS = [
  { title: "Namespace", name: "name", text: (row) => row.namespace,
    build: (row) => element("a", {
      href: `#/flows?namespace=${encodeURIComponent(row.namespace)}`,
    }, row.namespace) },
  { title: "Rules from", text: (row) => row.source ?? "–" },
  { title: "Rules", numeric: true, text: (row) => count(row.rules) },
  { title: "Sessions", numeric: true, text: (row) => count(row.sessions) },
  { title: "Online", numeric: true, text: (row) => count(row.sessions_online) },
];

const MEMBER_COLUMNS = [
  { title: "Member", name: "name", text: (row) => row.address },
  { title: "Role", text: (row) => row.role },
  { title: "Lag", numeric: true, text: (row) => count(row.lag_batches) },
  { title: "Batch", numeric: true, text: (row) => count(row.applied) },
  { title: "On disk", numeric: true, text: (row) => count(row.synced) },
  { title: "Heard", numeric: true, text: (row) => duration(row.silent_ms) },
  { title: "Version", text: (row) => row.version },
];

export class ServerView {
  constructor() {
    this.health = new Figures("Health");
    this.cluster = new Figures("Cluster");
    this.members = new Table({
      caption: "Members that live", columns: MEMBER_COLUMNS, key: (row) => row.member,
      empty: "None was heard of yet.",
    });
    // Of a single server there is nothing to show.
    this.ofCluster = element("div", { hidden: "" }, element("h2", {}, "Cluster"),
                             element("p", { class: "place" },
                                     "The same as text: nowcalls-admin cluster",
                                     command("cluster")),
                             this.cluster.root, this.members.root);
    this.commits = new Figures("Commits");
    this.charts = new PointCharts();
    this.batches = null;
    this.limits = new Table({
      caption: "How near it is to its limits", columns: limitColumns(), key: (row) => row.name,
      empty: "Not asked yet.",
    });
    this.namespaces = new Table({
      caption: "Namespaces", columns: NAMESPACE_COLUMNS, key: (row) => row.namespace,
      empty: "No namespaces.",
    });
    this.everything = new Table({
      caption: "As info answers", key: (row) => row.name, empty: "Not asked yet.",
      columns: [{ title: "Name", name: "name", text: (row) => row.name },
                { title: "Value", numeric: true, text: (row) => row.value }],
    });
    this.limits.root.classList.add("limits");
    this.told = element("p", { class: "told" });
    this.details = element("details", {}, element("summary", {}, "Every figure"),
                           this.everything.root);
    this.root = element("section", {},
      element("h1", {}, "Server"),
      element("p", { class: "place" }, "The same as text: nowcalls-admin info", command("info")),
      element("h2", {}, "Health"), this.health.root, this.ofCluster,
      element("h2", {}, "Commits"), this.commits.root,
      element("h2", {}, "All flows together"), this.charts.root,
      this.limits.root, this.namespaces.root, this.told, this.details);
  }

  take() {}

  title() {
    return "Server";
  }

  query() {
    return new URLSearchParams({ view: "server" });
  }

  show(json) {
    const info = json.info ?? {};
    const ledger = info.ledger ?? {};
    this.health.show({
      state: words(json.phase),
      version: info.version ?? "–",
      "runs for": duration(info.uptime_ms),
      loop: json.loop_late_ms > 0 ? `late by ${duration(json.loop_late_ms)}` : "in time",
      "disk free": ledger.disk_free_bytes === undefined ? "–"
        : bytes(ledger.disk_free_bytes) + (ledger.disk_low ? ", low" : ""),
      "data directory": ledger.data_dir ?? "–",
      durability: ledger.durability ?? "–",
    });
    this.ofCluster.hidden = !json.cluster;
    if (json.cluster) this.showCluster(json.cluster);
    this.commits.show({
      "commits/s": this.batchesPerSecond(json.unix_ms, ledger.batches),
      batches: count(ledger.batches),
      "under way": json.commit_age_ms > 0 ? duration(json.commit_age_ms) : "none",
      "commit p50": quantile(json.commits, 0.5),
      "commit p99": quantile(json.commits, 0.99),
      "turn of the loop p99": quantile(json.turns, 0.99),
    });
    this.charts.show(json.points);
    this.limits.show(LIMITS
      .map(([name, path, limit]) => ({
        name, value: at(info, path), limit: at(info, `limits.${limit}`),
      }))
      .filter((row) => row.value !== undefined && row.limit !== undefined));
    this.namespaces.show(json.namespaces);
    setText(this.told, json.namespaces.length < json.namespaces_total
      ? `The first ${count(json.namespaces.length)} of ${count(json.namespaces_total)}.` : "");
    if (this.details.open) this.everything.show(flatten(info));
  }

  showCluster(cluster) {
    this.cluster.show({
      role: cluster.role,
      term: count(cluster.term),
      writer: cluster.writer || "nobody",
      lag: `${count(cluster.lag_batches)} batches`,
      "last batch": count(cluster.last_batch),
      "log in etcd": cluster.role === "writer"
        ? `${bytes(cluster.log_bytes)} of ${bytes(cluster.log_bytes_max)}` : "–",
      "etcd failures": count(cluster.etcd_failures),
      prefix: cluster.prefix,
    });
    this.members.show(cluster.members);
  }

  batchesPerSecond(unixMs, batches) {
    const before = this.batches;
    if (!before || unixMs !== before.unixMs) {
      const seconds = before ? (unixMs - before.unixMs) / 1000 : 0;
      const grew = before ? batches - before.batches : 0;
      const text = seconds > 0 && grew >= 0 ? count(grew / seconds) : "–";
      this.batches = { unixMs, batches, text };
    }
    return this.batches.text;
  }

  close() {
    this.charts.close();
  }
}
