// Charts of the last minutes. Their points are replaced with each look, so they do not grow.
//
// Each line is the mean of ten seconds, with the seconds pale behind it. The scale follows the
// means: a spike of one second is cut off at the top, and told beside the title.
/* global Chart */

import { duration, rate } from "./format.js";
import { element, setText } from "./dom.js";

const SECONDS = 300;
const MEAN_SECONDS = 10;
const SPIKE = 2;  // So many times the highest mean is shown; what goes beyond is cut off.
const looks = ["(prefers-color-scheme: dark)", "(forced-colors: active)"].map((q) => matchMedia(q));

// -120 as "-2 min".
function ago(seconds) {
  if (seconds === 0) return "now";
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

// Where a scale may end.
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => value <= unit * step * 1.0001);
}

// Of each place the sum of `over` by that of `of` in the seconds before it; null: there is none.
function means(over, of) {
  let top = 0, bottom = 0;
  return over.map((value, at) => {
    top += value;
    bottom += of[at];
    if (at >= MEAN_SECONDS) {
      top -= over[at - MEAN_SECONDS];
      bottom -= of[at - MEAN_SECONDS];
    }
    return bottom > 0 ? top / bottom : null;
  });
}

function largest(values) {
  return values.reduce((most, value) => Math.max(most, value ?? 0), 0);
}

export class TimeChart {
  // `lines`: [{label, colour, dashed?}], where the colour is the name of a CSS variable.
  // `format` writes a value; the scale goes to `leastMax` at least.
  constructor(title, lines, format = rate, leastMax = 1) {
    this.title = title;
    this.lines = lines;
    this.format = format;
    this.leastMax = leastMax;
    this.canvas = element("canvas", { role: "img" });
    this.peak = element("span", { class: "peak" });
    this.root = element("figure", { class: "chart" },
                        element("figcaption", {}, title, this.peak),
                        element("div", { class: "canvas" }, this.canvas));
    this.paint = () => { this.colour(); this.chart?.update("none"); };
    for (const look of looks) look.addEventListener("change", this.paint);
  }

