// The Talk view: recent conversations, the message thread, the composer.
import { html, useState, useEffect, useRef, useMemo, useStore, Button, Dialog, Menu, failed, toast } from './ui.js';
import { Icon } from './icons.js';
import { ask } from './api.js';
import { gateway, place, go, lensSource, changes, changed, address, firstModel, firstModelTold } from './state.js';
import { conversation, chosen, choose, open, loadEarlier, reach, switchBranch, talk, stop, rename } from './conversation.js';
import { draft } from './draft.js';
import { Composer, attach, optionsOf, settingsOf } from './composer.js';
import { Thread } from './thread.js';
import { Delete, Rename, exportItems } from './dialogs.js';
import { TagDialog, TagSelect, Tags } from './tags.js';
import { visible } from './text.js';
import { when } from './format.js';

const NO_OPTIONS = { system: '', temperature: '', max_tokens: '', thinking: '', tools: true };

export function Talk() {
  const { info, models } = useStore(gateway);
  const { id, query } = useStore(place);
  const shown = useStore(conversation);
  const [sent, setSent] = useState(null);
  const input = useRef(null);
  const thread = useRef(null);
  const own = useStore(chosen).get(shown.id) ?? {};
  const model = own.model || shown.model || (shown.loading ? '' : firstModel());
  const options = own.options ?? keptOptions(shown.options);
  const setOptions = (changed) => choose(shown.id, { options: changed });

  useEffect(() => { if ((id || null) !== conversation.value.id) open(id || null); }, [id]);
  useEffect(() => { if (!id) input.current?.focus(); }, [id]);
  useEffect(() => { if (id && query.message) reach(query.message).then((there) => there && thread.current.reveal(query.message, 'center')); }, [id, query.message, shown.loading]);

  const request = async (more) => talk({ model: model || await firstModelTold(), system: options.system, settings: settingsOf(options), tools: options.tools, ...more });
  const act = useMemo(() => ({}), []);
  Object.assign(act, { // a stable object, so that messages don't re-render
    edit: (view, text, kept) => idBefore(view, () => true).then((after) => request({ text, after, kept: { view, places: kept } })).catch(failed),
    retry: (view) => idBefore(view, (one) => one.role === 'user').then((after) => request({ retry: true, after })).catch(failed),
    again: (view) => request({ retry: true, after: view.id }),
    sent: (view) => import('./sent.js').then(({ SentDrawer }) => setSent({ view, SentDrawer })).catch(failed),
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
  const [prompts, setPrompts] = useState(null);
  useEffect(() => prompts && (() => input.current?.focus()), [prompts]); // after the dialog gave the focus back
  const openPrompts = () => import('./prompts.js').then(({ Prompts }) => setPrompts({ Prompts })).catch(failed);
  const usePrompt = ({ text, system, model: wanted, settings }) => {
    draft.patch({ text });
    choose(shown.id, { options: { ...options, ...optionsOf(settings), ...(system && { system }) }, ...(wanted && { model: wanted }) });
  };
  const drop = useDrop((given) => { attach(given); input.current?.focus(); });
  return html`<div class="talk">
    <${Recent} current=${shown.id} />
    <section class=${`conversation ${drop.over ? 'dropping' : ''}`} aria-label="Conversation" ...${drop.handlers}>
      <${Head} shown=${shown} />
      <${Thread} shown=${shown} act=${act} info=${info} control=${thread} />
      <${Composer} busy=${Boolean(shown.live)} models=${models} model=${model} setModel=${(id) => choose(shown.id, { model: id })}
        options=${options} setOptions=${setOptions} tools=${info?.tools} inputRef=${input} onStop=${stop} onPrompts=${info?.has_prompts ? openPrompts : null}
        onSend=${(text, given) => request({ text, files: given })} onUp=${() => thread.current.reveal(shown.messages.findLast((one) => one.role === 'user')?.id)} />
      ${drop.over && html`<div class="drop-hint" aria-hidden="true">Drop to attach</div>`}
    </section>
    ${prompts && html`<${prompts.Prompts} text=${draft.value.text} system=${options.system} onUse=${usePrompt} onClose=${() => setPrompts(null)} />`}
    ${sent && html`<${sent.SentDrawer} conversation=${shown.id} view=${sent.view} onClose=${() => setSent(null)} />`}
  </div>`;
}

/** The options of the last request in a conversation. */
const keptOptions = (kept) => (kept ? { ...NO_OPTIONS, ...optionsOf(kept.settings), system: kept.system, tools: kept.tools } : NO_OPTIONS);

/** The id of the last matching message before this one, which may not be loaded yet; '' if there is none. */
async function idBefore(view, matches) {
  for (;;) {
    const { id, messages } = conversation.value;
    const found = messages.slice(0, messages.findIndex((one) => one.id === view.id)).findLast(matches);
    if (found || !conversation.value.hasMore) return found?.id ?? '';
    await loadEarlier();
    if (conversation.value.id !== id || conversation.value.messages === messages) throw new Error('The earlier messages could not be loaded.');
  }
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

/** A column on a wide screen; on others, where there is an `onClose`, a drawer. */
function Recent({ current, onClose }) {
  const number = useStore(changes);
  const [items, setItems] = useState([]);
  const [tag, setTag] = useState('');
  useEffect(() => {
    let gone = false;
    ask('conversations', { query: { limit: 40, tag } }).then((found) => { if (!gone) setItems(found.items); }).catch(() => {});
    return () => { gone = true; };
  }, [number, tag]);
  const list = html`<nav class=${onClose ? 'recent in-drawer' : 'recent'} aria-label="Recent conversations" onClick=${(event) => event.target.closest('a') && onClose?.()}>
    <a class="button primary" href=${address('talk')} aria-current=${current ? null : 'page'}><${Icon} name="plus" /><span>New conversation</span></a>
    <${TagSelect} tag=${tag} onChange=${setTag} />
    <ul>${items.slice(0, 40).map((item) => html`<li key=${item.id}><a href=${address('talk', item.id)} aria-current=${item.id === current ? 'page' : null} title=${item.title || item.first_line}>
      ${item.pinned && html`<${Icon} name="pin" />`}<span class="clip">${visible(item.title || item.first_line || 'Untitled')}</span><span class="muted">${when(item.updated_at)}</span></a></li>`)}</ul>
    <a href=${address('history')} class="all">All conversations</a>
  </nav>`;
  return onClose ? html`<${Dialog} title="Conversations" drawer onClose=${onClose}>${list}</${Dialog}>` : list;
}

function Head({ shown }) {
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const { info } = gateway.value;
  const recent = html`<${Button} kind="plain only-narrow" icon="list" label="Recent conversations" onClick=${() => setDialog(html`<${Recent} current=${shown.id} onClose=${close} />`)} />`;
  if (!shown.id) return html`<header class="conversation-head">${recent}<h1 class="clip">New conversation</h1>${dialog}</header>`;
  const item = { id: shown.id, title: shown.title, first_line: shown.firstLine, branch: shown.branch };
  const see = () => { lensSource.set({ conversation: shown.id, title: shown.title || shown.firstLine }); go('lens'); };
  const pin = () => ask(`conversations/${encodeURIComponent(shown.id)}`, { method: 'PATCH', body: { pinned: !shown.pinned } }).then(() => { conversation.patch({ pinned: !shown.pinned }); changed(); }).catch(failed);
  return html`<header class="conversation-head">
    ${recent}<h1 class="clip">${visible(shown.title || shown.firstLine || 'Untitled')}</h1>
    <${Tags} tags=${shown.tags} /><span class="grow"></span>
    <${Button} kind="plain only-narrow" icon="plus" label="New conversation" onClick=${() => go('talk')} />
    <${Button} kind="plain" icon="lens" label="Open in the lens" onClick=${see} />
    <${Menu} label="Conversation" items=${[
      { icon: 'edit', text: 'Rename', action: () => setDialog(html`<${Rename} title=${shown.title} onClose=${close} onRename=${(title) => rename(shown.id, title).then(close).catch(failed)} />`) },
      { icon: 'pin', text: shown.pinned ? 'Unpin' : 'Pin', action: pin },
      { icon: 'tag', text: 'Tags …', action: () => setDialog(html`<${TagDialog} id=${shown.id} tags=${shown.tags} onClose=${close} onDone=${(tags) => shown.id === conversation.value.id && conversation.patch({ tags })} />`) },
      ...exportItems(item, info?.formats),
      { icon: 'trash', kind: 'danger', text: 'Delete …', action: () => setDialog(html`<${Delete} item=${item} onClose=${close} onDone=${() => go('talk')} />`) },
    ]} />
    ${dialog}
  </header>`;
}
