// Takes on a line of time, and a span that is selected on it by pointer or keyboard.

import { duration, moment } from "./words.js";

const HEIGHT = 110;
const TAKES_TOP = 26;
const TAKES_HEIGHT = 40;
const AXIS_TOP = 84;
const TICK_STEPS_S = [1, 2, 5, 10, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000, 31_536_000];
const KEYS = { ArrowLeft: -0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1 };

function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

export class Timeline {
  /// In a place of the page. `onSelect(from, to)` is called with milliseconds when the user has selected a span.
  constructor(place, onSelect) {
    this.onSelect = onSelect;
    this.takes = [];
    this.protected = [];
    this.whole = null;
    this.view = null;
    this.span = null;
    this.svg = shape("svg", { role: "presentation" });
    this.drawn = shape("g", { "aria-hidden": "true" });
    this.band = shape("rect", { class: "span", y: TAKES_TOP - 8, height: TAKES_HEIGHT + 22 });
    this.ends = ["Start", "End"].map((name, at) => this.makeEnd(name, at));
    this.svg.append(this.drawn, this.band, ...this.ends);
    place.replaceChildren(this.svg);
    this.followPointer();
    new ResizeObserver(() => this.draw()).observe(place);
  }

  makeEnd(name, at) {
    const end = shape("rect", {
      class: "end", role: "slider", tabindex: 0, "aria-label": `${name} of the span`, "aria-orientation": "horizontal",
      y: TAKES_TOP - 8, width: 6, height: TAKES_HEIGHT + 22, rx: 3,
    });
    end.addEventListener("keydown", (event) => this.moveByKey(event, at));
    return end;
  }

  /// Shows these takes and protected spans: each with `from` and `to` in milliseconds.
  show(takes, protectedSpans) {
    this.takes = takes;
    this.protected = protectedSpans;
    const from = Math.min(...takes.map((take) => take.from));
    const to = Math.max(...takes.map((take) => take.to));
    const wasWhole = !this.view || this.view === this.whole;
    this.whole = takes.length ? { from, to: Math.max(to, from + 1) } : null;
    if (wasWhole) this.view = this.whole;
    this.draw();
  }

  /// Selects a span, without calling back.
  select(from, to) {
    this.span = from <= to ? { from, to } : null;
    this.draw();
  }

  zoomToSpan() {
    if (this.span && this.span.to > this.span.from) this.view = { ...this.span };
    this.draw();
  }

  showWhole() {
    this.view = this.whole;
    this.draw();
  }

  get width() {
    return Math.max(this.svg.clientWidth, 1);
  }

  x(time) {
    return ((time - this.view.from) / (this.view.to - this.view.from)) * this.width;
  }

  timeAt(clientX) {
    const x = clientX - this.svg.getBoundingClientRect().left;
    const share = Math.min(1, Math.max(0, x / this.width));
    return this.view.from + share * (this.view.to - this.view.from);
  }

  choose(one, other) {
    this.select(Math.min(one, other), Math.max(one, other));
    this.onSelect(this.span.from, this.span.to);
  }

  followPointer() {
    let fixed = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (!this.view || event.button !== 0) return;
      const moved = this.ends.indexOf(event.target);
      fixed = moved < 0 || !this.span ? this.timeAt(event.clientX) : [this.span.to, this.span.from][moved];
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (fixed !== null) this.choose(fixed, this.timeAt(event.clientX));
    });
    const release = () => { fixed = null; };
    this.svg.addEventListener("pointerup", release);
    this.svg.addEventListener("pointercancel", release);
  }

  moveByKey(event, at) {
    const isEdge = event.key === "Home" || event.key === "End";
    const step = KEYS[event.key];
    if (!this.view || !(isEdge || step)) return;
    event.preventDefault();
    const span = this.span ?? this.whole;
    const times = [span.from, span.to];
    const moved = times[at] + (step ?? 0) * (event.shiftKey ? 10 : 1) * (this.view.to - this.view.from);
    times[at] = isEdge ? (event.key === "Home" ? this.whole.from : this.whole.to) : moved;
    times[at] = Math.min(this.whole.to, Math.max(this.whole.from, times[at]));
    times[1 - at] = at === 0 ? Math.max(times[0], times[1]) : Math.min(times[0], times[1]);
    this.choose(...times);
  }

  draw() {
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.drawn.replaceChildren();
    this.svg.toggleAttribute("hidden", !this.view);
    if (!this.view) return;
    this.drawAxis();
    this.takes.forEach((take) => this.drawBar(take, take.isUnderWay ? "take under-way" : "take", TAKES_TOP, TAKES_HEIGHT));
    this.protected.forEach((span) => this.drawBar(span, "protected", TAKES_TOP + TAKES_HEIGHT + 3, 5));
    this.drawSpan();
  }

  drawBar({ from, to, title }, kind, y, height) {
    const [left, right] = [Math.max(0, this.x(from)), Math.min(this.width, this.x(to))];
    if (right < 0 || left > this.width) return;
    const bar = shape("rect", { class: kind, x: left, y, width: Math.max(2, right - left), height, rx: 2 });
    bar.append(shape("title", {}, title));
    this.drawn.append(bar);
  }

  drawAxis() {
    const span = this.view.to - this.view.from;
    const ticks = Math.max(1, Math.floor(this.width / 150));
    const step = 1000 * (TICK_STEPS_S.find((seconds) => span / (1000 * seconds) <= ticks) ?? TICK_STEPS_S.at(-1));
    for (let at = Math.ceil(this.view.from / step) * step; at <= this.view.to; at += step) {
      const x = this.x(at);
      this.drawn.append(shape("line", { class: "tick", x1: x, x2: x, y1: TAKES_TOP - 8, y2: AXIS_TOP }));
      const anchor = x < 60 ? "start" : x > this.width - 60 ? "end" : "middle";
      this.drawn.append(shape("text", { x, y: AXIS_TOP + 16, "text-anchor": anchor }, moment(at)));
    }
    this.drawn.append(shape("text", { x: 0, y: 12 }, `${moment(this.view.from)}, ${duration(span)}`));
  }

  drawSpan() {
    const span = this.span ?? this.whole;
    const [left, right] = [this.x(span.from), this.x(span.to)];
    this.band.setAttribute("x", left);
    this.band.setAttribute("width", Math.max(1, right - left));
    this.band.toggleAttribute("hidden", !this.span);
    [left, right].forEach((x, at) => {
      const end = this.ends[at];
      end.setAttribute("x", Math.min(this.width - 6, Math.max(0, x - 3)));
      end.setAttribute("aria-valuemin", this.whole.from);
      end.setAttribute("aria-valuemax", this.whole.to);
      end.setAttribute("aria-valuenow", at === 0 ? span.from : span.to);
      end.setAttribute("aria-valuetext", `${moment(at === 0 ? span.from : span.to)} UTC`);
    });
  }
}
