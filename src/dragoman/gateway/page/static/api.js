// Client of the page's API: JSON requests, server-sent event streams, files. URLs never contain content.

const BASE = new URL('api/', document.baseURI);
const KEY = 'dragoman.key';

export class ApiError extends Error {
  constructor(message, status, kind, detail = '') {
    super(message);
    this.status = status;
    this.kind = kind;
    this.detail = detail; // the provider's own sentence
  }
}

export const CUT_OFF = new ApiError('The response was cut off: the connection closed early.', 0, 'cut');

let askForKey = null;
/** Sets the function that asks the user for a key; it resolves to the key or null. */
export function onKeyNeeded(ask) { askForKey = ask; }

export function storedKey() {
  try { return sessionStorage.getItem(KEY) || ''; } catch { return ''; }
}
export function storeKey(key) {
  try { key ? sessionStorage.setItem(KEY, key) : sessionStorage.removeItem(KEY); } catch { /* storage may be disabled: the key is not kept */ }
}

function address(path, query) {
  const url = new URL(path, BASE);
  if (!url.href.startsWith(BASE.href)) throw new ApiError('That URL is outside the page’s API.', 0, 'address');
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(name, value);
  }
  return url;
}

async function send(path, { method = 'GET', body, raw, query, signal } = {}, again = true) {
  const headers = { 'x-dragoman-page': '1' };
  const key = storedKey();
  if (key) headers.authorization = `Bearer ${key}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response;
  try {
    response = await fetch(address(path, query), {
      method, headers, signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
      body: raw ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (error.name === 'AbortError' || error instanceof ApiError) throw error;
    throw new ApiError('The gateway can’t be reached. Is it still running?', 0, 'unreachable');
  }
  if (response.status === 401 && again && askForKey) {
    const given = await askForKey(Boolean(key));
    if (given) { storeKey(given); return send(path, { method, body, raw, query, signal }, true); }
  }
  if (!response.ok) throw await failure(response);
  return response;
}

async function failure(response) {
  let reported = null;
  try { reported = (await response.json()).error; } catch { /* not JSON: report the status */ }
  const message = typeof reported?.message === 'string' ? reported.message : `The gateway returned status ${response.status}.`;
  return new ApiError(message, response.status, reported?.kind ?? '', reported?.detail);
}

export async function ask(path, options) {
  const response = await send(path, options);
  return response.status === 204 ? {} : response.json();
}

/** Like `ask`, but numbers that JavaScript would round keep their digits, as `JSON.rawJSON`. */
export async function askExactly(path, options) { return exactly(await (await send(path, options)).text()); }

export function exactly(text) {
  const keep = (key, value, context) => (typeof value === 'number' && context?.source && context.source !== String(value) && JSON.rawJSON ? JSON.rawJSON(context.source) : value);
  return JSON.parse(text, keep);
}

export async function blob(path, options) { return (await send(path, options)).blob(); }

/** A file, and what the gateway reports about its losses and repairs. */
export async function file(path, options) {
  const response = await send(path, options);
  const count = (name) => parseInt(response.headers.get(`x-dragoman-${name}`) ?? '0', 10);
  return { content: await response.blob(), losses: count('losses'), repairs: count('repairs') };
}

/** Yields the parsed events of a stream until it ends or the signal aborts. */
export async function* events(path, options) {
  const response = await send(path, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error) => { throw error.name === 'AbortError' ? error : CUT_OFF; });
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) if (line.startsWith('data:')) {
        const event = parsed(line.slice(5));
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

/** Downloads a blob as a file. */
export function save(content, name) {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function fileAsBase64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
