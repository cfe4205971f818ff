// Formulas as MathML. The worker typesets them; its tree is converted to allowlisted elements and
// attributes, so a formula can't contain a link or a script.
import { h, useMemo } from './ui.js';
import { Plain } from './plain.js';
import { spelled } from './text.js';
import { useRead } from './work.js';

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
