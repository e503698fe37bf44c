// Requests to the service: its answers, its live events, its files, and the token that it may ask for.

const TOKEN = "longtake-token";
const DOWNLOAD_BYTES_MAX = 1e9;
const SILENCE_MAX_MS = 40_000;
const RETRY_MS = 2_000;

let askedForToken = null;

/// Sets the function that asks the user for a token and returns a promise of it.
let askForToken = () => Promise.reject(new Error("A token is needed."));
export function askForTokenBy(ask) {
  askForToken = ask;
}

async function newToken(refused) {
  if (sessionStorage.getItem(TOKEN) !== refused) return;
  askedForToken ??= askForToken().finally(() => { askedForToken = null; });
  sessionStorage.setItem(TOKEN, await askedForToken);
}

async function request(path, signal) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const response = await fetch(path, { headers, signal, cache: "no-store", credentials: "omit" });
    if (response.ok) return response;
    if (response.status !== 401) throw await failure(response);
    await newToken(token);
  }
}

async function failure(response) {
  const told = await response.json().catch(() => ({}));
  const text = told.error ? `${told.error}; ${told.remedy}` : `the service answered with ${response.status}`;
  return new Error(text);
}

/// The JSON that is answered.
export async function json(path, signal) {
  return (await request(path, signal)).json();
}

/// The path of a part of an array, with those parameters that are not empty.
export function arrayPath(id, part = "", parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
  const path = `/api/v1/arrays/${encodeURIComponent(id)}${part}`;
  return query.size ? `${path}?${query}` : path;
}

/// Hands on every event, for ever. `connected` is told whether events come, and why not.
export async function listen(onEvent, connected) {
  for (;;) {
    try {
      await listenOnce(onEvent, () => connected(true));
      connected(false, "the service has ended the stream");
    } catch (error) {
      connected(false, error.message);
    }
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

async function listenOnce(onEvent, isAlive) {
  const abort = new AbortController();
  const response = await request("/api/v1/events", abort.signal);
  let watchdog;
  const rearm = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => abort.abort(new Error("the service is silent")), SILENCE_MAX_MS);
    isAlive();
  };
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  rearm();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rearm();
      const blocks = (text + value).split("\n\n");
      text = blocks.pop();
      blocks.map(dataOf).filter(Boolean).forEach((data) => onEvent(JSON.parse(data)));
    }
  } finally {
    clearTimeout(watchdog);
  }
}

function dataOf(block) {
  const lines = block.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).trimStart()).join("\n");
}

/// Saves an answer as a file. Returns its length, and whether all that was asked for was there.
export async function download(path, name, signal, onProgress) {
  const response = await request(path, signal);
  const reader = response.body.getReader();
  const parts = [];
  let bytes = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    parts.push(value);
    bytes += value.length;
    if (bytes > DOWNLOAD_BYTES_MAX) {
      await reader.cancel();
      throw new Error("the span holds more than 1 GB: select less, or use `longtake extract`");
    }
    onProgress(bytes);
  }
  save(new Blob(parts, { type: response.headers.get("content-type") }), name);
  return { bytes, isComplete: response.headers.get("longtake-complete") === "true" };
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
