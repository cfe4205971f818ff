// Code blocks, highlighted once complete. The worker highlights them; its token tree is converted to
// elements, and its HTML is never used.
import { Diagram } from './drawing.js';
import { h, html, CopyButton, useMemo } from './ui.js';
import { Plain } from './plain.js';
import { visible } from './text.js';
import { useRead } from './work.js';

const MAX_HIGHLIGHTED = 20_000; // characters

function nodes(all) {
  return all.map((one) => {
    if (typeof one === 'string') return visible(one);
    const scope = one.scope.replace(/[^a-z0-9_.-]/gi, '');
    return scope ? h('span', { class: `hl-${scope.split('.')[0]}` }, nodes(one.children)) : nodes(one.children);
  });
}

export function CodeBlock({ code, language, live }) {
  const name = (language ?? '').trim().split(/[\s{,]/)[0].toLowerCase();
  const found = useRead('code', code, name, live || !name || code.length > MAX_HIGHLIGHTED);
  const shown = useMemo(() => (found ? nodes(found) : null), [found]);
  const block = html`<figure class="code">
    <figcaption><span>${visible(name.slice(0, 30)) || 'text'}</span><${CopyButton} text=${code} label="Copy code" /></figcaption>
    <pre tabindex="0"><code>${shown ?? html`<${Plain} text=${code} isLive=${live} />`}</code></pre>
  </figure>`;
  return name === 'mermaid' && !live && code.length <= MAX_HIGHLIGHTED ? html`<${Diagram} source=${code} otherwise=${block} />` : block;
}
