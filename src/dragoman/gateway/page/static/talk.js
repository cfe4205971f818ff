// The Talk view: recent conversations, the message thread, the composer.
import { html, useState, useEffect, useLayoutEffect, useRef, useMemo, useStore, Button, Menu, Empty, Loading, failed, toast } from './ui.js';
import { Icon } from './icons.js';
import { ask } from './api.js';
import { gateway, place, go, lensSource, changes, changed, address } from './state.js';
import { conversation, open, hasEarlier, showEarlier, reach, switchBranch, talk, stop, approve, rename } from './conversation.js';
import { Composer, attach, firstModel, settingsOf } from './composer.js';
import { Message, Part, textOf } from './message.js';
import { SentDrawer } from './sent.js';
import { Rename, exportItems } from './dialogs.js';
import { visible } from './text.js';
import { when } from './format.js';

const NO_OPTIONS = { system: '', temperature: '', max_tokens: '', thinking: '', tools: true };
const NEAR = 80; // within this many pixels of the end, the thread keeps scrolling
const EARLIER = 1200; // within this many pixels of the start, earlier messages are added

export function Talk() {
  const { info, models } = useStore(gateway);
  const { id, query } = useStore(place);
  const shown = useStore(conversation);
  const [chosen, setModel] = useState('');
  const [options, setOptions] = useState(NO_OPTIONS);
  const [sent, setSent] = useState(null);
  const input = useRef(null);
  const fallback = firstModel(info, models);
  const model = chosen || (models.some((one) => one.id === fallback) ? fallback : info?.default_model || fallback);

  useEffect(() => { if ((id || null) !== conversation.value.id) open(id || null); }, [id]);
  useEffect(() => { if (!id) input.current?.focus(); }, [id]);
  useEffect(() => { if (id && query.message) reach(query.message).then((there) => there && show(query.message)); }, [id, query.message, shown.loading]);

  const request = (more) => talk({ model, system: options.system, settings: settingsOf(options), tools: options.tools, ...more });
  const act = useMemo(() => ({}), []);
  Object.assign(act, { // a stable object, so that messages don't re-render
    edit: (view, text) => idBefore(view, () => true).then((after) => request({ text, after })).catch(failed),
    retry: (view) => idBefore(view, (one) => one.role === 'user').then((after) => request({ retry: true, after })).catch(failed),
    again: (view) => request({ retry: true, after: view.id }),
    sent: setSent,
    switchBranch,
    fork: async (view) => {
      try {
        const made = await ask(`conversations/${encodeURIComponent(shown.id)}/fork`, { method: 'POST', body: { message_id: view.id } });
        changed();
        toast('Forked into a new conversation.');
        go('talk', made.id);
      } catch (error) { failed(error); }
    },
  });
  const drop = useDrop((given) => { attach(given); input.current?.focus(); });
  return html`<div class="talk">
    <${Recent} current=${shown.id} />
    <section class=${`conversation ${drop.over ? 'dropping' : ''}`} aria-label="Conversation" ...${drop.handlers}>
      <${Head} shown=${shown} />
      <${Thread} shown=${shown} act=${act} info=${info} />
      <${Composer} busy=${Boolean(shown.live)} models=${models} model=${model} setModel=${setModel}
        options=${options} setOptions=${setOptions} tools=${info?.tools} inputRef=${input} onStop=${stop}
        onSend=${(text, given) => request({ text, files: given })} onUp=${() => lastOwn()?.focus()} />
      ${drop.over && html`<div class="drop-hint" aria-hidden="true">Drop to attach</div>`}
    </section>
    ${sent && html`<${SentDrawer} conversation=${shown.id} view=${sent} onClose=${() => setSent(null)} />`}
  </div>`;
}

/** The id of the last matching message before this one, which may not be shown yet; '' if there is none. */
async function idBefore(view, matches) {
  for (;;) {
    const { id, messages } = conversation.value;
    const found = messages.slice(0, messages.findIndex((one) => one.id === view.id)).findLast(matches);
    if (found || !hasEarlier(conversation.value)) return found?.id ?? '';
    await showEarlier();
    if (conversation.value.id !== id || conversation.value.messages === messages) throw new Error('The earlier messages could not be loaded.');
  }
}

