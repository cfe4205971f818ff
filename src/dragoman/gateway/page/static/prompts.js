// The prompt library: prompts shared with the terminal, put into the message that is being written.
import { html, useState, useEffect, Dialog, Button, Loading, failed, toast } from './ui.js';
import { ask } from './api.js';
import { Icon } from './icons.js';
import { Confirm } from './dialogs.js';
import { visible } from './text.js';

const LONGEST = 100_000; // characters
const MOST = 100; // rows in the document; the search finds the others
const at = (name) => `prompts/${encodeURIComponent(name)}`;
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

function List({ prompts, onChoose, onEdit, onNew, onClose }) {
  const [query, setQuery] = useState('');
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = prompts?.filter((one) => words.every((word) => `${one.name} ${one.text ?? ''}`.toLowerCase().includes(word)));
  return html`<${Dialog} title="Prompts" onClose=${onClose} actions=${html`<${Button} icon="plus" text="New prompt" onClick=${onNew} />`}>
    <label class="searchbox"><span class="hidden">Search prompts</span><${Icon} name="search" /><input type="search" autofocus placeholder="Search prompts" value=${query} onInput=${(event) => setQuery(event.target.value)}
      onKeyDown=${(event) => { if (event.key === 'Enter' && found?.length && !found[0].problem) { event.preventDefault(); onChoose(found[0]); } }} /></label>
    ${!found ? html`<${Loading} what="the prompts" />` : html`<ul class="prompts" aria-label="Prompts">${found.slice(0, MOST).map((one) => html`<li key=${one.name}>
      <button type="button" class="prompt" disabled=${Boolean(one.problem)} onClick=${() => onChoose(one)}><strong>${visible(one.name)}</strong><span class="muted">${visible(one.problem ?? one.text)}</span></button>
      ${!one.problem && html`<${Button} kind="plain" icon="edit" label=${`Open ${one.name}`} onClick=${() => onEdit(one.name)} />`}</li>`)}</ul>
      ${found.length > MOST && html`<p class="muted">${found.length - MOST} more: search to find them.</p>`}
      ${!found.length && html`<p class="muted">${query ? 'No prompt matches your search.' : 'No prompts yet. They are shared with “dragoman templates”.'}</p>`}`}
  </${Dialog}>`;
}

/** Asks for the values of the variables that have no default. */
function Values({ prompt, onDone, onClose }) {
  const [values, setValues] = useState({});
  const done = () => onDone(Object.fromEntries(prompt.variables.map((name) => [name, values[name] ?? ''])));
  return html`<${Dialog} title=${prompt.name} onClose=${onClose} actions=${html`<${Button} text="Cancel" onClick=${onClose} /><${Button} kind="primary" text="Insert" onClick=${done} />`}>
    ${prompt.variables.map((name, index) => html`<label key=${name} class="field"><span>${visible(name)}</span><input autofocus=${index === 0} value=${values[name] ?? ''} onInput=${(event) => setValues({ ...values, [name]: event.target.value })}
      onKeyDown=${(event) => { if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); done(); } }} /></label>`)}
  </${Dialog}>`;
}

function Editor({ given, onDone, onClose }) {
  const [made, setMade] = useState(given);
  const [busy, setBusy] = useState(false);
  const field = (name) => (event) => setMade({ ...made, [name]: event.target.value });
  const isFine = NAME.test(made.name) && (made.prompt.trim() || made.system.trim());
  const save = async () => {
    setBusy(true);
    try {
      await ask(at(made.name), { method: 'POST', body: { prompt: made.prompt, system: made.system, model: made.model, version: given.version ?? '' } });
      onDone();
    } catch (error) { setBusy(false); failed(error); }
  };
  const [deleting, setDeleting] = useState(false);
  const remove = async () => { await ask(at(given.name), { method: 'DELETE', query: { version: given.version } }); onDone(); };
  const isFixed = given.is_editable === false;
  if (deleting) return html`<${Confirm} title="Delete this prompt?" action="Delete" onConfirm=${remove} onClose=${() => setDeleting(false)}><p><strong>${visible(given.name)}</strong></p><p>It will be deleted from the folder that the terminal uses, too. This can’t be undone.</p></${Confirm}>`;
  return html`<${Dialog} title=${given.version ? visible(given.name) : 'New prompt'} wide onClose=${onClose} actions=${html`
    ${given.version && html`<${Button} kind="plain" icon="trash" label="Delete …" onClick=${() => setDeleting(true)} /><span class="grow"></span>`}
    <${Button} text=${isFixed ? 'Close' : 'Cancel'} onClick=${onClose} />${!isFixed && html`<${Button} kind="primary" text="Save" disabled=${!isFine || busy} onClick=${save} />`}`}>
    ${isFixed && html`<p class="notice">Its file holds more than this page shows, such as comments or tools. Change it with “dragoman templates edit ${visible(given.name)}”.</p>`}
    ${!given.version && html`<label class="field"><span>Name</span><input autofocus maxlength="64" spellcheck=${false} placeholder="letters, digits, _ . -" value=${made.name} onInput=${field('name')} /></label>`}
    <label class="field"><span>Prompt: $input is the message, and any other $name is asked for</span><textarea rows="7" maxlength=${LONGEST} readonly=${isFixed} value=${made.prompt} onInput=${field('prompt')}></textarea></label>
    <label class="field"><span>System prompt</span><textarea rows="3" maxlength=${LONGEST} readonly=${isFixed} value=${made.system} onInput=${field('system')}></textarea></label>
    <label class="field"><span>Model (optional)</span><input maxlength="256" spellcheck=${false} readonly=${isFixed} value=${made.model} onInput=${field('model')} /></label>
  </${Dialog}>`;
}

/** `onUse` takes what was filled in: text, system, model, settings. `text` and `system` are those of the composer. */
export function Prompts({ text, system, onUse, onClose }) {
  const [prompts, setPrompts] = useState(null);
  const [step, setStep] = useState(null);
  const load = () => ask('prompts').then((found) => setPrompts(found.prompts)).catch((error) => { failed(error); onClose(); });
  useEffect(() => { load(); }, []);
  const back = () => setStep(null);
  const insert = async (name, values) => {
    try {
      const found = await ask(`${at(name)}/fill`, { method: 'POST', body: { values, input: text } });
      if (found.unused.length) toast(`Not used by the page: ${found.unused.join(', ')}.`);
      onUse(found);
      onClose();
    } catch (error) { failed(error); }
  };
  if (step?.values) return html`<${Values} prompt=${step.values} onDone=${(values) => insert(step.values.name, values)} onClose=${back} />`;
  if (step?.given) return html`<${Editor} given=${step.given} onClose=${back} onDone=${() => { back(); load(); }} />`;
  return html`<${List} prompts=${prompts} onClose=${onClose} onChoose=${(one) => (one.variables.length ? setStep({ values: one }) : insert(one.name, {}))}
    onEdit=${(name) => ask(at(name)).then((given) => setStep({ given })).catch(failed)} onNew=${() => setStep({ given: { name: '', prompt: text, system, model: '' } })} />`;
}
