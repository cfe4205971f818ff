// A diagram as SVG, from the shapes that the worker laid out. A shape is one of a few kinds with numbers
// and a text: nothing of the source becomes an element, an attribute, a link or a style.
import { html, useState, Button } from './ui.js';
import { spelled } from './text.js';
import { useRead } from './work.js';

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
