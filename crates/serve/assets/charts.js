// Live charts of the last ten minutes, each with its content as a sentence.

/* global uPlot */

const SAMPLES_MAX = 600;
const SPAN_MS = 600_000;
const TICKS_MS = [60_000, 120_000, 300_000];
const HEIGHT = 200;

const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name);

/// A chart of series over time; `series` has a label, a colour and how a value is written.
export class LiveChart {
  constructor(place, caption, { title, series, write, axis, top }) {
    Object.assign(this, { place, caption, title, series, write });
    const scales = {
      x: { range: (_, __, max) => [(max ?? Date.now()) - SPAN_MS, max ?? Date.now()] },
      y: { range: (_, __, max) => [0, top ?? Math.max(max, 1000) * 1.1] },
    };
    const clock = (_, times) => times.map((time) => new Date(time).toISOString().slice(11, 16));
    const lines = { stroke: colour("--quiet"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot({
      width: place.clientWidth || 300, height: HEIGHT, cursor: { show: false }, legend: { show: false }, ms: 1,
      scales,
      axes: [{ ...lines, space: 60, incrs: TICKS_MS, values: clock }, { ...lines, size: 80, values: (_, values) => values.map(axis ?? write) }],
      series: [{}, ...series.map(({ label, stroke }) => ({ label, stroke: colour(stroke), width: 2, points: { show: false } }))],
    }, [[], ...series.map(() => [])], place);
    new ResizeObserver(() => this.plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw());
  }

  /// Shows a history: times in milliseconds, then the values of each series, null where there is none.
  show(history) {
    this.plot.setData(history);
    const said = this.series.map(({ label }, at) => this.sentence(label, history[at + 1]));
    this.caption.textContent = `${this.title}. ${said.join(" ")}`;
  }

  sentence(label, values) {
    const known = values.filter((value) => value !== null);
    const now = values.at(-1);
    if (!known.length) return `${label}: no values.`;
    const range = `${this.write(Math.min(...known))} to ${this.write(Math.max(...known))}`;
    return `${label}: ${now === null ? "none now" : `${this.write(now)} now`}, ${range}.`;
  }
}

/// An empty history of so many series.
export const emptyHistory = (series) => Array.from({ length: series + 1 }, () => []);

/// Appends values of a time, and forgets the oldest.
export function remember(history, time, values) {
  [time, ...values].forEach((value, at) => {
    history[at].push(value);
    if (history[at].length > SAMPLES_MAX) history[at].shift();
  });
}
