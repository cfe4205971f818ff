// The messages of a conversation, with the response being streamed at their end.
import { html, useState, useLayoutEffect, useRef, useMemo, Button, Loading } from './ui.js';
import { Icon } from './icons.js';
import { approve, conversation, loadEarlier } from './conversation.js';
import { Message, Part } from './message.js';
import { Nearby } from './nearby.js';
import { Plain } from './plain.js';
import { visible } from './text.js';

const EARLIER = 3000; // within this many pixels of the start, earlier messages are loaded

export function Thread({ shown, act, info, control }) {
  const box = useRef(null);
  const [, draw] = useState({});
  const near = useMemo(() => new Nearby(() => draw({})), []);
  control.current = near;
  const { messages, live, id, loading, error } = shown;
  const results = useMemo(() => resultsOf(messages), [messages]);
  const rows = messages.filter((view) => !isFolded(view, results));

  useLayoutEffect(() => { near.attach(box.current); return () => near.detach(); }, []);
  useLayoutEffect(() => near.toEnd(), [id, shown.branch]);
  useLayoutEffect(() => { if (live) near.toEnd(); }, [Boolean(live)]);
  useLayoutEffect(() => near.drawn());
  const scrolled = () => {
    near.scrolled();
    if (box.current.scrollTop < EARLIER && conversation.value.hasMore) loadEarlier();
  };
  const keys = (event) => { // J and K move between messages while one is focused
    if (['Home', 'End'].includes(event.key) && !event.shiftKey && event.target.matches?.('.thread, [data-message]')) { // at once: on the way, heights change
      event.preventDefault();
      if (event.key === 'End') near.toEnd();
      else box.current.scrollTop = 0;
    }
    if (!event.target.matches?.('[data-message]') || !['j', 'k', 'ArrowDown', 'ArrowUp'].includes(event.key) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = rows[rows.findIndex((view) => view.id === event.target.dataset.message) + (event.key === 'j' || event.key === 'ArrowDown' ? 1 : -1)];
    if (next) near.reveal(next.id);
  };
  const asked = shown.unanswered && messages.findLast((view) => view.role === 'user');
  const row = (view) => html`<${Message} key=${view.id} view=${view} results=${results.of(view)} branch=${view.siblings?.length ? shown.branch : null} act=${act} busy=${Boolean(live)} isComing=${Boolean(live) && view === rows.at(-1)} />`;
  return html`<div class="thread" ref=${box} onScroll=${scrolled} onKeyDown=${keys} tabindex="0" role="log" aria-live="off" aria-label="Messages">
    <div class="column">
      ${loading && html`<${Loading} what="the conversation" />`}
      ${!loading && !rows.length && !live && !error && html`<${Welcome} info=${info} />`}
      ${shown.hasMore && html`<button class="link center" onClick=${loadEarlier}>Load earlier messages</button>`}
      ${near.choose(rows, guess).map((piece) => (piece.id ? row(piece) : html`<div key=${piece.key} class="space" style=${{ height: `${piece.space}px` }}></div>`))}
      ${live && html`<${Live} live=${live} results=${results.all} />`}
      ${(error || (asked && !loading && !live)) && html`<div class=${`notice ${error ? 'bad' : ''}`} role=${error ? 'alert' : 'note'}><${Icon} name="warn" /><div class="grow">${error?.message ?? 'This message has no answer.'}${error?.detail && html`<p class="said"><span class="muted">The provider says: </span><${Plain} text=${error.detail} /></p>`}</div>
        ${asked && !loading && !live && html`<${Button} icon="retry" text="Try again" onClick=${() => act.again(asked)} />`}</div>`}
    </div>
    ${!near.isAtEnd && html`<button class="to-end" onClick=${() => near.toEnd()}><${Icon} name="down" /><span>Latest</span></button>`}
  </div>`;
}

/** The height of a message in pixels, roughly; it is measured once it is shown. */
function guess(view) {
  const perLine = Math.min(90, innerWidth / 9);
  const lines = view.parts.map((part) => (part.kind === 'text' ? Math.ceil((part.text ?? '').length / perLine) : 2));
  return 60 + 25 * lines.reduce((all, one) => all + one, 0);
}

/** Tool results by call id: each result is shown inside its call. */
function resultsOf(messages) {
  const all = new Map();
  const called = new Set();
  for (const view of messages) for (const part of view.parts) {
    if (part.kind === 'result') all.set(part.call_id, part);
    if (part.kind === 'call') called.add(part.call_id);
  }
  return { all, called, of: (view) => (view.parts.some((part) => part.kind === 'call') ? all : null) };
}
function isFolded(view, results) { return view.role === 'tool' && view.parts.every((part) => part.kind === 'result' && results.called.has(part.call_id)); }

function Welcome({ info }) {
  return html`<div class="welcome"><h2>Talk to any model</h2>
    <p>Write a message below. You can switch models between responses: the conversation carries over, and “What was sent” shows the request that each model received.</p>
    ${info && !info.has_history && html`<p class="muted">No history store is configured: conversations are lost when the gateway stops.</p>`}</div>`;
}

/** The response being streamed. */
function Live({ live, results }) {
  const parts = live.parts.filter(Boolean);
  return html`<article class="message assistant live" aria-busy="true" aria-label="Response in progress">
    <header><span class="who">${visible(live.model ?? '')}</span>${live.sent && html`<${SentNote} sent=${live.sent} />`}${live.isStopping && html`<span class="tag">stopping …</span>`}</header>
    <div class="parts">${parts.map((part, index) => html`<${Part} key=${index} part=${part} live=${index === parts.length - 1} isComing results=${results} />`)}
      ${!live.approvals.length && html`<span class="pulse" role="img" aria-label="Generating"></span>`}</div>
    ${live.approvals.map((call) => html`<${Approval} key=${call.call_id} call=${call} />`)}
  </article>`;
}

function SentNote({ sent }) {
  const told = [[sent.losses, 'loss', 'losses'], [sent.repairs, 'repair', 'repairs'], [sent.omitted, 'message omitted', 'messages omitted']]
    .map(([list, one, many]) => { const number = Array.isArray(list) ? list.length : Number(list) || 0; return number ? `${number} ${number === 1 ? one : many}` : ''; }).filter(Boolean);
  return html`<span class="tag">${[sent.dialect, ...told].filter(Boolean).join(' · ')}</span>`;
}

function Approval({ call }) {
  const [reason, setReason] = useState('');
  const given = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments, null, 2);
  return html`<div class="approval" role="group" aria-label=${`Approval for ${call.name}`}>
    <p><${Icon} name="tool" /> The model wants to run <strong>${visible(call.name)}</strong> with these arguments:</p>
    <pre tabindex="0"><${Plain} text=${given ?? ''} /></pre>
    <div class="row"><label class="field grow"><span class="hidden">Reason for refusing</span><input placeholder="Reason for refusing (optional)" value=${reason} onInput=${(event) => setReason(event.target.value)} /></label>
    <${Button} text="Refuse" onClick=${() => approve(call, false, reason)} /><${Button} kind="primary" text="Approve" onClick=${() => approve(call, true)} /></div>
  </div>`;
}
