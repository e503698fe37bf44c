// The dashboard: what each array and its recording say, live, and what was recorded.

import { LiveChart, emptyHistory, remember } from "./charts.js";
import { arrayPath, askForTokenBy, download, json, listen } from "./service.js";
import { Timeline } from "./timeline.js";
import { bytes, count, duration, element, moment, parsedTime, percent, scaled } from "./words.js";

const SAMPLE_MS = 1_000;
const LOSING_MS = 10_000;
const REREAD_MS = 60_000;
const FLOWS_MAX = 20;
const STAGES = {
  interface: "at the network adapter",
  kernel_ring: "in the kernel's ring",
  no_buffer: "for lack of a free buffer",
  array_full: "because the array is full",
  device_error: "by errors of drives",
};

const at = (id) => document.getElementById(id);
const rate = (value) => `${scaled(value, "B/s")}`;

/// By id: the array's last event, its losses, and its history.
const arrays = new Map();
let shown = null;
let charts = null;
let timeline = null;
let running = null;

/* Events */

function newArray() {
  return { event: null, lost: {}, take: null, losing: new Map(), rates: emptyHistory(2), buffers: emptyHistory(1) };
}

/// What a recorder says of its take, or what is on the array.
const account = (event) => event.status ?? event.take;

function enter(event) {
  if (!arrays.has(event.array)) arrays.set(event.array, newArray());
  const array = arrays.get(event.array);
  const before = array.event;
  array.event = event;
  enterLosses(array, event);
  if (before && before.recording !== event.recording) {
    announce(`${event.array}: ${event.recording ? "recording has started" : "recording has ended"}`);
    if (event.array === shown) readArray();
  }
  if (shown === null) show(event.array);
  renderArrays();
  if (event.array === shown) renderState();
}

/// Notices which counts of lost packets grow while somebody records.
function enterLosses(array, event) {
  const lost = event.status?.ledger.lost;
  if (!lost) return;
  const isSameTake = array.take === event.status.take;
  for (const [stage, { packets }] of Object.entries(lost)) {
    const known = isSameTake ? array.lost[stage] ?? 0 : packets;
    if (packets > known) enterLoss(array, event.array, stage, packets - known);
    array.lost[stage] = packets;
  }
  array.take = event.status.take;
}

function enterLoss(array, name, stage, packets) {
  const before = losingNow(array).find(([of]) => of === stage);
  array.losing.set(stage, { at: Date.now(), packets: packets + (before?.[1].packets ?? 0) });
  if (!before) announce(`${name}: packets are being lost ${STAGES[stage] ?? stage}`);
}

const losingNow = (array) => [...array.losing].filter(([, loss]) => Date.now() - loss.at < LOSING_MS);

function announce(text) {
  at("announcement").textContent = text;
}

function showConnection(isConnected, why) {
  at("connection").classList.toggle("broken", !isConnected);
  const text = isConnected ? "Live" : `Not live: ${why}. Trying again`;
  if (at("connection").textContent !== text) at("connection").textContent = text;
}

/* State */

function renderArrays() {
  const buttons = [...arrays].map(([id, array]) => {
    const state = array.event.error ? "can't be opened" : array.event.recording ? "recording" : "not recording";
    const words = losingNow(array).length ? `${state}, losing packets` : state;
    const button = element("button", { type: "button", "aria-pressed": id === shown }, `${id}: ${words}`);
    button.addEventListener("click", () => show(id));
    return button;
  });
  const list = at("arrays");
  const texts = (nodes) => nodes.map((node) => node.textContent + node.getAttribute("aria-pressed")).join("\n");
  // The buttons stay, and with them the focus, while they say the same.
  if (texts(buttons) === texts([...list.querySelectorAll("button")])) return;
  const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...buttons.map((button) => element("li", {}, button)));
  buttons[focused]?.focus();
}

function show(id) {
  shown = id;
  timeline.show([], []);
  ["takes", "members"].forEach((rows) => at(rows).replaceChildren());
  for (const input of ["since", "until", "filter"]) at(input).value = "";
  timeline.span = null;
  at("flows-section").hidden = true;
  at("answer").textContent = "";
  renderArrays();
  renderState();
  readArray();
}

