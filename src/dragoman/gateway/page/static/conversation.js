// State of the open conversation: loading, sending messages, branches. It lives outside the views,
// so a response keeps streaming while another view is open.
import { CUT_OFF, ask, events, fileAsBase64 } from './api.js';
import { prepared } from './markdown.js';
import { store, announce, failed, toast } from './ui.js';
import { draft } from './draft.js';
import { changed, gateway, go, onChangeElsewhere, place } from './state.js';

const FIRST = 40; // messages in the first page: slightly more than a screenful
const PAGE = 200;
const RECONNECT = 500; // milliseconds
const BUSY = 409;
const LONG = 1_000_000; // characters of attachments: sending them may take longer than waiting for an answer
const NOTHING = { id: null, title: '', firstLine: '', tags: [], pinned: false, model: '', options: null, branch: null, branches: [], messages: [], hasMore: false, loading: false, live: null, error: null, unanswered: false };

export const conversation = store(NOTHING);
const now = () => conversation.value;

/** The model and the options that were chosen for the next response, by conversation; null is a new one. */
export const chosen = store(new Map());
export const choose = (id, change) => chosen.set((all) => new Map(all).set(id, { ...all.get(id), ...change }));

let opening = 0;
export async function open(id, branch) {
  if (now().live?.isFollowed) now().live.control.abort();
  if (!id) { opening += 1; conversation.set(NOTHING); return; }
  const turn = (opening += 1);
  if (now().id !== id) conversation.set({ ...NOTHING, id, loading: true });
  try {
    const found = await ask(`conversations/${encodeURIComponent(id)}`, { query: { branch, limit: FIRST } });
    await prepared(textsOf(found.messages));
    if (turn !== opening) return;
    conversation.set({ ...now(), ...shaped(found), loading: false, live: null, error: null, unanswered: isUnanswered(found) });
    if (found.run) follow(found.run);
  } catch (error) {
    if (turn === opening) conversation.set({ ...now(), loading: false, error });
  }
}

const textsOf = (messages) => messages.flatMap((view) => view.parts.filter((part) => part.kind === 'text').map((part) => part.text));
const isUnanswered = (found) => !found.run && found.messages.at(-1)?.role === 'user';
const shaped = (found) => ({ id: found.id, title: found.title || (now().id === found.id ? now().title : ''), // it may have been written since
  firstLine: found.first_line ?? '', tags: found.tags ?? [], pinned: found.pinned, model: found.route ?? '', options: found.options, branch: found.branch, branches: found.branches ?? [], messages: found.messages, hasMore: found.has_more });

let loading = null;
/** Loads a page of messages before the first one. */
export function loadEarlier() {
  const { id, branch, messages, hasMore } = now();
  if (!hasMore || !messages.length) return Promise.resolve();
  loading ??= ask(`conversations/${encodeURIComponent(id)}`, { query: { branch, before: messages[0].id, limit: PAGE } })
    .then(async (found) => { await prepared(textsOf(found.messages)); return found; })
    .then((found) => { if (now().id === id && now().branch === branch && now().messages[0] === messages[0]) conversation.patch({ messages: [...found.messages, ...now().messages], hasMore: found.has_more }); })
    .catch(failed)
    .finally(() => { loading = null; });
  return loading;
}

/** Loads earlier messages until one of them is there (a search result may be far up). */
export async function reach(message) {
  const { id } = now();
  const isThere = () => now().messages.some((one) => one.id === message);
  for (let turn = 0; turn < 100 && now().id === id && now().hasMore && !isThere(); turn += 1) await loadEarlier();
  return isThere();
}

export async function switchBranch(number) {
  const { id } = now();
  await open(id, number);
  ask(`conversations/${encodeURIComponent(id)}`, { method: 'PATCH', body: { branch: number } }).catch(failed);
  announce(`Branch ${number}`);
}

export async function rename(id, title) {
  await ask(`conversations/${encodeURIComponent(id)}`, { method: 'PATCH', body: { title } });
  if (now().id === id) conversation.patch({ title });
  changed(id);
}

const entitled = new Set();
/** After a response, lets the gateway's model write a title if there is none; without it, the first line is shown. */
async function entitle() {
  const { id, title } = now();
  if (title || entitled.has(id) || !gateway.value.info?.writes_titles) return;
  entitled.add(id);
  try {
    const written = await ask(`conversations/${encodeURIComponent(id)}/title`, { method: 'POST', body: {} });
    if (now().id === id) conversation.patch({ title: written.title });
    changed();
  } catch { entitled.delete(id); /* the next response is another chance */ }
}

// --- sending messages

const isShown = (control) => now().live?.control === control; // another conversation may have been opened

/** Takes the events of a run while its conversation is shown; returns what went wrong. `told` gets each event first. */
async function taken(control, source, told = () => {}) {
  let failure = null;
  try {
    for await (const event of source) {
      told(event);
      if (isShown(control)) take(event);
      else if (event.type === 'error') failure = event;
    }
    return isShown(control) ? CUT_OFF : failure;
  } catch (error) {
    return error.name === 'AbortError' ? null : error;
  }
}