const lastOwn = () => [...document.querySelectorAll('.message.user')].at(-1);

function show(message) {
  const found = document.getElementById(`m-${message}`);
  found?.scrollIntoView({ block: 'center' });
  found?.focus();
}

export function useDrop(take) {
  const [over, setOver] = useState(false);
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');
  return {
    over,
    handlers: {
      onDragOver: (event) => { if (holdsFiles(event)) { event.preventDefault(); setOver(true); } },
      onDragLeave: (event) => { if (!event.currentTarget.contains(event.relatedTarget)) setOver(false); },
      onDrop: (event) => { if (holdsFiles(event)) { event.preventDefault(); setOver(false); take(event.dataTransfer.files); } },
    },
  };
}

// --- recent conversations

function Recent({ current }) {
  const number = useStore(changes);
  const [items, setItems] = useState([]);
  useEffect(() => {
    let gone = false;
    ask('conversations', { query: { limit: 40 } }).then((found) => { if (!gone) setItems(found.items); }).catch(() => {});
    return () => { gone = true; };
  }, [number]);
  return html`<nav class="recent" aria-label="Recent conversations">
    <a class="button primary" href=${address('talk')} aria-current=${current ? null : 'page'}><${Icon} name="plus" /><span>New conversation</span></a>
    <ul>${items.map((item) => html`<li key=${item.id}><a href=${address('talk', item.id)} aria-current=${item.id === current ? 'page' : null} title=${item.title || item.first_line}>
      ${item.pinned && html`<${Icon} name="pin" />`}<span class="clip">${visible(item.title || item.first_line || 'Untitled')}</span><span class="muted">${when(item.updated_at)}</span></a></li>`)}</ul>
    <a href=${address('history')} class="all">All conversations</a>
  </nav>`;
}

function Head({ shown }) {
  const [renaming, setRenaming] = useState(false);
  const { info } = gateway.value;
  if (!shown.id) return html`<header class="conversation-head"><h1 class="clip">New conversation</h1></header>`;
  const see = () => { lensSource.set({ conversation: shown.id, title: shown.title || shown.firstLine }); go('lens'); };
  const pin = () => ask(`conversations/${encodeURIComponent(shown.id)}`, { method: 'PATCH', body: { pinned: !shown.pinned } }).then(() => { conversation.patch({ pinned: !shown.pinned }); changed(); }).catch(failed);
  return html`<header class="conversation-head">
    <h1 class="clip">${visible(shown.title || shown.firstLine || 'Untitled')}</h1>
    <span class="grow"></span>
    <${Button} kind="plain only-narrow" icon="plus" label="New conversation" onClick=${() => go('talk')} />
    <${Button} kind="plain" icon="lens" label="Open in the lens" onClick=${see} />
    <${Menu} label="Conversation" items=${[
      { icon: 'edit', text: 'Rename', action: () => setRenaming(true) },
      { icon: 'pin', text: shown.pinned ? 'Unpin' : 'Pin', action: pin },
      ...exportItems({ ...shown, first_line: shown.firstLine }, info?.formats),
    ]} />
    ${renaming && html`<${Rename} title=${shown.title} onClose=${() => setRenaming(false)} onRename=${(title) => rename(shown.id, title).then(() => setRenaming(false)).catch(failed)} />`}
  </header>`;
}

// --- the thread