function renderState() {
  const array = arrays.get(shown);
  if (!array) return;
  const { event } = array;
  renderHeadline(event);
  renderLoss(array);
  renderReach(event);
  renderFill(event);
  renderRate(event);
  renderBuffers(event);
  renderLedger(array);
  document.title = `${losingNow(array).length ? "LOSING: " : ""}${event.recording ? "● " : ""}${shown} – Longtake`;
}

function renderHeadline(event) {
  const headline = at("recording");
  headline.className = `headline ${event.recording ? "on" : "off"}`;
  const since = event.status && ` for ${duration(Date.now() - Date.parse(event.status.started))}`;
  headline.textContent = event.recording ? `Recording${since ?? ""}` : "Not recording";
  const { missing_members: missing = [], stale_members: stale = [] } = event.gauges ?? {};
  const troubles = [
    event.error && `The array can't be opened: ${event.error}.`,
    missing.length && `Members are missing: ${missing.join(", ")}.`,
    stale.length && `Members are out of date: ${stale.join(", ")}.`,
    ...(event.status?.members ?? []).map((member) => !member.working && `${member.target} takes no writes any more.`),
    event.recording && !event.status && "The recorder belongs to another user: its counters are not known.",
  ].filter(Boolean);
  at("trouble").hidden = troubles.length === 0;
  at("trouble").textContent = troubles.join(" ");
}

function renderLoss(array) {
  const losing = losingNow(array);
  const ledger = account(array.event)?.ledger;
  const lost = Object.values(ledger?.lost ?? {}).reduce((sum, { packets }) => sum + packets, 0);
  const loss = at("loss");
  if (losing.length) {
    loss.className = "headline losing";
    const parts = losing.map(([stage, { packets }]) => `${count(packets)} ${STAGES[stage] ?? stage}`);
    loss.textContent = `Losing packets: ${parts.join(", ")}`;
  } else if (lost > 0) {
    loss.className = "headline past";
    loss.textContent = `${count(lost)} packets of the newest take are lost (${percent(lost / ledger.offered.packets)}). None now.`;
  } else {
    loss.className = "headline good";
    loss.textContent = ledger ? "No packet of the newest take is lost" : "";
  }
}

function tile(name, value, detail) {
  at(name).textContent = value;
  at(`${name}-detail`).textContent = detail;
}

function renderReach({ gauges, recording }) {
  const first = gauges?.first_packet;
  if (!first) return tile("reach", "–", "nothing is recorded yet");
  const to = recording ? Date.now() : Date.parse(gauges.last_packet);
  tile("reach", duration(to - Date.parse(first)), `from ${moment(first)} to ${recording ? "now" : moment(to)} UTC`);
}

function renderFill(event) {
  const { gauges } = event;
  if (!gauges) return tile("fill", "–", "");
  const share = gauges.data_bytes ? gauges.used_bytes / gauges.data_bytes : 0;
  const detail = [`${bytes(gauges.used_bytes)} of ${bytes(gauges.data_bytes)}`];
  if (event.rate?.stored > 0) detail.push(`the whole array holds ${duration((1000 * gauges.data_bytes) / event.rate.stored)} at this rate`);
  tile("fill", percent(share), detail.join("; "));
}

function renderRate({ rate: now, recording }) {
  if (!now) return tile("rate", "–", recording ? "not known yet" : "nothing is being recorded");
  const bits = `${scaled(8 * now.stored, "b/s")} stored`;
  tile("rate", rate(now.stored), now.offered > now.stored * 1.01 ? `${bits}, ${rate(now.offered)} offered` : bits);
}

function buffersInUse({ status }) {
  return status?.buffers ? status.buffers_held / status.buffers : null;
}

function renderBuffers(event) {
  const share = buffersInUse(event);
  if (share === null) return tile("buffers", "–", event.recording ? "not known" : "nothing is being recorded");
  const keepsUp = share < 0.5 ? "the drives keep up" : "the drives fall behind; packets are lost when all buffers are in use";
  tile("buffers", percent(share), `${event.status.buffers_held} of ${event.status.buffers}; ${keepsUp}`);
}

