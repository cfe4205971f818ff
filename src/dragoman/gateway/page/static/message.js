// One message: its parts and its actions.
import { html, memo, useState, useRef, useEffect, Button, CopyButton, Some } from './ui.js';
import { exactly } from './api.js';
import { Icon } from './icons.js';
import { Markdown } from './markdown.js';
import { KeptAttachment, Media } from './media.js';
import { Plain } from './plain.js';
import { visible } from './text.js';
import { cost, compact, exact, when } from './format.js';

const NAMES = { user: 'You', assistant: 'Assistant', system: 'System', developer: 'Developer', tool: 'Tool' };

export function textOf(view) { return view.parts.filter((part) => part.kind === 'text').map((part) => part.text).join('\n\n'); }

const MAX_PRETTY = 200_000; // characters

function pretty(value) {
  if (value === null || value === undefined || value === '') return '';
  if (typeof value === 'string' && value.length > MAX_PRETTY) return value;
  try { return JSON.stringify(typeof value === 'string' ? exactly(value) : value, null, 2); } catch { return String(value); }
}

/** A collapsible section. Uses the native <details>, which supports the keyboard and find-in-page. */
function Fold({ icon, title, note, kind = '', open = false, children }) {
  return html`<details class=${`fold ${kind}`} open=${open}><summary><${Icon} name=${icon} /><span class="fold-title">${title}</span>
    ${note && html`<span class="muted">${note}</span>`}</summary><div class="fold-body">${children}</div></details>`;
}

function Call({ part, result, isComing }) {
  const state = result ? (result.is_error ? 'failed' : 'done') : isComing ? 'waiting' : 'no result';
  return html`<${Fold} icon="tool" title=${visible(part.name ?? 'tool')} note=${state} kind=${result?.is_error ? 'call bad' : 'call'}>
    <div class="labelled"><span>Arguments</span><${CopyButton} text=${pretty(part.arguments)} label="Copy arguments" /></div>
    <pre tabindex="0"><${Plain} text=${pretty(part.arguments) || '{}'} /></pre>
    ${result && html`<div class="labelled"><span>${result.is_error ? 'Error' : 'Result'}</span><${CopyButton} text=${result.text ?? ''} label="Copy result" /></div>
      <pre tabindex="0" class=${result.is_error ? 'error' : ''}><${Plain} text=${result.text ?? ''} /></pre>`}
  </${Fold}>`;
}

export function Part({ part, live, isComing, results }) {
  switch (part.kind) {
    case 'text': return html`<${Markdown} text=${part.text ?? ''} live=${live} />${part.citations?.length ? html`<p class="citations"><${Some} all=${part.citations} most=${100} what="sources" each=${(one, index) => html`<span>[${index + 1}] ${visible(String(one.title ?? one.url ?? one).slice(0, 500))} </span>`} /></p>` : null}`;
    case 'thinking': return html`<${Fold} icon="think" title=${live ? 'Thinking …' : 'Thinking'} kind="thinking"><${Markdown} text=${part.text || 'The provider does not return the text of this thinking.'} live=${live} /></${Fold}>`;
    case 'call': return html`<${Call} part=${part} result=${results?.get(part.call_id)} isComing=${isComing} />`;
    case 'result': return html`<${Fold} icon="tool" title=${part.name ? visible(`Result of ${part.name}`) : 'Result'} kind=${part.is_error ? 'bad' : ''}><pre tabindex="0"><${Plain} text=${part.text ?? ''} /></pre></${Fold}>`;
    case 'refusal': return html`<div class="notice warn"><${Icon} name="warn" /><span><${Plain} text=${part.text || 'The model refused to answer.'} /></span></div>`;
    case 'image': case 'audio': case 'video': case 'file': return html`<${Media} part=${part} />`;
    default: return html`<${Fold} icon="file" title=${`Provider data (${part.name ?? part.kind})`}><pre tabindex="0"><${Plain} text=${part.text ?? 'Opaque'} /></pre></${Fold}>`;
  }
}

function Tokens({ usage }) {
  const [into, out] = [usage?.input ?? usage?.input_tokens, usage?.output ?? usage?.output_tokens];
  return into === undefined && out === undefined ? null : html`<span title="Input and output tokens">${compact(into)} → ${compact(out)}</span>`;
}

/** `2 of 3` with arrows: switches between the branches at this message. */
function Siblings({ view, branch, onSwitch }) {
  const all = view.siblings ?? [];
  if (all.length < 2) return null;
  const own = view.sibling ?? Math.max(0, all.indexOf(branch));
  const arrow = (step, icon, label) => html`<${Button} kind="plain small" icon=${icon} label=${label} disabled=${!(own + step in all)} onClick=${() => onSwitch(all[own + step])} />`;
  return html`<span class="siblings" role="group" aria-label="Branches at this message">${arrow(-1, 'left', 'Previous branch')}<span>${own + 1} of ${all.length}</span>${arrow(1, 'right', 'Next branch')}</span>`;
}