function Thread({ shown, act, info }) {
  const box = useRef(null);
  const atEnd = useRef(true);
  const height = useRef(0); // of the content, as it was last seen
  const [isAway, setAway] = useState(false);
  const anchor = useRef(null);
  const { messages, live, id, loading, error } = shown;
  const results = useMemo(() => resultsOf(messages), [messages]);
  const end = () => { if (box.current) box.current.scrollTop = height.current = box.current.scrollHeight; };

  useLayoutEffect(() => { atEnd.current = true; }, [id, shown.branch]);
  useLayoutEffect(() => { if (live) atEnd.current = true; }, [Boolean(live)]);
  useLayoutEffect(() => { // earlier messages were inserted above: keep the scroll position
    if (anchor.current && anchor.current.node.isConnected) { box.current.scrollTop += anchor.current.node.getBoundingClientRect().top - anchor.current.top; height.current = box.current.scrollHeight; }
    anchor.current = null;
    if (atEnd.current) end();
  });
  useEffect(() => { // images and formulas load later and move the end
    const watch = new ResizeObserver(() => { // by geometry: a scroll event may come between two changes
      if (!box.current) return;
      const { scrollTop, scrollHeight, clientHeight } = box.current;
      if (Math.min(height.current, scrollHeight) - scrollTop - clientHeight < NEAR) { atEnd.current = true; setAway(false); end(); }
      height.current = scrollHeight;
    });
    watch.observe(box.current.firstElementChild);
    return () => watch.disconnect();
  }, []);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    atEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
    setAway(!atEnd.current);
    if (scrollTop < EARLIER && hasEarlier(conversation.value)) more();
  };
  const adding = useRef(false);
  const more = async () => { // one slice per frame; what it adds makes the thread scroll, which asks for the next
    if (adding.current) return;
    adding.current = true;
    const before = conversation.value.messages[0];
    const off = conversation.watch(({ messages: [first] }) => { // runs before the render: remember the position
      const node = box.current?.querySelector('.message');
      if (first !== before && node) anchor.current = { node, top: node.getBoundingClientRect().top };
    });
    await showEarlier();
    off();
    await new Promise(requestAnimationFrame);
    adding.current = false;
    if (box.current?.scrollTop < EARLIER && conversation.value.messages[0] !== before && hasEarlier(conversation.value)) more();
  };
  const keys = (event) => { // J and K move between messages while one is focused
    if (!event.target.matches?.('[data-message]') || !['j', 'k', 'ArrowDown', 'ArrowUp'].includes(event.key) || event.ctrlKey || event.metaKey) return;
    const all = [...box.current.querySelectorAll('[data-message]')];
    const next = all[all.indexOf(event.target) + (event.key === 'j' || event.key === 'ArrowDown' ? 1 : -1)];
    event.preventDefault();
    if (next) { next.focus(); next.scrollIntoView({ block: 'nearest' }); }
  };
  const rows = messages.filter((view) => !isFolded(view, results));
  const asked = shown.unanswered && messages.findLast((view) => view.role === 'user');
  return html`<div class="thread" ref=${box} onScroll=${scrolled} onKeyDown=${keys} tabindex="0" role="log" aria-live="off" aria-label="Messages">
    <div class="column">
      ${loading && html`<${Loading} what="the conversation" />`}
      ${!loading && !rows.length && !live && !error && html`<${Welcome} info=${info} />`}
      ${hasEarlier(shown) && html`<button class="link center" onClick=${more}>Load earlier messages</button>`}
      ${rows.map((view) => html`<${Message} key=${view.id} view=${view} results=${results.of(view)} branch=${view.siblings?.length ? shown.branch : null} act=${act} busy=${Boolean(live)} isComing=${Boolean(live) && view === rows.at(-1)} />`)}
      ${live && html`<${Live} live=${live} results=${results.all} />`}
      ${error && html`<div class="notice bad" role="alert"><${Icon} name="warn" /><span class="grow">${error}</span>
        ${asked && !loading && !live && html`<${Button} icon="retry" text="Try again" onClick=${() => act.again(asked)} />`}</div>`}
    </div>
    ${isAway && html`<button class="to-end" onClick=${() => { atEnd.current = true; end(); }}><${Icon} name="down" /><span>Latest</span></button>`}
  </div>`;
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
    <header><span class="who">${visible(live.model ?? '')}</span>${live.sent && html`<${SentNote} sent=${live.sent} />`}</header>
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
    <pre tabindex="0">${visible(given)}</pre>
    <div class="row"><label class="field grow"><span class="hidden">Reason for refusing</span><input placeholder="Reason for refusing (optional)" value=${reason} onInput=${(event) => setReason(event.target.value)} /></label>
    <${Button} text="Refuse" onClick=${() => approve(call, false, reason)} /><${Button} kind="primary" text="Approve" onClick=${() => approve(call, true)} /></div>
  </div>`;
}
