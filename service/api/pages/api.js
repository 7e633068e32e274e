// Calls of the HTTP API. The key lives in this module's memory and goes into one header, nowhere else.

let credentials = null;

export class Problem extends Error {
  constructor({ status = 0, code = "unreachable", detail, hint = null, errors = null }) {
    super(detail);
    this.status = status;
    this.code = code;
    this.hint = errors ? errors.map((flaw) => `${flaw.place}: ${flaw.message}`).join("; ") : hint;
  }
}

/** Use this key from now on; null: none. */
export function useKey(key, tenant) {
  credentials = key ? { key, tenant: tenant || null } : null;
}

export const hasKey = () => credentials !== null;

/** Post a body and return the answer; a Problem where the service has one. */
export async function post(path, body, signal) {
  const response = await call(path, { method: "POST", body, signal });
  return response.json();
}

/** Get an answer. */
export async function get(path, signal) {
  const response = await call(path, { method: "GET", signal });
  return response.json();
}

/** Post a body and yield the events of the answer as they come: { name, data }. */
export async function* stream(path, body, signal) {
  const response = await call(path, { method: "POST", body, signal, accept: "text/event-stream" });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? "";
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = done ? "" : blocks.pop();
    for (const block of blocks) {
      const event = readEvent(block);
      if (event) yield event;
    }
    if (done) return;
  }
}

export const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

function readEvent(block) {
  let name = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const [field, value] = splitField(line);
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}

function splitField(line) {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
}

async function call(path, { method, body, signal, accept = "application/json" }) {
  const headers = { Accept: accept };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (credentials) headers.Authorization = `Bearer ${credentials.key}`;
  if (credentials?.tenant) headers["X-Tenant"] = credentials.tenant;
  const request = { method, headers, signal, credentials: "omit", cache: "no-store" };
  if (body !== undefined) request.body = JSON.stringify(body);
  const response = await reach(path, request);
  if (!response.ok) throw await readProblem(response);
  return response;
}

async function reach(path, request) {
  try {
    return await fetch(path, request);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Problem({
      detail: "The service does not answer.",
      hint: "Is it running? Try again in a moment.",
    });
  }
}

async function readProblem(response) {
  const fallback = { status: response.status, code: "http_error", detail: `HTTP ${response.status}` };
  try {
    const problem = await response.json();
    const wait = response.headers.get("Retry-After");
    const hint = problem.hint ?? (wait ? `Try again in ${wait} s.` : null);
    return new Problem({ ...fallback, ...problem, hint });
  } catch {
    return new Problem(fallback);
  }
}
