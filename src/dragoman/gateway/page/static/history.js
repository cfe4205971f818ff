// The History view: all conversations, with search and actions.
import { html, memo, useState, useEffect, useRef, useStore, Button, Menu, Empty, failed, toast, announce, Dialog } from './ui.js';
import { ask } from './api.js';
import { Icon } from './icons.js';
import { address, changed, changes, gateway, go, lensSource } from './state.js';
import { Confirm, Delete, Rename, exportItems } from './dialogs.js';
import { rename } from './conversation.js';
import { VirtualRows, reveal } from './virtual.js';
import { useDrop } from './talk.js';
import { TagButtons, TagDialog, Tags } from './tags.js';
import { visible } from './text.js';
import { cost, count, exact, plural, when } from './format.js';

const HEIGHT = 68;
const PAGE = 200;

/** The conversations loaded so far, and a function that loads the next page. */
function useList(query, tag) {
  const number = useStore(changes);
  const [list, setList] = useState({ items: [], cursor: null, total: null, isReady: false });
  const state = useRef({});
  const load = (cursor) => {
    const turn = cursor ? state.current.turn : (state.current.turn = {});
    state.current.loading = true;
    ask('conversations', { query: { query, tag, cursor, limit: PAGE } }).then((found) => {
      if (state.current.turn !== turn) return;
      setList((old) => ({ items: cursor ? [...old.items, ...found.items] : found.items, cursor: found.cursor, total: found.total ?? old.total, isReady: true }));
      if (!cursor && query) announce(plural(found.total ?? found.items.length, 'conversation'));
    }).catch((error) => { failed(error); setList((old) => ({ ...old, isReady: true, cursor: null })); }).finally(() => { if (state.current.turn === turn) state.current.loading = false; });
  };
  useEffect(() => {
    const wait = setTimeout(() => load(null), query ? 150 : 0);
    return () => clearTimeout(wait);
  }, [query, tag, number]);
  return [list, () => { if (list.cursor && !state.current.loading) load(list.cursor); }];
}

export function History() {
  const { info } = useStore(gateway);
  const [query, setQuery] = useState('');
  const [tag, setTag] = useState('');
  const [list, more] = useList(query, tag);
  const [dialog, setDialog] = useState(null);
  const [current, setCurrent] = useState(0);
  const box = useRef(null);
  const picker = useRef(null);
  const take = (files) => importFiles([...files], setDialog);
  const drop = useDrop(take);
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const to = event.key === 'Home' ? 0 : event.key === 'End' ? list.items.length - 1 : step ? current + step : null;
    if (to === null || !event.target.closest('.history-row > a')) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(list.items.length - 1, to));
    setCurrent(next);
    reveal(box.current, next, HEIGHT);
    requestAnimationFrame(() => requestAnimationFrame(() => box.current?.querySelector(`[data-index="${next}"] > a`)?.focus()));
  };
  const row = (index) => html`<${Row} key=${`${index}/${list.items[index].id}`} item=${list.items[index]} index=${index} total=${list.total ?? list.items.length} isCurrent=${index === current} formats=${info?.formats} onDialog=${setDialog} />`;
  return html`<div class="view history" ...${drop.handlers}>
    <div class="toolbar"><h1>History</h1>
      <label class="search searchbox"><span class="hidden">Search all conversations</span><${Icon} name="search" /><input type="search" data-search placeholder="Search all conversations" value=${query} onInput=${(event) => setQuery(event.target.value)} /></label>
      <span class="grow muted total">${list.isReady && list.total !== null ? plural(list.total, query ? 'result' : 'conversation') : ''}</span>
      <input type="file" multiple hidden ref=${picker} aria-label="Files to import" onChange=${(event) => { take(event.target.files); event.target.value = ''; }} />
      <${Button} icon="import" text="Import" label="Import files (or drop them here)" onClick=${() => picker.current.click()} />
      <${Menu} label="More" items=${[{ icon: 'trash', kind: 'danger', text: 'Forget a user …', action: () => setDialog(html`<${Forget} onClose=${() => setDialog(null)} />`) }]} />
    </div>
    <${TagButtons} tag=${tag} onChange=${setTag} />
    ${list.isReady && !list.items.length ? html`<${Empty} title=${query || tag ? 'No results' : 'No conversations yet'}>${query || tag ? 'No conversation matches your search.' : 'Start a conversation, or drop exported files here. Any format that “dragoman convert” reads can be imported.'}</${Empty}>`
      : html`<${VirtualRows} scroller=${box} count=${list.items.length} height=${HEIGHT} row=${row} onEnd=${more} label="Conversations" onKeyDown=${keys} />`}
    ${drop.over && html`<div class="drop-hint" aria-hidden="true">Drop to import</div>`}
    ${dialog}
  </div>`;
}

