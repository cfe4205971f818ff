// Images, audio, video and files of a conversation, fetched with the page's header and key and shown as blobs.
import { blob, save } from './api.js';
import { html, useState, useEffect, Button, failed } from './ui.js';
import { Icon } from './icons.js';
import { bytes } from './format.js';
import { spelled, visible } from './text.js';

const SHOWN = { image: /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/, audio: /^audio\//, video: /^video\// };

function useBlob(path, wanted) {
  const [url, setUrl] = useState(null);
  useEffect(() => {
    if (!path || !wanted) return undefined;
    let made = null;
    let gone = false;
    blob(path).then((content) => { if (!gone) setUrl(made = URL.createObjectURL(content)); }).catch(() => {});
    return () => { gone = true; if (made) URL.revokeObjectURL(made); };
  }, [path, wanted]);
  return url;
}

/** A file's name and size, with a picture in place of the icon if there is one. */
export function Attachment({ name, size, image, children }) {
  return html`<span class="attachment">${image ? html`<img src=${image} alt="" />` : html`<${Icon} name="file" />`}
    <span class="clip" title=${spelled(name)}>${visible(name)}</span>${size ? html`<span class="muted">${bytes(size)}</span>` : null}${children}</span>`;
}

export function RemoveButton({ name, onClick }) { return html`<${Button} kind="plain small" icon="close" label=${`Remove ${spelled(name)}`} onClick=${onClick} />`; }

/** An attachment of a stored message that may be removed from the edited one. */
export function KeptAttachment({ part, onRemove }) {
  const name = part.name || part.kind;
  return html`<${Attachment} name=${name} size=${part.size} image=${useBlob(part.url, SHOWN.image.test(part.mime ?? ''))}><${RemoveButton} name=${name} onClick=${onRemove} /></${Attachment}>`;
}

export function Media({ part }) {
  const kind = SHOWN[part.kind]?.test(part.mime ?? '') ? part.kind : 'file';
  const url = useBlob(part.url, kind !== 'file');
  const name = part.name || part.mime || part.kind;
  if (url && kind === 'image') return html`<img class="picture" src=${url} alt=${name} />`;
  if (url && kind === 'audio') return html`<audio controls src=${url} aria-label=${name}></audio>`;
  if (url && kind === 'video') return html`<video controls src=${url} aria-label=${name}></video>`;
  const load = () => blob(part.url).then((content) => save(content, part.name || 'file')).catch(failed);
  return html`<${Attachment} name=${name} size=${part.size}>${part.url && html`<${Button} kind="plain small" icon="import" label=${`Download ${spelled(name)}`} onClick=${load} />`}</${Attachment}>`;
}
