// The composer: message text, attachments, model and settings.
import { draft } from './draft.js';
import { bytes } from './format.js';
import { Icon } from './icons.js';
import { Attachment, RemoveButton } from './media.js';
import { visible } from './text.js';
import { html, useState, useRef, useEffect, useLayoutEffect, useStore, Button, toast } from './ui.js';

// The model picker: the models by provider, with a search.

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

const MAX_FILE_BYTES = 20 * 1024 * 1024;
const THINKING = [['', 'model default'], ['off', 'off'], ['low', 'low'], ['medium', 'medium'], ['high', 'high']];

function File({ file, onRemove }) {
  const [url, setUrl] = useState(null);
  useEffect(() => {
    if (!/^image\/(?:png|jpeg|gif|webp)$/.test(file.type)) return undefined;
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  const name = file.name || file.type || 'file';
  return html`<li><${Attachment} name=${name} size=${file.size} image=${url}><${RemoveButton} name=${name} onClick=${onRemove} /></${Attachment}></li>`;
}

export function attach(files) {
  const fine = [...files].filter((file) => file.size <= MAX_FILE_BYTES);
  if (fine.length < files.length) toast(`Files larger than ${bytes(MAX_FILE_BYTES)} can’t be attached.`, 'error');
  draft.set((old) => ({ ...old, files: [...old.files, ...fine] }));
}

function Options({ options, set, tools }) {
  const field = (name) => (event) => set({ ...options, [name]: event.target.value });
  return html`<div class="options" id="options" role="group" aria-label="Options">
    <label class="field full"><span>System prompt</span><textarea rows="2" value=${options.system} onInput=${field('system')}></textarea></label>
    <label class="field"><span>Temperature</span><input type="number" min="0" max="2" step="0.1" placeholder="default" value=${options.temperature} onInput=${field('temperature')} /></label>
    <label class="field"><span>Maximum tokens</span><input type="number" min="1" step="1" placeholder="default" value=${options.max_tokens} onInput=${field('max_tokens')} /></label>
    <label class="field"><span>Thinking</span><select value=${options.thinking} onChange=${field('thinking')}>${THINKING.map(([value, text]) => html`<option value=${value} selected=${value === options.thinking}>${text}</option>`)}</select></label>
    <label class="check"><input type="checkbox" checked=${options.tools} onChange=${(event) => set({ ...options, tools: event.target.checked })} /><span>Tools${tools?.length ? ` (${tools.join(', ')})` : ''}</span></label>
  </div>`;
}

/** The settings of a prompt as options; those with unknown values are left out. */
export function optionsOf(settings) {
  const made = {};
  for (const name of ['temperature', 'max_tokens']) if (typeof settings[name] === 'number') made[name] = String(settings[name]);
  const thinking = settings.thinking === false ? 'off' : settings.thinking;
  if (THINKING.some(([value]) => value && value === thinking)) made.thinking = thinking;
  return made;
}

export function settingsOf(options) {
  const made = {};
  if (options.temperature !== '') made.temperature = Number(options.temperature);
  if (options.max_tokens !== '') made.max_tokens = Number(options.max_tokens);
  if (options.thinking) made.thinking = options.thinking === 'off' ? false : options.thinking;
  return made;
}

export function Composer({ busy, models, model, setModel, options, setOptions, tools, onPrompts, onSend, onStop, onUp, inputRef }) {
  const { text, files } = useStore(draft);
  const [open, setOpen] = useState(false);
  const isSet = Boolean(options.system) || Object.keys(settingsOf(options)).length > 0;
  const picker = useRef(null);
  useLayoutEffect(() => { const box = inputRef.current; box.style.height = 'auto'; box.style.height = `${Math.min(box.scrollHeight, 320)}px`; }, [text]);
  const send = () => {
    if (busy || (!text.trim() && !files.length)) return;
    draft.set({ text: '', files: [] });
    onSend(text, files);
  };
  const keys = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
    if (event.key === 'Escape' && busy) { event.preventDefault(); onStop(); }
    if (event.key === 'ArrowUp' && !text) { event.preventDefault(); onUp(); }
  };
  const paste = (event) => {
    const given = event.clipboardData?.files ?? [];
    if (given.length) { event.preventDefault(); attach(given); }
  };
  const choose = (event) => { attach(event.target.files); event.target.value = ''; };
  return html`<div class="composer">
    ${open && html`<${Options} options=${options} set=${setOptions} tools=${tools} />`}
    ${files.length > 0 && html`<ul class="attachments" aria-label="Attached files">${files.map((file, index) => html`<${File} key=${index} file=${file} onRemove=${() => draft.set((old) => ({ ...old, files: old.files.filter((one) => one !== file) }))} />`)}</ul>`}
    <textarea ref=${inputRef} rows="1" placeholder="Write a message" aria-label="Message" value=${text} onInput=${(event) => draft.patch({ text: event.target.value })} onKeyDown=${keys} onPaste=${paste}></textarea>
    <div class="row">
      <input type="file" multiple hidden ref=${picker} onChange=${choose} aria-label="Files to attach" />
      <${Button} kind="plain" icon="clip" label="Attach files" onClick=${() => picker.current.click()} />
      <${Button} kind=${isSet ? 'plain set' : 'plain'} icon="options" label=${isSet ? 'Options (changed)' : 'Options'} aria-expanded=${open} aria-controls="options" onClick=${() => setOpen(!open)} />
      ${onPrompts && html`<${Button} kind="plain" icon="prompts" label="Prompts" onClick=${onPrompts} />`}
      <${ModelPicker} models=${models} value=${model} onChange=${setModel} />
      <span class="grow"></span>
      ${busy ? html`<${Button} kind="primary stop" icon="stop" label="Stop (Escape)" onClick=${onStop} />`
        : html`<${Button} kind="primary" icon="send" label="Send (Enter)" aria-disabled=${!text.trim() && !files.length} onClick=${send} />`}
    </div>
  </div>`;
}
