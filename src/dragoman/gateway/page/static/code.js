// Code blocks, highlighted once complete. The highlighter is loaded for the first block that needs
// it. Its token tree is converted to elements; its HTML is never used.
import { h, html, CopyButton, useState, useEffect } from './ui.js';
import { visible } from './text.js';

const MAX_HIGHLIGHTED = 50_000; // characters
let highlighter = null;
const loaded = () => (highlighter ??= import('./vendor/highlight.js').then((module) => module.default));

function nodes(tree) {
  return tree.children.map((child) => {
    if (typeof child === 'string') return visible(child);
    const scope = typeof child.scope === 'string' ? child.scope.replace(/[^a-z0-9_.-]/gi, '') : '';
    return scope ? h('span', { class: `hl-${scope.split('.')[0]}` }, nodes(child)) : nodes(child);
  });
}

async function highlighted(code, language) {
  const engine = await loaded();
  if (!engine.getLanguage(language)) return null;
  return nodes(engine.highlight(code, { language, ignoreIllegals: true })._emitter.root);
}

export function CodeBlock({ code, language, live }) {
  const [shown, setShown] = useState(null);
  const name = (language ?? '').trim().split(/[\s{,]/)[0].toLowerCase();
  useEffect(() => {
    let gone = false;
    setShown(null);
    if (live || !name || code.length > MAX_HIGHLIGHTED) return undefined;
    highlighted(code, name).then((found) => { if (!gone) setShown(found); }).catch(() => {});
    return () => { gone = true; };
  }, [code, name, live]);
  return html`<figure class="code">
    <figcaption><span>${visible(name.slice(0, 30)) || 'text'}</span><${CopyButton} text=${code} label="Copy code" /></figcaption>
    <pre tabindex="0"><code>${shown ?? visible(code)}</code></pre>
  </figure>`;
}
