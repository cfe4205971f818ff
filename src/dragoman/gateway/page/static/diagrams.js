// Mermaid's flowcharts, state and sequence diagrams, laid out in the worker as plain shapes: boxes, lines and
// texts with their numbers. Whatever else Mermaid knows raises, and is shown as its source.
const [MAX_NODES, MAX_EDGES, MAX_GROUPS, MAX_TEXT] = [150, 300, 30, 200];
const [LINE, WIDE, NARROW, PAD, GAP, RANK] = [20, 14, 7.6, 14, 28, 56]; // pixels

export class Unsupported extends Error {}

// --- texts: their size is estimated, since a worker has no fonts

const isWide = (letter) => /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(letter);
const widthOf = (text) => [...text].reduce((all, letter) => all + (isWide(letter) ? WIDE : NARROW), 0);

function linesOf(text) {
  const plain = text.trim().replace(/^"(.*)"$/s, '$1').replace(/^`(.*)`$/s, '$1').replace(/#quot;/g, '"').slice(0, MAX_TEXT);
  return plain.split(/<br\s*\/?>|\\n|\n/i).flatMap((line) => wrapped(line.trim()));
}

function wrapped(line) {
  const found = [''];
  for (const word of line.split(/\s+/)) {
    if (found.at(-1) && widthOf(`${found.at(-1)} ${word}`) > 220) found.push(word);
    else found.push(`${found.pop()} ${word}`.trim());
  }
  return found;
}

const sizeOf = (lines) => ({ width: Math.max(...lines.map(widthOf)), height: lines.length * LINE });
const written = (lines, x, y, kind = 'text') => lines.map((text, index) => ({ kind, text, x, y: y + (index - (lines.length - 1) / 2) * LINE }));

/** The statements of a diagram, without comments, settings and colours. */
function statements(source) {
  const text = source.replace(/^---\n[\s\S]*?\n---\n/, '').replace(/%%.*$/gm, '');
  return text.split('\n').map((one) => one.trim().replace(/;$/, '')).filter((one) => one && !/^(?:(?:style|classDef|class|linkStyle|click)\s+[^\s=-]|acc(?:Title|Descr)\s*:)/.test(one));
}

// --- flowcharts

const SHAPES = [
  ['([', '])', 'round'], ['[[', ']]', 'box'], ['[(', ')]', 'round'], ['((', '))', 'circle'], ['{{', '}}', 'box'],
  ['[/', '/]', 'box'], ['[\\', '\\]', 'box'], ['[', ']', 'box'], ['(', ')', 'round'], ['{', '}', 'diamond'], ['>', ']', 'box'],
];
const LINK = /^\s*(<|[ox](?=[-=]))?(?:--\s+([^-|>][^|>]*?)\s+--+([>ox])?|==\s+([^=|>][^|>]*?)\s+==+([>ox])?|-\.\s*([^.|>-][^|>]*?)\s*\.+-+([>ox])?|(-{2,}|={2,}|-\.+-)([>ox])?)\s*(?:\|([^|]*)\|)?\s*/;
const TIGHT = /^\s*(<)?(--|==)([^-=>|]+?)(?:--+|==+)([>ox])?\s*/; // A--text-->B

class Flow {
  constructor(direction) { Object.assign(this, { direction, nodes: new Map(), edges: [], groups: new Map(), open: null }); }

  order() { return this.nodes.size + this.groups.size; }

  line(text) {
    const direction = /^direction\s+(TB|TD|BT|LR|RL)$/.exec(text)?.[1];
    if (direction) (this.open ?? this).direction = direction;
    else if (/^subgraph\b/.test(text)) this.begin(text.slice(8).trim());
    else if (text === 'end' && this.open) this.open = this.open.parent;
    else this.statement(text);
  }

  /** Begins a subgraph: `name`, `name [title]`, or a title alone. */
  begin(text) {
    const [, id = text, title = text] = /^([\p{L}\p{N}_][\p{L}\p{N}_.-]*)\s*\[(.*)\]$/u.exec(text) ?? [];
    if (this.groups.has(id) || this.groups.size >= MAX_GROUPS) throw new Unsupported('subgraph');
    this.open = { id, lines: linesOf(title).filter(Boolean), parent: this.open, order: this.order(), direction: this.open?.direction ?? this.direction, isGroup: true };
    this.groups.set(id, this.open);
  }

  /** Reads a node at the beginning of a text; returns the rest. */
  node(text, found) {
    const id = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_]|[.-](?=[\p{L}\p{N}_]))*/u.exec(text)?.[0];
    if (!id) throw new Unsupported(text);
    let rest = text.slice(id.length);
    const node = this.nodes.get(id) ?? { shape: 'box', lines: linesOf(id), parent: null, order: this.order() };
    node.parent ??= this.open; // where it is first mentioned within one
    this.nodes.set(id, node);
    for (const [open, close, shape] of SHAPES) {
      if (!rest.startsWith(open)) continue;
      const isQuoted = rest[open.length] === '"';
      const end = isQuoted ? rest.indexOf(`"${close}`, open.length + 1) + 1 : rest.indexOf(close, open.length);
      if (end < 1) throw new Unsupported(text);
      Object.assign(node, { shape, lines: linesOf(rest.slice(open.length, end)) });
      rest = rest.slice(end + close.length);
      break;
    }
    if (this.nodes.size > MAX_NODES) throw new Unsupported('too many nodes');
    found.push(id);
    return rest.replace(/^:::[\w-]+/, '');
  }

  group(text) {
    const found = [];
    let rest = this.node(text.trimStart(), found);
    while (/^\s*&/.test(rest)) rest = this.node(rest.replace(/^\s*&\s*/, ''), found);
    return [found, rest];
  }

  statement(text) {
    let [from, rest] = this.group(text);
    while (rest.trim()) {
      const link = LINK.exec(rest);
      if (!link) throw new Unsupported(rest);
      let [whole, begin, one, oneEnd, two, twoEnd, three, threeEnd, plain, plainEnd, label] = link;
      if (plain?.length === 2 && !plainEnd) { // too short for a link: its text follows
        [whole, begin, , label, plainEnd] = TIGHT.exec(rest) ?? [];
        if (!whole) throw new Unsupported(rest);
      }
      const edge = {
        lines: linesOf(label ?? one ?? two ?? three ?? '').filter(Boolean), isBoth: Boolean(begin),
        head: oneEnd ?? twoEnd ?? threeEnd ?? plainEnd, isDashed: whole.includes('-.'), isThick: whole.includes('=='),
      };
      const [to, after] = this.group(rest.slice(whole.length));
      for (const a of from) for (const b of to) this.edges.push({ ...edge, from: a, to: b });
      if (this.edges.length > MAX_EDGES) throw new Unsupported('too many links');
      [from, rest] = [to, after];
    }
  }
}

