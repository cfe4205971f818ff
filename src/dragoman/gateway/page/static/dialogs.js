// Dialogs shared by several views.
import { html, useState, Dialog, Button, failed, toast } from './ui.js';
import { file, save } from './api.js';
import { brief, plural } from './format.js';

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
    if (losses || repairs) toast(`Exported with ${plural(losses, 'loss', 'losses')} and ${plural(repairs, 'repair')}. The lens shows them.`);
  } catch (error) { failed(error); }
}
