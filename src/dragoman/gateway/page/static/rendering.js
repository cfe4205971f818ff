// What the worker has read, as elements: highlighted code, formulas as MathML, diagrams as SVG. The
// worker's trees are converted to elements of a few kinds; its HTML is never used.
import { Plain } from './plain.js';
import { visible, spelled } from './text.js';
import { h, html, CopyButton, useMemo, useState, Button } from './ui.js';
import { useRead } from './work.js';

// Code blocks, highlighted once complete. The worker highlights them; its token tree is converted to
// elements, and its HTML is never used.

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

// Formulas as MathML. The worker typesets them; its tree is converted to allowlisted elements and
// attributes, so a formula can't contain a link or a script.

const ELEMENTS = new Set(['math', 'mrow', 'mi', 'mn', 'mo', 'ms', 'mtext', 'mspace', 'msub', 'msup', 'msubsup', 'mfrac',
  'msqrt', 'mroot', 'mover', 'munder', 'munderover', 'mtable', 'mtr', 'mtd', 'mstyle', 'mpadded', 'mphantom',
  'menclose', 'mmultiscripts', 'mprescripts', 'none', 'merror', 'semantics']);
const ATTRIBUTES = new Set(['display', 'displaystyle', 'scriptlevel', 'mathvariant', 'stretchy', 'fence', 'separator', 'form',
  'lspace', 'rspace', 'minsize', 'maxsize', 'symmetric', 'largeop', 'movablelimits', 'accent', 'accentunder', 'linethickness',
  'width', 'height', 'depth', 'voffset', 'columnalign', 'rowspacing', 'columnspacing', 'columnlines', 'rowlines', 'notation']);
const MAX_DEPTH = 100;
const OPERATORS = /^[\u2061-\u2064]$/; // invisible, and the typesetter's own

function node(tree, depth = 0) {
  if (depth > MAX_DEPTH) return null;
  if (typeof tree === 'string') return OPERATORS.test(tree) ? tree : spelled(tree);
  const children = tree.children.map((child) => node(child, depth + 1));
  if (!ELEMENTS.has(tree.type)) return children;
  const given = {};
  for (const [name, value] of Object.entries(tree.attributes)) if (ATTRIBUTES.has(name)) given[name] = String(value);
  return h(tree.type, given, children);
}

export function Maths({ source, display, live }) {
  const found = useRead('maths', source, display, live);
  const shown = useMemo(() => (found ? node(found) : null), [found]);
  const raw = shown ?? h('code', { class: 'formula' }, h(Plain, { text: source }));
  return h('span', { class: display ? 'maths block' : 'maths' }, raw);
}

// A diagram as SVG, from the shapes that the worker laid out. A shape is one of a few kinds with numbers
// and a text: nothing of the source becomes an element, an attribute, a link or a style.

const number = (value) => (Number.isFinite(value) ? value : 0);
const joined = (points) => points.map(([x, y]) => `${number(x)},${number(y)}`).join(' ');

function Shape({ one }) {
  const [x, y, width, height] = [one.x, one.y, one.width, one.height].map(number);
  const corner = { x: x - width / 2, y: y - height / 2, width, height };
  switch (one.kind) {
    case 'box': return html`<rect class="node" rx="4" ...${corner} />`;
    case 'round': return html`<rect class="node" rx=${height / 2} ...${corner} />`;
    case 'circle': return html`<circle class="node" cx=${x} cy=${y} r=${width / 2} />`;
    case 'diamond': return html`<polygon class="node" points=${joined([[x, y - height / 2], [x + width / 2, y], [x, y + height / 2], [x - width / 2, y]])} />`;
    case 'frame': return html`<rect class="frame" rx="4" ...${corner} />`;
    case 'note': return html`<rect class="note" ...${corner} />`;
    case 'line': return html`<polyline class=${`link ${one.isDashed ? 'dashed' : ''} ${one.isThick ? 'thick' : ''} ${one.isFaint ? 'faint' : ''}`} points=${joined(one.points)} />`;
    case 'head': return html`<polygon class="head" points=${joined(one.points)} />`;
    case 'start': return html`<text x=${x} y=${y} class="start">${spelled(one.text)}</text>`;
    case 'label': return html`<text x=${x} y=${y} class="label">${spelled(one.text)}</text>`;
    case 'text': return html`<text x=${x} y=${y}>${spelled(one.text)}</text>`;
    default: return null;
  }
}

/** The diagram of a source, or `otherwise` if it is none that can be drawn. */
export function Diagram({ source, otherwise }) {
  const found = useRead('diagram', source);
  const [isSource, setSource] = useState(false);
  if (!found) return otherwise;
  const toggle = html`<div class="row"><span class="grow"></span><${Button} kind="plain small" text=${isSource ? 'Show diagram' : 'Show source'} onClick=${() => setSource(!isSource)} /></div>`;
  if (isSource) return html`<div>${otherwise}${toggle}</div>`;
  const said = found.shapes.filter((one) => one.text).map((one) => one.text).join(', ');
  return html`<figure class="diagram"><div class="canvas" role="region" aria-label="Diagram" tabindex="0">
    <svg role="img" aria-label=${spelled(said)} width=${number(found.width)} height=${number(found.height)} viewBox=${`0 0 ${number(found.width)} ${number(found.height)}`}>
      ${found.shapes.map((one) => html`<${Shape} one=${one} />`)}</svg></div>${toggle}</figure>`;
}
