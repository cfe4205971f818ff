// Shared state of the page: its location, the gateway's capabilities, the theme.
import { ask } from './api.js';
import { store } from './ui.js';

// --- the location: `#/view/id?name=value`; the fragment is never sent to a server

function read() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view = '', id = ''] = path.split('/');
  return { view: view || 'talk', id: decode(id), query: Object.fromEntries(new URLSearchParams(query)) };
}
function decode(text) { try { return decodeURIComponent(text); } catch { return ''; } }

export const place = store(read());
window.addEventListener('hashchange', () => place.set(read()));

export function address(view, id = '', query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  const text = new URLSearchParams(kept).toString();
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ''}${text ? `?${text}` : ''}`;
}
export function go(view, id, query) { location.hash = address(view, id, query); }

/** Changes the URL without adding an entry to the browser's history. */
export function restate(view, id, query) {
  history.replaceState(null, '', address(view, id, query));
  place.set(read());
}

// --- the gateway

export const gateway = store({ info: null, models: [], error: null });

let meeting = null;
export function meet() {
  meeting = (async () => {
    try {
      const info = await ask('info');
      gateway.patch({ info, error: null });
      const { models } = await ask('models');
      gateway.patch({ models });
    } catch (error) {
      gateway.patch({ error });
    }
  })();
  return meeting;
}

/** The model of a new conversation; '' until the gateway has told its models. */
export const firstModel = () => gateway.value.info?.default_model || gateway.value.models[0]?.id || '';
/** The same, once the gateway has told its models. */
export async function firstModelTold() { await meeting; return firstModel(); }

// --- preferences kept in this browser, never content

const PREFIX = 'dragoman.';
export function remembered(name, otherwise = '') {
  try { return localStorage.getItem(PREFIX + name) ?? otherwise; } catch { return otherwise; }
}
export function remember(name, value) {
  try { value ? localStorage.setItem(PREFIX + name, value) : localStorage.removeItem(PREFIX + name); } catch { /* storage may be disabled: kept until the page is closed */ }
}

export const theme = store(remembered('theme', 'auto'));
export function chooseTheme(name) {
  theme.set(name);
  remember('theme', name === 'auto' ? '' : name);
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

/** The conversation or text shown in the lens. In memory only, so that no link can contain it. */
export const lensSource = store(null);
/** The text last pasted into the lens, so that it can be corrected. */
export const lensDraft = store({ text: '', dialect: '' });
/** Incremented when a conversation is added, renamed or deleted; lists reload on change. */
export const changes = store(0);
const drawAgain = () => changes.set((number) => number + 1);
/** Reports a change to this tab's lists and to the page in other tabs; `id` is a conversation whose messages changed. */
export function changed(id = null) {
  drawAgain();
  tabs?.postMessage(id);
}

const tabs = globalThis.BroadcastChannel ? new BroadcastChannel('dragoman') : null;
/** Calls a function with the id of a conversation that another tab changed; with null, any may have changed. */
export function onChangeElsewhere(take) {
  const told = (id) => { drawAgain(); take(id); };
  tabs?.addEventListener('message', ({ data }) => told(data));
  document.addEventListener('visibilitychange', () => { if (!document.hidden) told(null); });
}