  // The canvas must be in the document, which gives it its size.
  make() {
    const sets = (label, width) => this.lines.map((line) => ({
      label: label ? line.label : "", data: [], borderWidth: width,
      borderDash: line.dashed ? [5, 4] : [],
    }));
    this.chart = new Chart(this.canvas, {
      type: "line",
      data: { datasets: [...sets(true, 2), ...sets(false, 1)] },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
        normalized: true,
        elements: { point: { radius: 0, hitRadius: 8 } },
        interaction: { mode: "index", intersect: false },
        plugins: {
          legend: { position: "bottom", labels: {
            usePointStyle: true, pointStyle: "line", filter: (item) => item.text !== "",
          } },
          tooltip: { filter: ({ datasetIndex }) => this.isTold(datasetIndex), callbacks: {
            title: (items) => items.length ? ago(items[0].parsed.x) : "",
            label: (item) => this.tell(item),
          } },
        },
        scales: {
          x: { type: "linear", min: -SECONDS, max: 0, grid: { display: false },
               ticks: { stepSize: 60, maxRotation: 0, autoSkip: false,
                        callback: (at) => at % 120 === 0 ? ago(at) : "" } },
          y: { beginAtZero: true, grid: {},
               ticks: { maxTicksLimit: 5, callback: (value) => this.format(value) } },
        },
      },
    });
    this.colour();
  }

  isTold(index) {
    return index < this.lines.length && !this.lines[index].dashed;
  }

  // "granted: 12, mean 8.5"
  tell({ dataset, datasetIndex, dataIndex, parsed }) {
    const second = this.chart.data.datasets[datasetIndex + this.lines.length].data[dataIndex];
    return `${dataset.label}: ${this.format(second?.y)}, mean ${this.format(parsed.y)}`;
  }

  // As the browser sees it: a word like CanvasText is a colour, too.
  css(name) {
    this.canvas.style.color = `var(${name})`;
    return getComputedStyle(this.canvas).color;
  }

  colour() {
    if (!this.chart) return;
    const { datasets } = this.chart.data;
    this.lines.forEach((line, i) => {
      const strong = this.css(line.colour);
      datasets[i].borderColor = datasets[i].backgroundColor = strong;
      datasets[i + this.lines.length].borderColor =
        strong.replace(/^rgb\((.*)\)$/, "rgba($1, 0.35)");
    });
    const { scales, plugins } = this.chart.options;
    scales.x.ticks.color = scales.y.ticks.color = plugins.legend.labels.color = this.css("--muted");
    scales.y.grid.color = this.css("--line");
  }

  // For each line {means, seconds}: arrays of numbers, one for each of `unixS`; null: a gap. Or
  // {level}, a number, or null without one.
  show(unixS, columns) {
    if (!this.chart) this.make();
    const last = unixS.length ? unixS[unixS.length - 1] : 0;
    const from = Math.max(0, unixS.length - SECONDS);
    const points = (column) =>
      (column ?? []).slice(from).map((y, i) => ({ x: unixS[from + i] - last, y }));
    const peaks = columns.map((column) => largest((column.seconds ?? []).slice(from)));
    const mean = largest(columns.map((column) => largest((column.means ?? []).slice(from))));
    const level = 1.1 * largest(columns.map((column) => column.level));
    const shown = Math.max(mean, Math.min(largest(peaks), SPIKE * mean));
    const max = roundUp(Math.max(this.leastMax, level, shown));
    this.chart.options.scales.y.max = max;
    columns.forEach((column, i) => {
      const across = (y) => [-SECONDS, 0].map((x) => ({ x, y }));
      this.chart.data.datasets[i].data =
        column.means ? points(column.means) : across(column.level);
      this.chart.data.datasets[i + this.lines.length].data = points(column.seconds);
    });
    this.chart.update("none");
    const cut = this.lines.map(({ label }, i) => peaks[i] <= max ? ""
      : this.lines.length > 1 ? `${label} ${this.format(peaks[i])}` : this.format(peaks[i]));
    setText(this.peak, cut.some(Boolean) ? `peak ${cut.filter(Boolean).join(", ")}` : "");
    const now = this.lines.map(({ label }, i) =>
      `${label} ${this.format(columns[i].seconds?.[unixS.length - 1] ?? columns[i].level ?? 0)}`);
    this.canvas.setAttribute("aria-label", `${this.title}, now: ${now.join(", ")}`);
  }

  close() {
    for (const look of looks) look.removeEventListener("change", this.paint);
    this.chart?.destroy();
    this.chart = null;
  }
}

// What a flow and all flows together show.
export class PointCharts {
  // `leveled`: with a line for the level.
  constructor({ leveled = false } = {}) {
    const line = (label, colour, dashed = false) => ({ label, colour, dashed });
    const level = leveled ? [line("level", "--muted", true)] : [];
    this.calls = new TimeChart("Calls", [
      line("in progress", "--series-a"), line("waiting", "--series-b"), ...level,
    ]);
    this.answers = new TimeChart("Answers a second", [
      line("granted", "--series-a"), line("refused", "--series-b"),
    ]);
    this.ended = new TimeChart("Ended a second", [
      line("all", "--series-a"), line("failed or timed out", "--series-b"),
    ]);
    this.held = new TimeChart("Mean hold of ended tokens", [
      line("held", "--series-a"),
    ], duration, 100);
    this.leveled = leveled;
    this.charts = [this.calls, this.answers, this.ended, this.held];
    this.root = element("div", { class: "charts" }, ...this.charts.map((chart) => chart.root));
  }

  // `level`: null without one.
  show(points, level = null) {
    const ones = points.unix_s.map(() => 1);
    const both = (name) => ({ seconds: points[name], means: means(points[name], ones) });
    const flat = this.leveled ? [{ level }] : [];
    const held = points.ended.map((ended, i) => ended ? points.held_ms[i] / ended : null);
    this.calls.show(points.unix_s, [both("now_calls"), both("waiting"), ...flat]);
    this.answers.show(points.unix_s, [both("granted"), both("refused")]);
    this.ended.show(points.unix_s, [both("ended"), both("exceptions")]);
    this.held.show(points.unix_s,
                   [{ seconds: held, means: means(points.held_ms, points.ended) }]);
  }

  close() {
    for (const chart of this.charts) chart.close();
  }
}
