// Charts of the last minutes. Their points are replaced with each event, so they do not grow.
/* global Chart */

import { duration, rate } from "./format.js";
import { element } from "./dom.js";

const SECONDS = 300;
const dark = matchMedia("(prefers-color-scheme: dark)");

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// -120 as "-2 min".
function ago(seconds) {
  if (seconds === 0) return "now";
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

export class TimeChart {
  // `lines`: [{label, colour}], where the colour is the name of a CSS variable.
  // `format` writes a value; the scale goes to `leastMax` at least.
  constructor(title, lines, format = rate, leastMax = 1) {
    this.title = title;
    this.lines = lines;
    this.format = format;
    this.leastMax = leastMax;
    this.canvas = element("canvas", { role: "img" });
    this.root = element("figure", { class: "chart" }, element("figcaption", {}, title),
                        element("div", { class: "canvas" }, this.canvas));
    this.paint = () => { this.colour(); this.chart?.update("none"); };
    dark.addEventListener("change", this.paint);
  }

  // The canvas must be in the document, which gives it its size.
  make() {
    this.chart = new Chart(this.canvas, {
      type: "line",
      data: { datasets: this.lines.map((line) => ({ label: line.label, data: [] })) },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
        normalized: true,
        elements: { point: { radius: 0, hitRadius: 8 }, line: { borderWidth: 1.5 } },
        interaction: { mode: "index", intersect: false },
        plugins: {
          legend: { position: "bottom", labels: { boxWidth: 10, boxHeight: 2 } },
          tooltip: { callbacks: {
            title: (items) => items.length ? ago(items[0].parsed.x) : "",
            label: (item) => `${item.dataset.label}: ${this.format(item.parsed.y)}`,
          } },
        },
        scales: {
          x: { type: "linear", min: -SECONDS, max: 0, grid: { display: false },
               ticks: { stepSize: 60, callback: ago } },
          y: { beginAtZero: true, suggestedMax: this.leastMax, grid: {},
               ticks: { maxTicksLimit: 5, callback: (value) => this.format(value) } },
        },
      },
    });
    this.colour();
  }

  colour() {
    if (!this.chart) return;
    const text = colour("--muted");
    this.chart.data.datasets.forEach((set, i) => {
      set.borderColor = colour(this.lines[i].colour);
      set.backgroundColor = set.borderColor;
      if (this.lines[i].dashed) set.borderDash = [4, 4];
    });
    const { scales, plugins } = this.chart.options;
    scales.x.ticks.color = scales.y.ticks.color = plugins.legend.labels.color = text;
    scales.y.grid.color = colour("--line");
  }

  // `columns`: for each line an array of numbers, one for each of `unixS`; null: a gap.
  show(unixS, columns) {
    if (!this.chart) this.make();
    const last = unixS.length ? unixS[unixS.length - 1] : 0;
    const from = Math.max(0, unixS.length - SECONDS);
    this.lines.forEach((_line, i) => {
      const data = [];
      for (let at = from; at < unixS.length; at++) {
        data.push({ x: unixS[at] - last, y: columns[i][at] });
      }
      this.chart.data.datasets[i].data = data;
    });
    this.chart.update("none");
    const now = this.lines.map((line, i) =>
      `${line.label} ${this.format(columns[i][unixS.length - 1] ?? 0)}`);
    this.canvas.setAttribute("aria-label", `${this.title}, now: ${now.join(", ")}`);
  }

  close() {
    dark.removeEventListener("change", this.paint);
    this.chart?.destroy();
    this.chart = null;
  }
}

// What a flow and all flows together show.
export class PointCharts {
  constructor() {
    this.calls = new TimeChart("Calls", [
      { label: "in progress", colour: "--series-a" },
      { label: "waiting", colour: "--series-b" },
    ]);
    this.answers = new TimeChart("Answers a second", [
      { label: "granted", colour: "--series-a" },
      { label: "refused", colour: "--series-b" },
    ]);
    this.held = new TimeChart("How long ended tokens were held, mean", [
      { label: "held", colour: "--series-a" },
    ], duration, 100);
    this.charts = [this.calls, this.answers, this.held];
    this.root = element("div", { class: "charts" }, ...this.charts.map((chart) => chart.root));
  }

  show(points) {
    const held = points.ended.map((ended, i) => ended ? points.held_ms[i] / ended : null);
    this.calls.show(points.unix_s, [points.now_calls, points.waiting]);
    this.answers.show(points.unix_s, [points.granted, points.refused]);
    this.held.show(points.unix_s, [held]);
  }

  close() {
    for (const chart of this.charts) chart.close();
  }
}
