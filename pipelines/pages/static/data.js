// Unpack the estimates of all items in all windows, which pipelines/pages/series.py packed.
import { look } from "./renewal.js";

export const MISSING = -(2 ** 31);

/**
 * Return what a figure draws from: names, windows and times, and `points`, which resolves to the points of an item. A
 * file holds all items. A served page holds the items that are drawn first, and fetches others in pieces.
 */
export async function sourceOf(block) {
  const held = await unpacked(fromText(block.textContent.trim()));
  const items = held.all ?? held.items;
  const pieces = new Map();
  const piece = (number) => {
    const made = pieces.get(number) ?? fetched(`${document.body.dataset.pieces}/${block.dataset.grain}/${number}`);
    pieces.set(number, made);
    // What failed is asked for again when somebody chooses the item again.
    made.catch(() => pieces.delete(number));
    return made;
  };
  const points = async (place) => {
    const at = held.all === undefined ? place : held.places.indexOf(place);
    if (at >= 0) return series(held, at);
    return series(await piece(Math.floor(place / held.piece)), place % held.piece);
  };
  const { windows, labels, partial, times } = held;
  const lowered = items.map((item) => item.toLowerCase());
  return { items, lowered, windows, labels, partial, times, first: held.places ?? held.first, points };
}

async function fetched(address) {
  const answer = await fetch(address);
  // The login has ended, or results of another version are there.
  if (answer.status === 401) location.reload();
  if (answer.status === 404) await look();
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return unpacked(new Uint8Array(await answer.arrayBuffer()));
}

function fromText(text) {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place += 1) packed[place] = letters.charCodeAt(place);
  return packed;
}

/** Return the content of a block: its head, and count, below, above and found of each item in each window. */
async function unpacked(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const cells = head.items.length * head.windows.length;
  const planes = ["count", "below", "above"].map((_, number) => joined(bytes, 4 + length + 4 * cells * number, cells));
  const bits = bytes.subarray(4 + length + 12 * cells);
  const found = (cell) => ((bits[cell >> 3] >> (cell & 7)) & 1) === 1;
  // A name has no mark, so an address keeps its meaning when a week has become whole.
  const labels = head.windows.map((window, place) => (head.partial.includes(place) ? `${window}, partial` : window));
  return { ...head, labels, found, count: planes[0], below: planes[1], above: planes[2] };
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
function series(data, item) {
  const points = [];
  data.labels.forEach((window, place) => {
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
