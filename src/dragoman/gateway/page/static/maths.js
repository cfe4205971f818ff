// Formulas as MathML. The typesetter is loaded with the first formula. Its tree is converted to
// allowlisted elements and attributes, so a formula can't contain a link or a script.
import { h, useState, useEffect } from './ui.js';
import { spelled, visible } from './text.js';

const ELEMENTS = new Set(['math', 'mrow', 'mi', 'mn', 'mo', 'ms', 'mtext', 'mspace', 'msub', 'msup', 'msubsup', 'mfrac',
  'msqrt', 'mroot', 'mover', 'munder', 'munderover', 'mtable', 'mtr', 'mtd', 'mstyle', 'mpadded', 'mphantom',
  'menclose', 'mmultiscripts', 'mprescripts', 'none', 'merror', 'semantics']);
const ATTRIBUTES = new Set(['display', 'displaystyle', 'scriptlevel', 'mathvariant', 'stretchy', 'fence', 'separator', 'form',
  'lspace', 'rspace', 'minsize', 'maxsize', 'symmetric', 'largeop', 'movablelimits', 'accent', 'accentunder', 'linethickness',
  'width', 'height', 'depth', 'voffset', 'columnalign', 'rowspacing', 'columnspacing', 'columnlines', 'rowlines', 'notation']);
const MAX_DEPTH = 100;
let typesetter = null;
const loaded = () => (typesetter ??= import('./vendor/temml.js').then((module) => module.default));

function node(tree, depth = 0) {
  if (depth > MAX_DEPTH) return null;
  if (typeof tree.text === 'string') return spelled(tree.text);
  const children = (tree.children ?? []).map((child) => node(child, depth + 1));
  if (!ELEMENTS.has(tree.type)) return children;
  const given = {};
  for (const [name, value] of Object.entries(tree.attributes ?? {})) if (ATTRIBUTES.has(name)) given[name] = String(value);
  return h(tree.type, given, children);
}

async function typeset(source, display) {
  const engine = await loaded();
  const tree = engine.__renderToMathMLTree(source, { displayMode: display, throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 2000] });
  return node(tree);
}

export function Maths({ source, display, live }) {
  const [shown, setShown] = useState(null);
  useEffect(() => {
    let gone = false;
    if (live) return undefined;
    typeset(source, display).then((found) => { if (!gone) setShown(found); }).catch(() => {});
    return () => { gone = true; };
  }, [source, display, live]);
  const raw = h('code', { class: 'formula' }, visible(source));
  return h('span', { class: display ? 'maths block' : 'maths' }, shown ?? raw);
}
