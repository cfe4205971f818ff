// A window on many rows of different heights: only the rows near the viewport are in the document.
// The others are left out as empty space of their height, as it was measured while they were shown.

const GAP = 14; // pixels between rows, as in the style sheet
const AHEAD = 2000; // rows are added within this many pixels beyond each edge of the viewport
const KEPT = 3500; // and removed beyond these
const AT_ONCE = 4; // rows added per frame, beyond those in view: more would delay a scroll frame
const STEP = 150; // pixels that are scrolled before the rows are chosen anew
const FOLLOWS = 80; // within this many pixels of the end, the end is followed as it moves

/**
 * The rows are elements with their id in `data-message`, children of the scrolling element's first
 * child. `draw` renders anew what `choose` gives, and then calls `drawn`.
 */
export class Nearby {
  constructor(draw) {
    this.draw = draw;
    this.heights = new Map(); // by id: measured, or guessed until then
    this.nodes = new Map(); // the rows in the document, by id
    this.watch = new ResizeObserver((sizes) => this.resized(sizes)); // after the layout of a frame, before its paint
    this.view = { top: 0, height: innerHeight };
    this.isAtEnd = true;
    this.anchor = null; // the first row in view, which must not move when rows above it change
    this.wanted = null; // a row that `reveal` was called for
    [this.seen, this.height, this.rest] = [0, innerHeight, 0]; // of the content, of the viewport, and below it, when last looked at
  }

  attach(box) {
    this.box = box;
    this.isAnchored = getComputedStyle(box).overflowAnchor === 'auto'; // by the browser; Safari doesn't
    this.watch.observe(box);
    this.watch.observe(box.firstElementChild);
  }

  detach() { this.watch.disconnect(); cancelAnimationFrame(this.again); this.nodes.clear(); }

  /**
   * The rows to render, and in place of the others `{ space, key }`, their height. The keys keep the
   * elements in their order: to move a focused one would scroll to it.
   */
  choose(rows, guess) {
    const tops = [];
    let total = 0;
    let anchorTop = null;
    for (const row of rows) {
      if (!this.heights.has(row.id)) this.heights.set(row.id, guess(row));
      if (row.id === this.anchor?.id) anchorTop = total;
      tops.push(total);
      total += this.heights.get(row.id) + GAP;
    }
    const top = this.isAtEnd ? total - this.view.height : anchorTop === null ? this.view.top : anchorTop - this.anchor.below;
    const near = this.near(rows, (index) => Math.max(0, top - tops[index] - this.heights.get(rows[index].id), tops[index] - top - this.view.height));
    const pieces = [];
    let from = null; // where the rows that are left out begin
    const leave = (end, key) => { if (from !== null) pieces.push({ space: end - from - GAP, key: from ? key : 'space-start' }); from = null; };
    rows.forEach((row, index) => {
      if (near.has(row.id)) { leave(tops[index], `space-before-${row.id}`); pieces.push(row); } else from ??= tops[index];
    });
    leave(total, 'space-end');
    return pieces;
  }

  /** The ids of the rows to render: those in view at once, more around them frame by frame. */
  near(rows, distance) {
    const near = new Set();
    const missing = [];
    const now = document.timeline.currentTime; // the same throughout a frame
    if (this.frame !== now) [this.frame, this.left] = [now, AT_ONCE];
    rows.forEach(({ id }, index) => {
      const far = distance(index);
      const node = this.nodes.get(id);
      if (!far || id === this.wanted?.id) { near.add(id); this.left -= node ? 0 : 1; }
      else if (node && (far < KEPT || isHeld(node))) near.add(id);
      else if (far < AHEAD) missing.push({ id, far });
    });
    missing.sort((one, other) => one.far - other.far);
    this.isPartial = missing.length > this.left;
    for (const { id } of missing.slice(0, Math.max(0, this.left))) { near.add(id); this.left -= 1; }
    return near;
  }