function renderLedger(array) {
  const ledger = account(array.event)?.ledger;
  const losing = new Map(losingNow(array));
  const row = (name, sum, isLoss) => {
    const cells = ["packets", "bytes"].map((unit) => element("td", { class: "number" }, sum ? count(sum[unit]) : "not counted"));
    return element("tr", isLoss ? { class: "lost" } : {}, element("th", { scope: "row" }, name), ...cells);
  };
  const lost = Object.entries(ledger?.lost ?? {}).map(([stage, sum]) => {
    const name = `Lost ${STAGES[stage] ?? stage}${losing.has(stage) ? ", increasing" : ""}`;
    return row(name, sum, sum.packets > 0);
  });
  const cut = ledger?.cut?.packets ? [row("Left out by --cut", ledger.cut)] : [];
  const rows = ledger ? [row("Offered", ledger.offered), row("Stored", ledger.stored), row("Rejected by the filter", ledger.filtered), ...cut, ...lost] : [];
  at("ledger").replaceChildren(...rows);
}

/* Charts */

function makeCharts() {
  const series = [{ label: "Offered", stroke: "--second" }, { label: "Stored", stroke: "--link" }];
  charts = {
    rates: new LiveChart(at("rate-chart"), at("rate-caption"), { title: "Rate", series, write: rate }),
    buffers: new LiveChart(at("buffers-chart"), at("buffers-caption"), {
      title: "Buffers in use", series: [{ label: "Share", stroke: "--link" }], write: percent, top: 1,
    }),
  };
}

function sample() {
  for (const array of arrays.values()) {
    const { rate: now } = array.event;
    remember(array.rates, Date.now(), [now?.offered ?? null, now?.stored ?? null]);
    remember(array.buffers, Date.now(), [buffersInUse(array.event)]);
  }
  renderArrays();
  renderState();
  const array = arrays.get(shown);
  if (array) Object.entries(charts).forEach(([name, chart]) => chart.show(array[name]));
}

/* What is on the array */

async function readArray() {
  const id = shown;
  try {
    const described = await json(arrayPath(id));
    if (id !== shown) return;
    renderMembers(described);
    renderTakes(described);
  } catch (error) {
    answer(error.message, true);
  }
}

function renderMembers({ members, missing_members: missing = [], stale_members: stale }) {
  const rows = members.map((member) => {
    const isStale = stale.some((of) => of.member === member.member);
    const state = member.target === null ? "missing" : isStale ? "out of date" : "present";
    const size = member.segments * member.segment_bytes;
    const health = member.drive?.wear?.known;
    const cells = [
      member.target ?? member.identity, state, percent(size ? member.used_bytes / size : 0),
      typeof health?.temperature_celsius === "number" ? `${health.temperature_celsius} °C` : "not known",
      health ? `${health.percent_used} % of its life used` : "not known",
    ];
    const isBad = state !== "present" || health?.critical_warning > 0;
    const name = element("th", { scope: "row" }, member.member);
    return element("tr", isBad ? { class: "lost" } : {}, name, ...cells.map((text) => element("td", {}, text)));
  });
  at("members").replaceChildren(...rows);
}

function renderTakes({ takes, recording, protected: spans }) {
  const kept = takes.filter((take) => take.first_packet !== null);
  const bars = kept.map((take, index) => {
    const isUnderWay = recording && index === kept.length - 1;
    const [from, to] = [Date.parse(take.first_packet), Date.parse(take.last_packet)];
    const title = `${moment(from)}, ${duration(to - from)}, ${count(take.on_media.packets)} packets, ${take.state}`;
    return { from, to, title, isUnderWay };
  });
  const protectedSpans = spans.map(({ from, to, label }) => ({ from: Date.parse(from), to: Date.parse(to), title: `protected: ${label}` }));
  timeline.show(bars, protectedSpans);
  at("takes").replaceChildren(...takes.toReversed().map(takeRow));
}

function takeRow(take) {
  const lost = Object.values(take.ledger.lost).reduce((sum, { packets }) => sum + packets, 0);
  const texts = [moment(take.last_packet), count(take.on_media.packets), count(lost), take.state];
  const select = element("button", { type: "button", "aria-label": `Select the take of ${moment(take.started)}` }, "Select");
  select.disabled = take.first_packet === null;
  select.addEventListener("click", () => {
    [at("since").value, at("until").value] = [take.first_packet, take.last_packet];
    readSpan();
  });
  const name = element("th", { scope: "row" }, moment(take.started));
  const row = [name, ...texts.map((text) => element("td", {}, text)), element("td", {}, select)];
  return element("tr", lost > 0 ? { class: "lost" } : {}, ...row);
}