/** Sends a message and streams the response. `after` and `retry` create branches; `kept` names attachments of a stored message. */
export async function talk({ text = '', files = [], kept = null, model, system, settings = {}, tools = false, after = null, retry = false }) {
  const { id, branch, live, messages } = now();
  if (live) return;
  const control = new AbortController();
  const attachments = await Promise.all(files.map(async (file) => ({ name: file.name || 'file', mime: file.type || 'application/octet-stream', data: await fileAsBase64(file) })));
  const before = after === null ? messages : after === '' ? [] : messages.slice(0, messages.findIndex((one) => one.id === after) + 1);
  const parts = [...(kept?.places ?? []).map((place) => kept.view.parts[place]), ...attachments.map(({ name, mime }) => ({ kind: 'file', name, mime })), ...(text ? [{ kind: 'text', text }] : [])];
  const waiting = retry ? [] : [{ id: 'pending', role: 'user', parts }];
  conversation.patch({ messages: [...before, ...waiting], live: { run: null, parts: [], approvals: [], sent: null, model, control, isLong: attachments.some(({ data }) => data.length > LONG) }, error: null, unanswered: false });
  const body = { conversation: id, branch, model, text, attachments, kept: kept?.places.length ? { message: kept.view.id, parts: kept.places } : undefined, after, retry, system: system || undefined, settings, tools };
  let [stored, run, isStored] = [id, null, retry];
  const failure = await taken(control, events('talk', { method: 'POST', body, signal: control.signal }), (event) => {
    if (event.type === 'run') { stored = event.conversation; run = event.run; }
    isStored ||= event.type === 'message' && event.view.role === 'user';
    if (!isStored || !run || readers.has(run)) return;
    readers.set(run, control);
    changed(stored);
  });
  readers.delete(run);
  if (!isShown(control)) { if (failure) toast([failure.message, failure.detail].filter(Boolean).join(': '), 'error'); } else if (run) await resume(control, failure);
  else finish(failure);
  if (isStored && now().id === stored && !now().live) refreshed();
  if (!isStored) { // give back what was written
    const earlier = now().messages.slice(0, Math.max(0, now().messages.findIndex((one) => one.id === messages[0]?.id))); // loaded meanwhile
    if (now().id === id && !now().live) conversation.patch({ messages: [...earlier, ...messages], unanswered: false });
    draft.set((newer) => ({ text: [text, newer.text].filter(Boolean).join('\n\n'), files: [...files, ...newer.files] }));
    if (failure?.status === BUSY) failed(failure); // of another tab, whose message and answer are shown
    if (failure?.status === BUSY && now().id === id && !now().live) { conversation.patch({ error: null }); refreshed(); }
  }
  changed(stored);
}

const readers = new Map(); // of runs that this tab started, which go on when another conversation is opened

/** Shows a run that is in progress, from its first event. */
async function follow(run) {
  const control = new AbortController();
  readers.get(run)?.abort();
  conversation.patch({ live: { run, parts: [], approvals: [], sent: null, model: '', control, isFollowed: true }, unanswered: false });
  const failure = await taken(control, events(`talk/${encodeURIComponent(run)}`, { signal: control.signal }));
  if (isShown(control)) await resume(control, failure);
  else if (!now().live) refreshed();
}

/** After a lost connection: the run goes on without it, or has ended and is stored. */
async function resume(control, failure) {
  await new Promise((done) => { setTimeout(done, RECONNECT); });
  while (document.hidden) await new Promise((done) => { document.addEventListener('visibilitychange', done, { once: true }); });
  if (!isShown(control)) return;
  const { id, branch } = now();
  const found = await ask(`conversations/${encodeURIComponent(id)}`, { query: { branch, limit: FIRST } }).catch(() => null);
  if (!isShown(control)) return;
  if (!found) { finish(failure); return; }
  conversation.patch({ live: null });
  update(found);
  if (!found.run && !isUnanswered(found)) entitle();
}

// All tabs of a browser share six connections to a gateway: one that nobody sees reads no events.
document.addEventListener('visibilitychange', () => { if (document.hidden && (now().live?.isFollowed || readers.has(now().live?.run))) now().live.control.abort(); });

let drawing = null;
/** Schedules a render: batches the deltas of 40 ms. */
function soon() { drawing ??= setTimeout(() => { drawing = null; if (now().live) conversation.patch({ live: { ...now().live } }); }, 40); }

function take(event) {
  const { live } = now();
  if (!live) return;
  const handler = HANDLERS[event.type];
  if (handler) handler(event, live);
}

const titleOf = ([{ parts } = { parts: [] }]) => (parts.find((part) => part.kind === 'text')?.text ?? parts[0]?.name ?? '').split('\n')[0].slice(0, 60);

