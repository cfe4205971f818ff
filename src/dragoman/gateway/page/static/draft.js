// The message being written. It survives a change of view and a reload of this tab, and takes back a
// message that could not be sent. It is kept by the browser for this tab only, until it is closed.
import { fileAsBase64 } from './api.js';
import { store, toast } from './ui.js';

const NAME = 'dragoman.draft';
const MOST = 3_000_000; // characters of files: browsers keep about five million in all
const NOTHING = { text: '', files: [] };

export const draft = store(restored());

const encoded = new WeakMap(); // the content of each file, once it is read
let timer = null;

function save() {
  clearTimeout(timer);
  timer = null;
  const { text, files } = draft.value;
  let left = MOST;
  const kept = files.map((file) => {
    const data = encoded.get(file);
    const fits = data !== undefined && data.length <= left;
    if (fits) left -= data.length;
    return { name: file.name, type: file.type, data: fits ? data : null };
  });
  for (const all of [kept, kept.map((one) => ({ ...one, data: null }))]) {
    try {
      if (text || files.length) sessionStorage.setItem(NAME, JSON.stringify({ text, files: all }));
      else sessionStorage.removeItem(NAME);
      return;
    } catch { /* full, or disabled: then without the files, or not at all */ }
  }
}

draft.watch(({ files }) => {
  for (const file of files) if (!encoded.has(file)) {
    encoded.set(file, undefined);
    fileAsBase64(file).then((data) => { encoded.set(file, data); save(); }).catch(() => {}); // removed from the disk: sending reports it
  }
  timer ??= setTimeout(save, 200);
});
addEventListener('pagehide', save);

function restored() {
  try {
    const { text, files } = JSON.parse(sessionStorage.getItem(NAME)) ?? NOTHING;
    const lost = files.filter((one) => one.data === null).map((one) => one.name);
    if (lost.length) setTimeout(() => toast(`Attach again what the browser could not keep: ${lost.join(', ')}`, 'error'));
    return { text, files: files.filter((one) => one.data !== null).map(fileOf) };
  } catch { return NOTHING; }
}

function fileOf({ name, type, data }) {
  return new File([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], name, { type });
}