/** What an edited message keeps: the indexes of all parts but its text. */
const keptOf = (view) => view.parts.flatMap((part, index) => (part.kind === 'text' ? [] : [index]));

function Editor({ view, text, onSend, onCancel }) {
  const ref = useRef(null);
  const [kept, setKept] = useState(() => keptOf(view));
  const send = () => {
    if (!ref.current.value.trim() && !kept.length) return;
    document.querySelector(matchMedia('(pointer: fine)').matches ? '.composer > textarea' : '.thread').focus(); // this message goes; no keyboard on the screen
    onSend(ref.current.value, kept);
  };
  const cancel = () => { ref.current.closest('[data-message]').focus(); onCancel(); };
  useEffect(() => { ref.current.focus(); ref.current.setSelectionRange(text.length, text.length); }, []);
  const keys = (event) => {
    event.stopPropagation();
    if (event.key === 'Escape') cancel();
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
  };
  return html`<div class="editor">
    ${kept.length > 0 && html`<ul class="attachments" aria-label="Attached files">${kept.map((index) => html`<li key=${index}><${KeptAttachment} part=${view.parts[index]} onRemove=${() => setKept(kept.filter((one) => one !== index))} /></li>`)}</ul>`}
    <textarea ref=${ref} rows="4" aria-label="Edit the message" onKeyDown=${keys}>${text}</textarea>
    <div class="row"><p class="muted grow">Creates a new branch. The original message is kept.</p>
    <${Button} text="Cancel" onClick=${cancel} /><${Button} kind="primary" text="Send" onClick=${send} /></div></div>`;
}

/** `act`: { edit(view, text, kept), retry(view), sent(view), fork(view), lens(view), switchBranch(number) } */
export const Message = memo(({ view, results, branch, act, busy, isComing }) => {
  const [editing, setEditing] = useState(false);
  const isUser = view.role === 'user';
  const text = textOf(view);
  const keys = (event) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'e' && isUser && !busy) { event.preventDefault(); setEditing(true); }
    if (event.key === 'r' && !isUser && !busy) act.retry(view);
    if (event.key === 'c') navigator.clipboard?.writeText(text).catch(() => {});
    if (event.key === 's' && !isUser) act.sent(view);
    if (event.key === '[' || event.key === ']') step(event.key === ']' ? 1 : -1);
  };
  const step = (by) => { const all = view.siblings ?? []; const next = all[(view.sibling ?? all.indexOf(branch)) + by]; if (next !== undefined) act.switchBranch(next); };
  const send = (changedText, kept) => { setEditing(false); act.edit(view, changedText, kept); };
  return html`<article class=${`message ${view.role}`} id=${`m-${view.id}`} tabindex="-1" data-message=${view.id} aria-label=${`${NAMES[view.role] ?? view.role}${view.model ? `, ${view.model}` : ''}`} onKeyDown=${keys}>
    ${!isUser && html`<header><span class="who">${view.model ? visible(view.model) : NAMES[view.role] ?? view.role}</span>
      ${view.finish && !['stop', 'tool_calls', 'end'].includes(view.finish) && html`<span class="tag warn">${view.finish}</span>`}</header>`}
    ${editing ? html`<${Editor} view=${view} text=${text} onSend=${send} onCancel=${() => setEditing(false)} />`
      : html`<div class="parts"><${Some} all=${view.parts} most=${200} what="parts" each=${(part, index) => html`<${Part} key=${index} part=${part} results=${results} isComing=${isComing} />`} /></div>`}
    <footer>
      <${Siblings} view=${view} branch=${branch} onSwitch=${act.switchBranch} />
      <span class="acts">
        ${text && html`<${CopyButton} text=${text} label="Copy message" kind="plain small" />`}
        ${isUser && view.id !== 'pending' && html`<${Button} kind="plain small" icon="edit" label="Edit (creates a branch)" disabled=${busy} onClick=${() => setEditing(true)} />`}
        ${!isUser && html`<${Button} kind="plain small" icon="retry" label="Retry (creates a branch)" disabled=${busy} onClick=${() => act.retry(view)} />`}
        ${!isUser && html`<${Button} kind="plain small" icon="sent" label="What was sent" onClick=${() => act.sent(view)} />`}
        ${view.id !== 'pending' && html`<${Button} kind="plain small" icon="fork" label="Fork into a new conversation" disabled=${busy} onClick=${() => act.fork(view)} />`}
      </span>
      <span class="facts muted">
        <${Tokens} usage=${view.usage} />
        ${view.cost !== null && view.cost !== undefined && html`<span title="Cost">${cost(view.cost)}</span>`}
        ${view.created_at && html`<time title=${exact(view.created_at)}>${when(view.created_at)}</time>`}
      </span>
    </footer>
  </article>`;
});