const HANDLERS = {
  run(event, live) {
    Object.assign(live, { run: event.run, model: event.model ?? live.model });
    if (live.isStopping) stop();
    if (event.branch !== undefined) conversation.patch({ branch: event.branch });
    if (event.conversation && event.conversation !== now().id) {
      const isHere = place.value.view === 'talk' && (place.value.id || null) === now().id;
      chosen.set((all) => new Map(all).set(event.conversation, { ...all.get(null), model: live.model }).set(null, {})); // it was chosen for this one
      conversation.patch({ id: event.conversation, firstLine: titleOf(now().messages) });
      if (isHere) go('talk', event.conversation);
    }
  },
  message({ view }) { settle(view, view.role === 'user'); },
  result({ view }) { settle(view, false); },
  part({ index, kind, name }, live) { live.parts[index] = { kind, name, text: '', arguments: '' }; soon(); },
  delta({ index, text }, live) {
    const part = (live.parts[index] ??= { kind: 'text', text: '' });
    if (part.kind === 'call') part.arguments += text;
    else part.text += text;
    soon();
  },
  call({ index, call }, live) {
    const at = index ?? live.parts.findIndex((part) => part?.kind === 'call' && !part.call_id);
    live.parts[at < 0 ? live.parts.length : at] = { kind: 'call', ...call };
    soon();
  },
  approval(event, live) {
    live.approvals = [...live.approvals, event];
    announce(`${event.name} needs your approval`);
    soon();
  },
  decided({ call_id }, live) { live.approvals = live.approvals.filter((one) => one.call_id !== call_id); soon(); },
  sent(event, live) { live.sent = event; soon(); },
  done({ view }) {
    if (view) settle(view, false);
    conversation.patch({ live: null });
    announce('Response complete');
    entitle();
  },
  error(event) { finish(event); },
};

/** Replaces the provisional view of a message with the stored one. */
function settle(view, isOwn) {
  const { messages, live } = now();
  const others = messages.filter((one) => one.id !== view.id && !(isOwn && one.id === 'pending'));
  if (!isOwn && live && view.role === 'assistant') live.parts = [];
  if (live && view.role === 'tool') live.parts = live.parts.filter((part) => part?.kind !== 'call');
  conversation.patch({ messages: [...others, view], live: live && { ...live } });
}

function finish(error) {
  const { live, messages } = now();
  const parts = (live?.parts ?? []).filter(Boolean);
  const partial = parts.length ? [{ id: 'partial', role: 'assistant', model: live.model, finish: 'interrupted', parts }] : [];
  conversation.patch({ messages: [...messages, ...partial], live: null, error, unanswered: Boolean(error) });
  if (error) announce(error.message);
}

/** Reloads from the store, which is authoritative for branches, titles, siblings and runs in progress. */
async function refreshed() {
  const { id, branch, messages } = now();
  if (!id) return;
  try {
    const found = await ask(`conversations/${encodeURIComponent(id)}`, { query: { branch, limit: Math.min(PAGE, Math.max(FIRST, messages.length)) } });
    await prepared(textsOf(found.messages));
    if (now().id === id && now().branch === branch && !now().live && !now().loading) update(found);
  } catch { /* keep what is shown */ }
}

/** Shows what was read again: the latest messages, after those that were loaded before them. */
function update(found) {
  const { messages } = now(); // more may have been loaded meanwhile
  const first = messages.findIndex((one) => one.id === found.messages[0]?.id);
  const before = first > 0 ? messages.slice(0, first) : [];
  conversation.patch({ ...shaped(found), messages: [...before, ...found.messages], hasMore: first > 0 ? now().hasMore : found.has_more, unanswered: now().error ? now().unanswered : isUnanswered(found) });
  if (found.run) follow(found.run);
}

onChangeElsewhere((id) => { if ((id ?? now().id) === now().id && !now().live && !now().loading) refreshed(); });

export async function stop() {
  const { live } = now();
  if (!live) return;
  if (!live.run) { // it may have been sent, and the answer would go on unseen: it is stopped once it begins
    if (live.isStopping || live.isLong) live.control.abort();
    else { live.isStopping = true; announce('Stopping'); soon(); }
    return;
  }
  try { await ask(`talk/${encodeURIComponent(live.run)}/stop`, { method: 'POST', body: {} }); } catch (error) { live.control.abort(); failed(error); }
}

export async function approve(call, allow, reason) {
  const { live } = now();
  if (!live) return;
  const waiting = live.approvals;
  live.approvals = waiting.filter((one) => one !== call);
  conversation.patch({ live: { ...live } });
  try {
    await ask(`talk/${encodeURIComponent(live.run)}/approve`, { method: 'POST', body: { call_id: call.call_id, allow, reason: reason || undefined } });
  } catch (error) {
    failed(error);
    if (now().live === live || now().live?.run === live.run) conversation.patch({ live: { ...now().live, approvals: waiting } });
  }
}