const Row = memo(({ item, index, total, isCurrent, formats, onDialog }) => {
  const close = () => onDialog(null);
  const patch = (body) => ask(`conversations/${encodeURIComponent(item.id)}`, { method: 'PATCH', body }).then(changed).catch(failed);
  const fork = () => ask(`conversations/${encodeURIComponent(item.id)}/fork`, { method: 'POST', body: { message_id: item.message_id ?? null } }).then((made) => { changed(); go('talk', made.id); }).catch(failed);
  const items = () => [
    { icon: 'lens', text: 'Open in the lens', action: () => { lensSource.set({ conversation: item.id, title: item.title || item.first_line }); go('lens'); } },
    { icon: 'fork', text: 'Fork', action: fork },
    { icon: 'edit', text: 'Rename', action: () => onDialog(html`<${Rename} title=${item.title} onClose=${close} onRename=${(title) => rename(item.id, title).then(close).catch(failed)} />`) },
    { icon: 'tag', text: 'Tags …', action: () => onDialog(html`<${TagDialog} id=${item.id} tags=${item.tags} onClose=${close} />`) },
    { icon: 'pin', text: item.pinned ? 'Unpin' : 'Pin', action: () => patch({ pinned: !item.pinned }) },
    ...exportItems(item, formats),
    { icon: 'trash', kind: 'danger', text: 'Delete …', action: () => onDialog(html`<${Delete} item=${item} onClose=${close} />`) },
  ];
  const title = item.title || item.first_line || 'Untitled';
  return html`<div class="history-row" role="listitem" aria-setsize=${total} aria-posinset=${index + 1} data-index=${index} style=${{ top: `${index * HEIGHT}px` }}>
    <a href=${address('talk', item.id, { message: item.message_id })} tabindex=${isCurrent ? 0 : -1}>
      <span class="title">${item.pinned && html`<${Icon} name="pin" /><span class="hidden">pinned</span>`}<span class="clip">${visible(title)}</span><${Tags} tags=${item.tags} /></span>
      ${(item.snippet || item.title) && html`<span class="first clip" style=${{ display: 'block' }}>${item.snippet ? marked(item.snippet, item.marks) : visible(item.first_line ?? '')}</span>`}</a>
    <span class="facts"><span class="model-name clip">${visible(item.model ?? '')}</span><span class="size">${plural(item.messages ?? 0, 'message')}</span><span class="price">${item.cost === undefined || item.cost === null ? '' : cost(item.cost)}</span><time class="date" title=${exact(item.updated_at)}>${when(item.updated_at)}</time></span>
    <${Menu} label=${`Actions for ${title}`} items=${items} />
  </div>`;
});

function marked(text, marks = []) {
  const pieces = [];
  let from = 0;
  for (const [start, end] of marks) { if (start < from || end <= start) continue; pieces.push(visible(text.slice(from, start)), html`<mark>${visible(text.slice(start, end))}</mark>`); from = end; }
  return [...pieces, visible(text.slice(from))];
}

function Forget({ onClose }) {
  const [user, setUser] = useState('');
  const [found, setFound] = useState(null);
  const check = () => ask('forget', { method: 'POST', body: { user: user.trim(), dry_run: true } }).then(setFound).catch(failed);
  if (found) {
    const run = async () => { const done = await ask('forget', { method: 'POST', body: { user: user.trim() } }); changed(); toast(`User forgotten: deleted ${plural(done.conversations, 'conversation')}.`); };
    return html`<${Confirm} title="Forget this user?" action="Forget" onConfirm=${run} onClose=${onClose}>
      <p>${plural(found.conversations, 'conversation')} with ${plural(found.messages, 'message')} of user <strong>${user}</strong> will be deleted from every store that this gateway uses, including branches, attachments and search entries. This can’t be undone.</p></${Confirm}>`;
  }
  return html`<${Dialog} title="Forget a user" onClose=${onClose} actions=${html`<${Button} text="Cancel" onClick=${onClose} /><${Button} kind="primary" text="Continue" disabled=${!user.trim()} onClick=${check} />`}>
    <p>Deletes all data stored for one user. You can review what will be deleted before you confirm.</p>
    <label class="field"><span>User id</span><input autofocus value=${user} onInput=${(event) => setUser(event.target.value)} onKeyDown=${(event) => event.key === 'Enter' && user.trim() && check()} /></label></${Dialog}>`;
}

async function importFiles(files, setDialog) {
  const done = [];
  for (const file of files) {
    try { done.push({ name: file.name, ...(await ask('import', { method: 'POST', raw: file, query: { name: file.name } })) }); } catch (error) { done.push({ name: file.name, error: error.message }); }
  }
  changed();
  setDialog(html`<${Imported} done=${done} onClose=${() => setDialog(null)} />`);
}

function Imported({ done, onClose }) {
  return html`<${Dialog} title="Imported" onClose=${onClose} actions=${html`<${Button} kind="primary" text="Close" onClick=${onClose} />`}>
    ${done.map((one) => html`<section><h3>${visible(one.name)}</h3>${one.error ? html`<p class="notice bad">${one.error}</p>` : html`
      <ul>${one.conversations.slice(0, 50).map((each) => html`<li><a href=${address('talk', each.id)} onClick=${onClose}>${visible(each.title || 'Untitled')}</a> <span class="muted">${plural(each.messages, 'message')}</span></li>`)}</ul>
      ${one.conversations.length > 50 && html`<p class="muted">and ${count(one.conversations.length - 50)} more</p>`}
      <p class="muted">${one.losses?.length ? `${plural(one.losses.length, 'loss', 'losses')}: ${[...new Set(one.losses.slice(0, 5).map((loss) => loss.reason))].join('; ')}` : 'Nothing was lost.'}</p>`}</section>`)}</${Dialog}>`;
}
