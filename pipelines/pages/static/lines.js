// Shares of chosen items over time: for each item a line with gaps where a window is missing, and a band of intervals.
import { stepped } from "./pointing.js";
import { scale, sheet, shown, svg, ticks } from "./svg.js";
import { FOOT, timeAxis } from "./time.js";

const LEFT = 52;
const RIGHT = 14;
const TOP = 10;
const FEW = 2;
const DOTS = 40;
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4"];
const TIMES = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
const ITEMS = { ArrowDown: 1, ArrowUp: -1 };

/**
 * Draw lines, each {name, colour, points}, over windows, each [begin, end], the oldest first. A reader points at a window
 * and the line nearest to the pointer, or moves to them by arrow keys; then `pick` is called with their places. To drag
 * across windows calls `zoom` with where the first and the last begin, as do the keys [ and ]; Escape calls `whole`.
 */
export function lines(drawn, times, width, { name, pick, zoom, whole }) {
  const begins = times.map(([begin]) => begin);
  const high = width < 500 ? 200 : 300;
  const most = Math.max(...drawn.flatMap(({ points }) => points.map((one) => one.share.high)), 1e-9);
  const [[only, end]] = times;
  const ends = times.length > 1 ? [only, begins.at(-1)] : [2 * only - end, end];
  const x = scale(...ends, LEFT, width - RIGHT);
  const y = scale(0, most, high, TOP);
  const picture = sheet(width, high + FOOT, name);
  for (const value of ticks(0, most, 5)) {
    picture.append(svg("path", { class: "grid", d: `M${LEFT} ${y(value)}H${width - RIGHT}` }));
    picture.append(svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value, "share")));
  }
  picture.append(...timeAxis(x, ends, TOP, high));
  const at = (one, end) => `${x(one.begin)} ${y(one.share[end])}`;
  const groups = drawn.map(({ colour, points }) => {
    const group = svg("g", { class: `mark series s${colour}` });
    const dash = { "stroke-dasharray": DASHES[colour % DASHES.length] };
    for (const part of unbroken(points)) {
      const upper = part.map((one) => at(one, "high"));
      const lower = part.map((one) => at(one, "low")).reverse();
      group.append(svg("path", { class: "band", d: `M${[...upper, ...lower].join("L")}Z` }));
      group.append(svg("path", { class: "curve", d: `M${part.map((one) => at(one, "count")).join("L")}`, ...dash }));
      for (const one of points.length <= DOTS || part.length === 1 ? part : part.filter(({ found }) => !found)) {
        group.append(svg("circle", { class: one.found ? "" : "unseen", cx: x(one.begin), cy: y(one.share.count), r: 3 }));
      }
    }
    return group;
  });
  picture.classList.toggle("few", drawn.length <= FEW);
  const hair = svg("path", { class: "hair", d: "" });
  picture.append(hair, ...groups);
  let [time, item] = [begins.length - 1, -1];
  const move = (to, near) => {
    [time, item] = [to, near];
    hair.setAttribute("d", `M${x(begins[time])} ${TOP}V${high}`);
    groups.forEach((group, number) => group.classList.toggle("near", number === item));
    pick(time, item);
  };
  const shade = svg("rect", { class: "zoom", y: TOP, height: high - TOP, width: 0 });
  picture.append(shade);
  let from = -1;
  const place = (event) => {
    const box = picture.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top].map((one) => (one * width) / box.width);
  };
  const drag = () => {
    const ends = [from < 0 ? time : from, time].map((one) => x(begins[one]));
    shade.setAttribute("x", String(Math.min(...ends)));
    shade.setAttribute("width", String(Math.abs(ends[1] - ends[0])));
  };
  const point = (event) => {
    const [left, top] = place(event);
    const to = nearest(begins, (begin) => Math.abs(x(begin) - left));
    const far = ({ points }) => Math.min(...points.filter((one) => one.begin === begins[to]).map((one) => Math.abs(y(one.share.count) - top)));
    move(to, nearest(drawn, far));
    drag();
  };
  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    point(event);
    from = time;
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointerup", () => {
    const first = from;
    from = -1;
    drag();
    if (first >= 0 && first !== time) zoom(begins[first], begins[time]);
  });
  // A finger that scrolls the page takes nothing.
  picture.addEventListener("pointercancel", () => {
    from = -1;
    drag();
  });
  picture.addEventListener("keydown", (event) => {
    if (event.key === "[") zoom(begins[time], begins.at(-1));
    if (event.key === "]") zoom(begins[0], begins[time]);
    if (event.key === "Escape") whole();
    const to = stepped(event.key, time, begins.length, TIMES);
    const near = stepped(event.key, item, drawn.length, ITEMS);
    if (to === undefined && near === undefined) return;
    event.preventDefault();
    move(to ?? time, near ?? Math.max(item, 0));
  });
  return picture;
}

/** Return the parts of a line between which no window is missing. */
function unbroken(points) {
  const parts = [];
  points.forEach((one, place) => {
    if (place === 0 || points[place - 1].end < one.begin) parts.push([]);
    parts.at(-1).push(one);
  });
  return parts;
}

function nearest(list, far) {
  const all = list.map(far);
  return all.indexOf(Math.min(...all));
}
