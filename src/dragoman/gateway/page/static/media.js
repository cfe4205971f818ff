// Images, audio, video and files of a conversation, fetched with the page's header and key and shown as blobs.
import { blob, save } from './api.js';
import { html, useState, useEffect, Button, failed } from './ui.js';
import { Icon } from './icons.js';
import { bytes } from './format.js';
import { visible } from './text.js';

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

export function Media({ part }) {
  const kind = SHOWN[part.kind]?.test(part.mime ?? '') ? part.kind : 'file';
  const url = useBlob(part.url, kind !== 'file');
  const name = part.name || part.mime || part.kind;
  if (url && kind === 'image') return html`<img class="picture" src=${url} alt=${name} />`;
  if (url && kind === 'audio') return html`<audio controls src=${url} aria-label=${name}></audio>`;
  if (url && kind === 'video') return html`<video controls src=${url} aria-label=${name}></video>`;
  const load = () => blob(part.url).then((content) => save(content, part.name || 'file')).catch(failed);
  return html`<span class="attachment"><${Icon} name="file" /><span>${visible(name)}</span>
    ${part.size ? html`<span class="muted">${bytes(part.size)}</span>` : null}
    ${part.url && html`<${Button} kind="plain small" icon="import" label=${`Download ${name}`} onClick=${load} />`}</span>`;
}