  /** To be called after each render. */
  drawn() {
    const nodes = new Map();
    for (const node of this.box.firstElementChild.children) if (node.dataset.message) nodes.set(node.dataset.message, node);
    for (const [id, node] of this.nodes) if (nodes.get(id) !== node) this.watch.unobserve(node);
    for (const [id, node] of nodes) if (this.nodes.get(id) !== node) this.watch.observe(node);
    this.nodes = nodes;
    const found = nodes.get(this.wanted?.id);
    if (found) {
      const { block } = this.wanted;
      this.wanted = null;
      found.focus({ preventScroll: true });
      found.scrollIntoView({ block });
      this.scrolled(); // before the event: the end must not be followed in this frame
    }
    if (this.isPartial) this.continue();
  }

  continue() {
    this.again ??= requestAnimationFrame(() => {
      this.again = null;
      if (this.frame === document.timeline.currentTime) this.continue(); // this frame has had its rows
      else this.draw();
    });
  }

  /** Focuses a row, scrolling to it as `scrollIntoView` does. */
  reveal(id, block = 'nearest') { this.wanted = { id, block }; this.draw(); }

  toEnd() {
    [this.isAtEnd, this.anchor, this.wanted, this.rest] = [true, null, null, 0];
    this.box.scrollTop = this.box.scrollHeight;
  }

  scrolled() {
    this.hold();
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    const wasAtEnd = this.isAtEnd;
    // At the end, what changed since is for `resized` to follow. Above it, what came may stand above what
    // is in view: compared with the height before, the place would be beyond the end.
    this.rest = (wasAtEnd ? Math.min(this.seen, scrollHeight) - this.height : scrollHeight - clientHeight) - scrollTop;
    this.isAtEnd = this.rest < FOLLOWS;
    this.mark();
    if (Math.abs(scrollTop - this.view.top) < STEP && wasAtEnd === this.isAtEnd) return;
    this.view = { top: scrollTop, height: clientHeight };
    this.draw();
  }

  resized(sizes) {
    for (const { target, borderBoxSize: [{ blockSize }] } of sizes) {
      if (target.dataset.message && target.isConnected) this.heights.set(target.dataset.message, blockSize);
    }
    this.hold();
    const { box } = this;
    const rest = box.scrollHeight - box.scrollTop - box.clientHeight;
    const wasAtEnd = this.isAtEnd;
    if (wasAtEnd && rest > this.rest + 1) this.toEnd(); // the end moved, and not what is above it
    else [this.rest, this.isAtEnd] = [rest, wasAtEnd || rest < FOLLOWS];
    [this.seen, this.height] = [box.scrollHeight, box.clientHeight];
    this.mark();
    if (wasAtEnd !== this.isAtEnd) this.draw();
  }

  /** Scrolls by as much as the first row in view has moved, where the browser won't: it never does at the top. */
  hold() {
    const node = this.nodes.get(this.anchor?.id);
    if (!node || (this.isAnchored && this.box.scrollTop > 0)) return;
    const moved = this.topOf(node) - this.anchor.top;
    if (Math.abs(moved) < 1) return;
    this.box.scrollTop += moved;
    this.anchor.top += moved;
    this.seen += moved; // it happened above what is in view
  }

  /** Remembers the first row in view and its place. */
  mark() {
    const { top } = this.box.getBoundingClientRect();
    this.anchor = null;
    for (const node of this.box.firstElementChild.children) {
      if (!node.dataset.message) continue;
      const place = node.getBoundingClientRect();
      if (place.bottom <= top) continue;
      if (place.top < top + this.box.clientHeight) this.anchor = { id: node.dataset.message, top: this.topOf(node), below: place.top - top };
      return;
    }
  }

  /** The place of a row in the content, wherever it is scrolled to. */
  topOf(node) { return node.getBoundingClientRect().top - this.box.getBoundingClientRect().top + this.box.scrollTop; }
}

/** Whether removing a row would lose the focus, a selection, or something that was opened or is played. */
function isHeld(node) {
  const selection = getSelection();
  return node.contains(document.activeElement)
    || node.querySelector('details[open], .editor, [data-held]')
    || (!selection.isCollapsed && selection.containsNode(node, true))
    || [...node.querySelectorAll('audio, video')].some((one) => !one.paused);
}
