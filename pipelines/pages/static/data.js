// Unpack the estimates of all items in all windows, which pipelines/pages/series.py packed.

export const MISSING = -(2 ** 31);

/** Return the content of a block of the page: its head, and count, below, above and found of each item in each window. */
export async function unpacked(block) {
  const letters = atob(block.textContent.trim());
  const packed = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place += 1) packed[place] = letters.charCodeAt(place);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const cells = head.items.length * head.windows.length;
  const planes = ["count", "below", "above"].map((_, number) => joined(bytes, 4 + length + 4 * cells * number, cells));
  const bits = bytes.subarray(4 + length + 12 * cells);
  const found = (cell) => ((bits[cell >> 3] >> (cell & 7)) & 1) === 1;
  const lowered = head.items.map((item) => item.toLowerCase());
  return { ...head, lowered, found, count: planes[0], below: planes[1], above: planes[2] };
}

/** Return the numbers of a plane, which has the lowest bytes of all numbers first; the sign is the lowest bit. */
function joined(bytes, begin, cells) {
  const numbers = new Int32Array(cells);
  for (let cell = 0; cell < cells; cell += 1) {
    const at = begin + cell;
    const folded =
      bytes[at] | (bytes[at + cells] << 8) | (bytes[at + 2 * cells] << 16) | (bytes[at + 3 * cells] << 24);
    numbers[cell] = (folded >>> 1) ^ -(folded & 1);
  }
  return numbers;
}

/** Return a point for each window that counted an item: place, begin, end, reports, users, shares within 0..1, found. */
export function series(data, item) {
  const points = [];
  data.windows.forEach((window, place) => {
    const cell = item * data.windows.length + place;
    if (data.count[cell] === MISSING) return;
    const [step, reports] = [data.steps[place], data.reports[place]];
    const [begin, end] = data.times[place];
    const count = data.count[cell] * step;
    const users = { count, low: count - data.below[cell] * step, high: count + data.above[cell] * step };
    const share = Object.fromEntries(Object.entries(users).map(([key, value]) => [key, Math.min(Math.max(value / reports, 0), 1)]));
    points.push({ place, window, begin, end, reports, users, share, found: data.found(cell) });
  });
  return points;
}
