// Dialogs shared by several views.
import { html, useState, Dialog, Button, failed, toast } from './ui.js';
import { ask, file, save } from './api.js';
import { brief, plural } from './format.js';
import { changed } from './state.js';
import { visible } from './text.js';

export function Rename({ title, onRename, onClose }) {
  const [text, setText] = useState(title ?? '');
  const done = () => { if (text.trim()) onRename(text.trim()); };
  return html`<${Dialog} title="Rename" onClose=${onClose} actions=${html`<${Button} text="Cancel" onClick=${onClose} /><${Button} kind="primary" text="Rename" onClick=${done} />`}>
    <label class="field"><span>Title</span><input autofocus maxlength="200" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => event.key === 'Enter' && done()} /></label>
  </${Dialog}>`;
}

/** Asks for confirmation before running an action. */
export function Confirm({ title, action, onConfirm, onClose, children }) {
  const [busy, setBusy] = useState(false);
  const run = () => { setBusy(true); Promise.resolve(onConfirm()).then(onClose).catch((error) => { setBusy(false); failed(error); }); };
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${html`<${Button} text="Cancel" onClick=${onClose} /><${Button} kind="danger" text=${action} disabled=${busy} onClick=${run} />`}>${children}</${Dialog}>`;
}

/** Deletes a conversation of the list, or the open one, whose messages are not counted. */
export function Delete({ item, onDone, onClose }) {
  const run = async () => { await ask(`conversations/${encodeURIComponent(item.id)}`, { method: 'DELETE' }); onDone?.(); changed(); toast('Conversation deleted.'); };
  return html`<${Confirm} title="Delete this conversation?" action="Delete" onConfirm=${run} onClose=${onClose}>
    <p><strong>${visible(item.title || item.first_line || 'Untitled')}</strong></p>
    <p>${item.messages === undefined ? 'All its messages' : `Its ${plural(item.messages, 'message')}`}, all branches and attachments will be deleted from the history store. This can’t be undone. Exported copies and data kept by providers are not affected.</p></${Confirm}>`;
}

export function exportItems(item, formats = []) {
  return formats.map((format) => ({
    icon: 'export',
    text: `Export as ${brief(format.label ?? format.id ?? format)}`,
    action: () => exported(item, format),
  }));
}

async function exported(item, format) {
  const id = format.id ?? format;
  const name = (item.title || item.first_line || 'conversation').replace(/[^\p{L}\p{N} _-]+/gu, '').trim().slice(0, 60) || 'conversation';
  try {
    const { content, losses, repairs } = await file(`conversations/${encodeURIComponent(item.id)}/export`, { query: { format: id, branch: item.branch } });
    save(content, `${name}.${format.extension ?? 'json'}`);
    if (losses || repairs) toast(`Exported with ${plural(losses, 'loss', 'losses')} and ${plural(repairs, 'repair')}.${id === 'markdown' ? '' : ' The lens shows them.'}`);
  } catch (error) { failed(error); }
}
