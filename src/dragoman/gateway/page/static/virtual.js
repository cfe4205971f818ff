// A virtual list: only the rows in view are rendered. All rows have the same height.
import { html, useState, useLayoutEffect, useRef } from './ui.js';

const MARGIN = 8; // extra rows rendered beyond each edge, for fast scrolling

/**
 * `count` rows of `height` pixels, rendered by `row(index)`. `onEnd` is called near the end.
 * `scroller` is a ref that receives the scrolling element.
 */
export function VirtualRows({ count, height, row, onEnd, scroller, role = 'list', label, rowCount, before, ...rest }) {
  const own = useRef(null);
  const ref = scroller ?? own;
  const [view, setView] = useState({ first: 0, last: 40 });
  const measure = () => {
    const box = ref.current;
    if (!box) return;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - MARGIN);
    const last = Math.ceil((box.scrollTop + box.clientHeight) / height) + MARGIN;
    setView((old) => (old.first === first && old.last === last ? old : { first, last }));
  };
  useLayoutEffect(() => {
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, [height, count]);
  const last = Math.min(count, view.last);
  useLayoutEffect(() => { if (onEnd && view.last + 20 >= count) onEnd(); }, [view.last, count]);
  const rows = [];
  for (let index = view.first; index < last; index += 1) rows.push(row(index));
  return html`<div class="virtual" ref=${ref} onScroll=${measure} role=${role} aria-label=${label} aria-rowcount=${rowCount} tabindex="-1" ...${rest}>
    ${before}
    <div class="virtual-space" role=${role === 'table' ? 'rowgroup' : 'presentation'} style=${{ height: `${count * height}px` }}>${rows}</div>
  </div>`;
}

/** Scrolls a row into view. */
export function reveal(box, index, height) {
  if (!box) return;
  const top = index * height;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
}
