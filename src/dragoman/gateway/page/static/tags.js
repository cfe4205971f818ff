// Tags of conversations: the dialog that sets them, and the filters of the lists.
import { html, useState, useEffect, useStore, Dialog, Button, failed } from './ui.js';
import { ask } from './api.js';
import { changed, changes } from './state.js';
import { Icon } from './icons.js';
import { visible } from './text.js';

const MOST = 20; // of a conversation
const LONGEST = 40; // characters

/** The names of all tags; none before they are known. */
function useTags() {
  const number = useStore(changes);
  const [names, setNames] = useState([]);
  useEffect(() => {
    let gone = false;
    ask('tags').then(({ tags }) => { if (!gone) setNames(tags.map((one) => one.name)); }).catch(() => {});
    return () => { gone = true; };
  }, [number]);
  return names;
}

export function Tags({ tags }) {
  return tags?.length ? html`<span class="tags">${tags.map((one) => html`<span key=${one} class="tag">${visible(one)}</span>`)}</span>` : null;
}

/** Buttons that limit a list to one tag; nothing as long as no conversation has any. */
export function TagButtons({ tag, onChange }) {
  const names = useTags();
  if (!names.length && !tag) return null;
  const all = tag && !names.includes(tag) ? [tag, ...names] : names;
  return html`<div class="chips tag-filter" role="group" aria-label="Tags">${all.map((one) => html`<button key=${one} type="button" class="chip" aria-pressed=${one === tag} onClick=${() => onChange(one === tag ? '' : one)}>${visible(one)}</button>`)}</div>`;
}

/** The same where there is little room. */
export function TagSelect({ tag, onChange }) {
  const names = useTags();
  if (!names.length && !tag) return null;
  return html`<label class="field"><span class="hidden">Tag</span><select value=${tag} onChange=${(event) => onChange(event.target.value)}>
    <option value="" selected=${!tag}>All tags</option>${names.map((one) => html`<option key=${one} value=${one} selected=${one === tag}>${visible(one)}</option>`)}</select></label>`;
}

export function TagDialog({ id, tags, onDone, onClose }) {
  const known = useTags();
  const [own, setOwn] = useState([...(tags ?? [])]);
  const [text, setText] = useState('');
  const has = (name) => own.some((one) => one.toLowerCase() === name.toLowerCase());
  const added = () => { const name = text.trim().replace(/\s+/g, ' '); return name && !has(name) && own.length < MOST ? [...own, name] : own; };
  const add = () => { setOwn(added()); setText(''); };
  const save = () => ask(`conversations/${encodeURIComponent(id)}`, { method: 'PATCH', body: { tags: added() } }).then(() => { onDone?.(added()); changed(); onClose(); }).catch(failed);
  const more = known.filter((one) => !has(one));
  return html`<${Dialog} title="Tags" onClose=${onClose} actions=${html`<${Button} text="Cancel" onClick=${onClose} /><${Button} kind="primary" text="Save" onClick=${save} />`}>
    ${own.length > 0 && html`<ul class="chips" aria-label="Tags of this conversation">${own.map((one) => html`<li key=${one}><button type="button" class="chip" aria-pressed="true" aria-label=${`Remove ${one}`} onClick=${() => setOwn(own.filter((each) => each !== one))}>${visible(one)}<${Icon} name="close" /></button></li>`)}</ul>`}
    <label class="field"><span>New tag</span><input autofocus maxlength=${LONGEST} value=${text} disabled=${own.length >= MOST} onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => { if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); text.trim() ? add() : save(); } }} /></label>
    ${more.length > 0 && html`<div class="chips" role="group" aria-label="Other tags">${more.slice(0, 100).map((one) => html`<button key=${one} type="button" class="chip" disabled=${own.length >= MOST} onClick=${() => setOwn([...own, one])}>${visible(one)}</button>`)}</div>`}
  </${Dialog}>`;
}
