// Numbers, sizes and times as words, and elements whose text is never markup.

const UNITS = ["", "k", "M", "G", "T", "P"];

/// An element with attributes and children. Texts become text, whatever they hold.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/// Three significant digits with a decimal prefix: "1.25 GB".
export function scaled(value, unit) {
  let at = 0;
  while (value >= 999.5 && at < UNITS.length - 1) {
    value /= 1000;
    at += 1;
  }
  const digits = at === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.max(value, 1))));
  return `${value.toFixed(digits)} ${UNITS[at]}${unit}`;
}

export const bytes = (value) => scaled(value, "B");
export const count = (value) => value.toLocaleString("en");
export const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

/// A duration with its two largest units: "3 h 20 min".
export function duration(ms) {
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  let seconds = Math.max(0, Math.round(ms / 1000));
  const parts = [];
  for (const [name, length] of units) {
    const number = Math.floor(seconds / length);
    seconds -= number * length;
    if (number > 0 || (name === "s" && parts.length === 0)) parts.push(`${number} ${name}`);
  }
  return parts.slice(0, 2).join(" ");
}

/// A point in time, of milliseconds or RFC 3339, to the second: "2026-11-26 05:00:03".
export function moment(at) {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? "–" : time.toISOString().slice(0, 19).replace("T", " ");
}

/// Milliseconds since 1970 of a time as the service takes it; null if it is none of the forms known here.
export function parsedTime(text) {
  const ago = /^-(\d+(?:\.\d+)?)(s|m|min|h|d)$/.exec(text);
  const factors = { s: 1e3, m: 6e4, min: 6e4, h: 36e5, d: 864e5 };
  if (ago) return Date.now() - ago[1] * factors[ago[2]];
  if (text === "now") return Date.now();
  const at = /^\d{4}-/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? null : at;
}