/* Selection */

/// The span of the timeline, in the fields. Its last millisecond is meant as a whole.
function writeSpan(from, to) {
  at("since").value = new Date(from).toISOString();
  at("until").value = new Date(to).toISOString().replace("Z", "999999Z");
}

/// The span of the fields, on the timeline.
function readSpan() {
  const { from, to } = timeline.whole ?? {};
  const [since, until] = ["since", "until"].map((id) => at(id).value.trim());
  const first = since === "" ? from : parsedTime(since);
  const last = until === "" ? to : parsedTime(until);
  const isKnown = [first, last].every((time) => typeof time === "number");
  if (isKnown && (since || until)) timeline.select(first, last);
  else timeline.select(1, 0);
}

function selection() {
  const value = (id) => at(id).value.trim();
  return { since: value("since"), until: value("until"), filter: value("filter") };
}

function answer(text, isFailure = false) {
  at("answer").className = isFailure ? "failed" : "";
  at("answer").textContent = text;
}

/// Does something that takes a while, with the buttons disabled meanwhile.
async function busy(text, work) {
  running = new AbortController();
  const buttons = [at("list-flows"), at("download")];
  buttons.forEach((button) => { button.disabled = true; });
  at("cancel").hidden = false;
  answer(text);
  try {
    answer(await work(running.signal));
  } catch (error) {
    answer(running.signal.aborted ? "Cancelled." : `Failed: ${error.message}`, true);
  } finally {
    buttons.forEach((button) => { button.disabled = false; });
    at("cancel").hidden = true;
    at("progress").textContent = "";
    running = null;
  }
}

const end = (address, port) => (port === null ? address : address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);

function listFlows() {
  return busy("Counting flows", async (signal) => {
    const found = await json(arrayPath(shown, "/flows", { ...selection(), top: FLOWS_MAX }), signal);
    const rows = found.flows.map((flow) => element("tr", {},
      element("td", {}, flow.protocol),
      element("td", {}, end(flow.source, flow.source_port)),
      element("td", {}, end(flow.destination, flow.destination_port)),
      element("td", { class: "number" }, count(flow.packets)),
      element("td", { class: "number" }, bytes(flow.bytes))));
    at("flows").replaceChildren(...rows);
    at("flows-section").hidden = false;
    const total = `${count(found.found)} flows, ${count(found.total.packets)} packets, ${bytes(found.total.bytes)}.`;
    return found.completeness.complete ? total : `${total} ${INCOMPLETE}`;
  });
}

const INCOMPLETE = "Some packets of the span are missing, overwritten or unreadable.";

function downloadSpan() {
  return busy("Reading packets", async (signal) => {
    const path = arrayPath(shown, "/packets", selection());
    const progress = (read) => { at("progress").textContent = `${bytes(read)} read`; };
    const { bytes: length, isComplete } = await download(path, `${shown}.pcapng`, signal, progress);
    return `${bytes(length)} downloaded. ${isComplete ? "" : INCOMPLETE}`;
  });
}

/* Start */

function askInDialog() {
  const dialog = at("token-dialog");
  dialog.showModal();
  return new Promise((resolve) => {
    at("token-form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close();
      resolve(at("token").value.trim());
      at("token").value = "";
    };
    dialog.oncancel = (event) => event.preventDefault();
  });
}

function start() {
  askForTokenBy(askInDialog);
  makeCharts();
  timeline = new Timeline(at("timeline"), writeSpan);
  at("zoom").addEventListener("click", () => timeline.zoomToSpan());
  at("whole").addEventListener("click", () => timeline.showWhole());
  at("reload").addEventListener("click", readArray);
  at("since").addEventListener("change", readSpan);
  at("until").addEventListener("change", readSpan);
  at("selection").addEventListener("submit", (event) => {
    event.preventDefault();
    listFlows();
  });
  at("download").addEventListener("click", downloadSpan);
  at("cancel").addEventListener("click", () => running?.abort());
  setInterval(sample, SAMPLE_MS);
  setInterval(() => document.hidden || shown === null || readArray(), REREAD_MS);
  listen(enter, showConnection);
}

start();