function flowchart(all, direction) {
  const flow = new Flow(direction);
  for (const line of all) for (const one of line.split(/;(?=(?:[^"]*"[^"]*")*[^"]*$)/)) if (one.trim()) flow.line(one.trim());
  return finished(flow);
}

function finished(flow) {
  for (const id of flow.groups.keys()) flow.nodes.delete(id); // a link may lead to a group
  if (!flow.nodes.size || flow.open) throw new Unsupported('empty, or not closed');
  return placed(flow);
}

// --- state diagrams: flowcharts in another notation

function states(all) {
  const flow = new Flow('TB');
  const state = (text, end) => {
    const id = text === '[*]' ? `${end}${flow.open?.id ?? ''}` : /^[\p{L}\p{N}_.-]+$/u.exec(text)?.[0];
    if (!id) throw new Unsupported(text);
    if (!flow.nodes.has(id)) flow.nodes.set(id, { shape: text === '[*]' ? 'circle' : 'round', lines: text === '[*]' ? [''] : linesOf(id), parent: null, order: flow.order() });
    const node = flow.nodes.get(id);
    node.parent ??= flow.open;
    return [id, node];
  };
  for (const line of all) {
    const way = /^(\S+)\s*-->\s*([^\s:]+)\s*(?::\s*(.*))?$/.exec(line);
    const named = /^state\s+(?:"([^"]*)"\s+as\s+)?([^\s{"]+)\s*(\{)?$/.exec(line) ?? /^([^\s:]+)\s*:\s*()(.+)$/.exec(line);
    if (way) flow.edges.push({ from: state(way[1], ' begin ')[0], to: state(way[2], ' end ')[0], lines: linesOf(way[3] ?? '').filter(Boolean), head: '>' });
    else if (named?.[3] === '{') flow.begin(`${named[2]} [${named[1] ?? named[2]}]`);
    else if (line === '}' && flow.open) flow.open = flow.open.parent;
    else if (/^direction\b/.test(line)) flow.line(line);
    else if (named?.[2]) state(named[2])[1].lines = linesOf(named[1] ?? named[2]);
    else if (named) state(named[1])[1].lines = linesOf(named[3]);
    else throw new Unsupported(line);
    if (flow.nodes.size > MAX_NODES || flow.edges.length > MAX_EDGES) throw new Unsupported('size');
  }
  return finished(flow);
}

/** The rank of each member, by its longest way from a beginning; links that lead back don't count. */
function ranked(members, links) {
  const out = new Map(members.map((one) => [one, []]));
  for (const link of links) out.get(link.from).push(link);
  const [state, order] = [new Map(), []];
  const visit = (one) => {
    state.set(one, 'open');
    for (const link of out.get(one)) {
      if (state.get(link.to) === 'open') link.isBack = true;
      else if (!state.has(link.to)) visit(link.to);
    }
    state.set(one, 'done');
    order.unshift(one);
  };
  for (const one of members) if (!state.has(one)) visit(one);
  const rank = new Map(order.map((one) => [one, 0]));
  for (const one of order) for (const link of out.get(one)) if (!link.isBack) rank.set(link.to, Math.max(rank.get(link.to), rank.get(one) + 1));
  return rank;
}

/** The member of a group that is, or contains, a node or group; null if it is outside. */
function within(one, group) {
  let found = one;
  while (found && found.parent !== group) found = found.parent;
  return found ?? null;
}

/** Places the members of a group, or of all, from its corner; returns its links, with the points on their way. */
function arranged(flow, group) {
  const direction = (group ?? flow).direction;
  const isAcross = direction === 'LR' || direction === 'RL';
  const members = [...flow.groups.values(), ...flow.nodes.values()].filter((one) => one.parent === group).sort((one, other) => one.order - other.order);
  const links = flow.edges.map((edge) => ({ edge, from: within(edge.from, group), to: within(edge.to, group), isAcross })).filter(({ from, to }) => from && to && from !== to);
  const inner = members.filter((one) => one.isGroup).flatMap((one) => arranged(flow, one));
  const rank = ranked(members, links);
  const ranks = [];
  const put = (one, at) => { (ranks[at] ??= []).push(one); one.rank = at; return one; };
  for (const one of members) put(one, rank.get(one));
  for (const link of links) { // one point in each rank between the ends
    const [first, last] = link.isBack ? [link.to, link.from] : [link.from, link.to];
    link.points = [first];
    for (let at = first.rank + 1; at < last.rank; at += 1) link.points.push(put({ width: 8, height: 8 }, at));
    link.points.push(last);
  }
  ordered(ranks, links);
  const [along, across] = isAcross ? ['width', 'height'] : ['height', 'width'];
  let [main, most] = [0, 0];
  const labels = (at) => Math.max(0, ...links.filter(({ points }) => points[0].rank === at).map(({ edge }) => (isAcross ? sizeOf(['', ...edge.lines]).width : edge.lines.length * LINE)));
  for (const [at, row] of ranks.entries()) {
    const size = Math.max(...row.map((one) => one[along]));
    let cross = 0;
    for (const one of row) { one.main = main + size / 2; one.cross = cross + one[across] / 2; cross += one[across] + GAP; }
    row.length_ = cross - GAP;
    most = Math.max(most, row.length_);
    main += size + RANK + labels(at);
  }
  const places = ranks.flat();
  const flips = direction === 'BT' || direction === 'RL';
  for (const row of ranks) for (const one of row) {
    const [at, cross] = [flips ? -one.main : one.main, one.cross + (most - row.length_) / 2];
    [one.x, one.y] = isAcross ? [at, cross] : [cross, at];
  }
  const [left, top] = [Math.min(0, ...places.map((one) => one.x - one.width / 2)), Math.min(0, ...places.map((one) => one.y - one.height / 2))];
  if (group) {
    const title = sizeOf(['', ...group.lines]);
    group.inset = [PAD - left, PAD + group.lines.length * LINE - top];
    group.width = 2 * PAD + Math.max(title.width, ...places.map((one) => one.x + one.width / 2 - left));
    group.height = 2 * PAD + group.lines.length * LINE + Math.max(0, ...places.map((one) => one.y + one.height / 2 - top));
    group.places = places;
  }
  return [...links, ...inner];
}

/** Moves what is in a group to where the group is. */
function settled(places) {
  for (const group of places) for (const one of group.places ?? []) {
    one.x += group.x - group.width / 2 + group.inset[0];
    one.y += group.y - group.height / 2 + group.inset[1];
  }
  for (const group of places) if (group.places) settled(group.places);
}

function placed(flow) {
  const groups = [...flow.groups.values()];
  for (const edge of flow.edges) {
    [edge.from, edge.to] = [edge.from, edge.to].map((id) => flow.groups.get(id) ?? flow.nodes.get(id));
    if (edge.from !== edge.to && (within(edge.from, edge.to) || within(edge.to, edge.from))) throw new Unsupported('a link of a subgraph to its own node');
  }
  for (const box of flow.nodes.values()) {
    const { width, height } = sizeOf(box.lines);
    const room = { box: [2 * PAD, PAD], round: [2 * PAD + 8, PAD], circle: [2 * PAD, 2 * PAD], diamond: [width * 0.5 + 4 * PAD, height + 2 * PAD] }[box.shape];
    [box.width, box.height] = [width + room[0], height + room[1]];
    if (box.shape === 'circle') box.width = box.height = Math.max(box.width, box.height);
  }
  const links = arranged(flow, null);
  settled(groups.filter((one) => !one.parent));
  const shapes = groups.flatMap(({ x, y, width, height, lines }) => [
    { kind: 'frame', x, y, width, height }, ...written(lines, x - width / 2 + PAD, y - height / 2 + (lines.length * LINE) / 2 + 4, 'start')]);
  for (const link of links) {
    const { edge, points, isBack, isAcross } = link;
    const own = links.filter((one) => one.edge.from === edge.from ? one.edge.to === edge.to : one.edge.from === edge.to && one.edge.to === edge.from); // of the same two nodes
    const shift = (own.indexOf(link) - (own.length - 1) / 2) * 24;
    const ends = isBack ? [edge.to, edge.from] : [edge.from, edge.to];
    const line = [ends[0], ...points.slice(1, -1), ends[1]].map((one) => ({ ...one, x: one.x + (isAcross ? 0 : shift), y: one.y + (isAcross ? shift : 0) }));
    link.at = middle(edgeOf(line[0], line[1]), edgeOf(line[1], line[0]));
    shapes.push(...linked(edge, isBack ? line.reverse() : line));
  }
  for (const { from } of flow.edges.filter((edge) => edge.from === edge.to)) shapes.push(...loop(from));
  for (const box of flow.nodes.values()) shapes.push({ kind: box.shape, x: box.x, y: box.y, width: box.width, height: box.height }, ...written(box.lines, box.x, box.y));
  for (const { edge, at } of links) if (edge.lines.length) shapes.push(...written(edge.lines, at.x, at.y, 'label'));
  return drawing(shapes);
}

/** Puts each rank into the order of its neighbours' middles, a few times in both directions. */
function ordered(ranks, chains) {
  const near = new Map(ranks.flat().map((one) => [one, []]));
  for (const { points } of chains) for (let at = 1; at < points.length; at += 1) { near.get(points[at]).push(points[at - 1]); near.get(points[at - 1]).push(points[at]); }
  const place = new Map();
  const note = () => { for (const row of ranks) row.forEach((one, index) => place.set(one, index - row.length / 2)); };
  note();
  for (let turn = 0; turn < 8; turn += 1) {
    const step = turn % 2 ? -1 : 1;
    for (const row of turn % 2 ? [...ranks].reverse() : ranks) {
      const middles = new Map(row.map((one) => { const beside = near.get(one).filter((other) => (other.rank - one.rank) * step < 0).map((other) => place.get(other)); return [one, beside.length ? beside.reduce((a, b) => a + b) / beside.length : place.get(one)]; }));
      row.sort((a, b) => middles.get(a) - middles.get(b));
      note();
    }
  }
}

const middle = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

/** Where a line from the middle of a box to a point leaves the box. */
function edgeOf(box, to) {
  const [dx, dy] = [to.x - box.x, to.y - box.y];
  if ((!box.shape && !box.isGroup) || (!dx && !dy)) return { x: box.x, y: box.y };
  const [w, h] = [box.width / 2, box.height / 2];
  const share = box.shape === 'diamond' ? 1 / (Math.abs(dx) / w + Math.abs(dy) / h)
    : box.shape === 'circle' ? w / Math.hypot(dx, dy) : Math.min(w / (Math.abs(dx) || 1e-9), h / (Math.abs(dy) || 1e-9));
  return { x: box.x + dx * share, y: box.y + dy * share };
}

function linked(edge, points) {
  const line = [edgeOf(points[0], points[1]), ...points.slice(1, -1), edgeOf(points.at(-1), points.at(-2))].map(({ x, y }) => [x, y]);
  const shapes = [{ kind: 'line', points: line, isDashed: edge.isDashed, isThick: edge.isThick }];
  if (edge.head) shapes.push(...head(line.at(-2), line.at(-1), edge.head));
  if (edge.isBoth) shapes.push(...head(line[1], line[0]));
  return shapes;
}

function loop(box) {
  const [x, y] = [box.x + box.width / 2, box.y];
  const line = [[x, y - 8], [x + 22, y - 12], [x + 22, y + 12], [x, y + 8]];
  return [{ kind: 'line', points: line }, ...head(line[2], line[3])];
}

/** The end of a link: an arrow, a cross or a circle. */
function head([fromX, fromY], [x, y], kind = '>') {
  const angle = Math.atan2(y - fromY, x - fromX);
  const at = (turn, length = 10) => [x - length * Math.cos(angle + turn), y - length * Math.sin(angle + turn)];
  const [cx, cy] = at(0, 5);
  if (kind === 'o') return [{ kind: 'circle', x: cx, y: cy, width: 10, height: 10 }];
  if (kind === 'x') return [4, -4].map((by) => ({ kind: 'line', points: [[cx - 4, cy - by], [cx + 4, cy + by]] }));
  return [{ kind: 'head', points: [[x, y], at(0.4), at(-0.4)] }];
}

// --- sequence diagrams

const MESSAGE = /^(.+?)\s*(<<)?(--?)(>>|>|x|\))\s*[+-]?\s*((?:(?!--?[>x)])[^:])+?)\s*:\s*(.*)$/;
const FRAMES = /^(loop|alt|opt|par|critical|break|rect)\b\s*(.*)$/;

function sequence(all) {
  const actors = new Map();
  const actor = (id, lines) => {
    if (!actors.has(id)) actors.set(id, { lines: linesOf(id) });
    if (lines) actors.get(id).lines = lines;
    if (actors.size > MAX_NODES / 5) throw new Unsupported('too many participants');
    return id;
  };
  let count = 0;
  const isNumbered = all.includes('autonumber');
  const steps = all.flatMap((line) => {
    const named = /^(?:participant|actor)\s+(.+?)(?:\s+as\s+(.+))?$/.exec(line);
    if (named) { actor(named[1], named[2] ? linesOf(named[2]) : null); return []; }
    if (/^(autonumber|activate|deactivate)\b/.test(line)) return [];
    const note = /^note\s+(over|left of|right of)\s+([^:]+):\s*(.*)$/i.exec(line);
    if (note) return [{ note: note[1].toLowerCase(), of: note[2].split(',').map((one) => actor(one.trim())), lines: linesOf(note[3]) }];
    const frame = FRAMES.exec(line);
    if (frame) return [{ frame: frame[1] === 'rect' ? '' : frame[1], lines: frame[1] === 'rect' ? [] : linesOf(frame[2]) }];
    const other = /^(else|and|option)\b\s*(.*)$/.exec(line);
    if (other) return [{ other: true, lines: linesOf(other[2]) }];
    if (line === 'end') return [{ end: true }];
    const said = MESSAGE.exec(line);
    if (!said) throw new Unsupported(line);
    const text = isNumbered ? `${(count += 1)}. ${said[6]}` : said[6];
    return [{ from: actor(said[1].trim()), to: actor(said[5].trim()), isBoth: Boolean(said[2]), isDashed: said[3] === '--', head: said[4] === '>' ? null : said[4], lines: linesOf(text) }];
  });
  if (!actors.size || steps.length > MAX_EDGES) throw new Unsupported('size');
  return drawn(actors, steps);
}

function drawn(actors, steps) {
  const ids = [...actors.keys()];
  const gaps = ids.map(() => 60); // between an actor and the next one
  for (const { from, to, lines } of steps) if (from !== undefined) {
    const [a, b] = [ids.indexOf(from), ids.indexOf(to)].sort((x, y) => x - y);
    const wanted = sizeOf(lines).width + 40;
    for (let at = a; at < Math.max(b, a + 1); at += 1) gaps[at] = Math.max(gaps[at], wanted / Math.max(b - a, 1));
  }
  let x = 0;
  let before = null;
  for (const [index, one] of [...actors.values()].entries()) {
    one.width = sizeOf(one.lines).width + 2 * PAD;
    x += before ? Math.max(gaps[index - 1], (before.width + one.width) / 2 + GAP) : one.width / 2;
    one.x = x;
    before = one;
  }
  const top = Math.max(...[...actors.values()].map((one) => one.lines.length * LINE)) + PAD;
  const own = steps.filter((step) => step.from !== undefined && step.from === step.to).map((step) => actors.get(step.from).x + 44 + sizeOf(step.lines).width);
  const [right, shapes, texts, open] = [Math.max(x + before.width / 2, ...own), [], [], []];
  let y = top + GAP;
  for (const step of steps) {
    const height = step.lines?.length * LINE;
    if (step.frame !== undefined) {
      open.push({ y, depth: open.length });
      texts.push(...written([[step.frame, ...step.lines].filter(Boolean).join(' · ')], 8 + 6 * open.length, y + LINE / 2 + 2, 'start'));
      y += LINE + PAD;
    } else if (step.other) {
      if (!open.length) throw new Unsupported('else');
      shapes.push({ kind: 'line', points: [[6 * open.length, y], [right - 6 * open.length, y]], isDashed: true });
      texts.push(...written([step.lines.join(' ')], 8 + 6 * open.length, y + LINE / 2 + 2, 'start'));
      y += LINE + PAD;
    } else if (step.end) {
      const frame = open.pop();
      if (!frame) throw new Unsupported('end');
      const inset = 6 * frame.depth;
      shapes.push({ kind: 'frame', x: right / 2, y: (frame.y + y) / 2, width: right - 2 * inset, height: y - frame.y });
      y += PAD;
    } else if (step.note) {
      const places = step.of.map((id) => actors.get(id).x);
      const [low, high] = [Math.min(...places), Math.max(...places)];
      const width = Math.max(sizeOf(step.lines).width + PAD, step.of.length > 1 ? high - low + 40 : 0);
      const at = (low + high) / 2 + { over: 0, 'left of': -width / 2 - 8, 'right of': width / 2 + 8 }[step.note];
      texts.push({ kind: 'note', x: at, y: y + height / 2 + 4, width, height: height + 8 }, ...written(step.lines, at, y + height / 2 + 4));
      y += height + PAD + 8;
    } else {
      const [a, b] = [actors.get(step.from).x, actors.get(step.to).x];
      const isOwn = a === b;
      texts.push(...written(step.lines, isOwn ? a + 30 : (a + b) / 2, y + height / 2, isOwn ? 'start' : 'label'));
      y += height + 6;
      const line = isOwn ? [[a, y], [a + 26, y], [a + 26, y + 16], [a, y + 16]] : [[a, y], [b, y]];
      shapes.push({ kind: 'line', points: line, isDashed: step.isDashed });
      if (step.head) shapes.push(...head(line.at(-2), line.at(-1), step.head === 'x' ? 'x' : '>'));
      if (step.isBoth) shapes.push(...head(line[1], line[0]));
      y += PAD + (isOwn ? 18 : 4);
    }
  }
  if (open.length) throw new Unsupported('a frame is open');
  const lifelines = [...actors.values()].map((one) => ({ kind: 'line', points: [[one.x, top], [one.x, y]], isDashed: true, isFaint: true }));
  const heads = [...actors.values()].flatMap((one) => [{ kind: 'box', x: one.x, y: top / 2, width: one.width, height: top }, ...written(one.lines, one.x, top / 2)]);
  return drawing([...lifelines, ...shapes, ...heads, ...texts]);
}

// --- both

/** The shapes, moved so that they begin at a margin, and the size of all. */
function drawing(shapes) {
  const [xs, ys] = [[], []];
  for (const one of shapes) {
    for (const [x, y] of one.points ?? []) { xs.push(x); ys.push(y); }
    if (one.points) continue;
    const half = one.text === undefined ? [one.width / 2, one.height / 2] : [widthOf(one.text) / 2, LINE / 2];
    xs.push(one.kind === 'start' ? one.x : one.x - half[0], one.kind === 'start' ? one.x + 2 * half[0] : one.x + half[0]);
    ys.push(one.y - half[1], one.y + half[1]);
  }
  const [left, top] = [Math.min(...xs) - PAD, Math.min(...ys) - PAD];
  const round = (number) => Math.round(number * 10) / 10;
  const moved = shapes.map((one) => (one.points ? { ...one, points: one.points.map(([x, y]) => [round(x - left), round(y - top)]) } : { ...one, x: round(one.x - left), y: round(one.y - top) }));
  return { width: round(Math.max(...xs) + PAD - left), height: round(Math.max(...ys) + PAD - top), shapes: moved };
}

/** The drawing of a Mermaid text; raises if it is no diagram that this file knows. */
export function diagram(source) {
  const [first, ...rest] = statements(source.replace(/\r\n?/g, '\n'));
  const flow = /^(?:graph|flowchart)(?:\s+(TB|TD|BT|LR|RL))?\s*;?\s*(.*)$/.exec(first ?? '');
  if (flow) return flowchart([flow[2], ...rest].filter(Boolean), flow[1] ?? 'TB');
  if (first === 'sequenceDiagram') return sequence(rest);
  if (/^stateDiagram(-v2)?$/.test(first ?? '')) return states(rest);
  throw new Unsupported(first);
}
