// A line diff: the lines of each text that the other lacks (longest common subsequence).

const MAX_CELLS = 400_000; // of the table; larger inputs are compared as sets of lines

export function differences(left, right) {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let end = 0;
  while (end < left.length - start && end < right.length - start && left.at(-1 - end) === right.at(-1 - end)) end += 1;
  const a = left.slice(start, left.length - end);
  const b = right.slice(start, right.length - end);
  const found = a.length * b.length > MAX_CELLS ? asSets(a, b) : common(a, b);
  return found.map((set) => new Set([...set].map((index) => index + start)));
}

function asSets(a, b) {
  const [inA, inB] = [new Set(a), new Set(b)];
  const missing = (all, other) => new Set(all.map((line, index) => (other.has(line) ? -1 : index)).filter((index) => index >= 0));
  return [missing(a, inB), missing(b, inA)];
}

function common(a, b) {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) for (let j = b.length - 1; j >= 0; j -= 1) {
    table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  }
  const [onlyA, onlyB] = [new Set(), new Set()];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) { i += 1; j += 1; }
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) { onlyA.add(i); i += 1; }
    else { onlyB.add(j); j += 1; }
  }
  for (; i < a.length; i += 1) onlyA.add(i);
  for (; j < b.length; j += 1) onlyB.add(j);
  return [onlyA, onlyB];
}
