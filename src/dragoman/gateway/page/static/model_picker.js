// The model picker: the models by provider, with a search.
import { html, useState, useRef, useEffect } from './ui.js';
import { Icon } from './icons.js';
import { visible } from './text.js';

const MOST = 100; // options in the document; the search finds the others

const shownName = (model) => visible(model.name || model.id);

/** The models that contain every word of the query, those of one provider together. */
function found(models, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map();
  for (const model of models) {
    const text = `${model.id} ${model.name ?? ''} ${model.provider ?? ''}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    const provider = model.provider ?? '';
    if (!groups.has(provider)) groups.set(provider, []);
    groups.get(provider).push(model);
  }
  return [...groups.values()].flat();
}

function Choices({ models, value, onChoose, onClose }) {
  const [query, setQuery] = useState('');
  const all = found(models, query);
  const typed = query.trim();
  const options = all.slice(0, MOST); // a route may serve more names than are listed
  if (typed && !models.some((one) => one.id === typed)) options.push({ id: typed, isTyped: true });
  const [at, setAt] = useState(() => Math.max(0, options.findIndex((one) => one.id === value)));
  const list = useRef(null);
  const input = useRef(null);
  useEffect(() => { input.current.focus(); }, []);
  useEffect(() => { list.current.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }); }, [at]);
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step && options.length) { event.preventDefault(); setAt(Math.max(0, Math.min(options.length - 1, at + step))); }
    if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); if (options[at]) onChoose(options[at].id); }
    if (event.key === 'Escape') { event.preventDefault(); event.stopPropagation(); onClose(); }
    if (event.key === 'Tab') onClose();
  };
  const option = (one, index) => {
    const starts = !one.isTyped && one.provider && one.provider !== options[index - 1]?.provider;
    const about = [one.name && one.name !== one.id ? visible(one.id) : '', one.is_local ? 'local' : ''].filter(Boolean).join(' · ');
    return html`${starts && html`<li role="presentation" class="provider">${visible(one.provider)}</li>`}
      <li role="option" id=${`model-${index}`} key=${one.id} data-model=${one.id} aria-selected=${index === at} onClick=${() => onChoose(one.id)}>
        ${one.id === value && html`<${Icon} name="check" />`}<span class="clip">${one.isTyped ? `Use “${visible(one.id)}”` : shownName(one)}</span>${about && html`<span class="muted clip">${about}</span>`}</li>`;
  };
  return html`<div class="picker">
    <label class="searchbox"><span class="hidden">Search models</span><${Icon} name="search" /><input ref=${input} type="search" role="combobox" aria-expanded="true" aria-controls="models" aria-autocomplete="list"
      aria-activedescendant=${options.length ? `model-${at}` : null} placeholder="Search models" maxlength="256" value=${query} onInput=${(event) => { setQuery(event.target.value); setAt(0); }} onKeyDown=${keys} /></label>
    <ul role="listbox" id="models" aria-label="Models" ref=${list} onMouseDown=${(event) => event.preventDefault()}>${options.map(option)}</ul>
    ${all.length > MOST && html`<p class="muted" role="status">${(all.length - MOST).toLocaleString()} more: search to find them.</p>`}
  </div>`;
}

export function ModelPicker({ models, value, onChange }) {
  const [open, setOpen] = useState(false);
  const ref = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    const leave = (event) => { if (!ref.current.contains(event.target)) setOpen(false); };
    document.addEventListener('pointerdown', leave);
    return () => document.removeEventListener('pointerdown', leave);
  }, [open]);
  const close = () => { setOpen(false); ref.current.querySelector('button').focus(); };
  const current = models.find((one) => one.id === value) ?? { id: value };
  return html`<div class="model" ref=${ref}>
    <button type="button" class="plain" aria-haspopup="listbox" aria-expanded=${open} data-model=${value} title="Model for the next response" onClick=${() => setOpen(!open)}>
      <span class="hidden">Model:</span><span class="clip">${value ? shownName(current) : 'No model'}</span><${Icon} name="down" /></button>
    ${open && html`<${Choices} models=${models} value=${value} onChoose=${(id) => { onChange(id); close(); }} onClose=${close} />`}
  </div>`;
}
