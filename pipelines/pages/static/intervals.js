// Rows with a value and its interval: bars from zero, or points beside a line of no change.
import { FOOT, axis, cut, namesWidth, scale, sheet, shown, svg } from "./svg.js";

const ROW = 26;
const ENDS = ["value", "low", "high", "lowAll", "highAll"];

/** Draw rows into a picture of this width. */
export function intervals(rows, width, { unit, axis: title, signed, name }) {
  const seen = rows.flatMap((row) => ENDS.map((end) => row[end]).filter((value) => typeof value === "number"));
  const least = Math.min(0, ...seen);
  const most = Math.max(0, ...seen) || 1;
  const left = namesWidth(rows, width) + 12;
  const right = width - 24;
  const x = scale(least, most, left, right);
  const foot = ROW * rows.length + 6;
  const picture = sheet(width, foot + FOOT, name);
  picture.append(...axis(x, [least, most], [left, right], foot, unit, title));
  rows.forEach((row, place) => {
    const y = ROW * place + ROW / 2 + 3;
    const marked = svg("g", { class: `mark ${row.strong ? "strong" : "weak"} ${signed ? side(row.value) : ""}` });
    marked.append(
      svg("title", {}, said(row, unit)),
      svg("text", { x: left - 8, y: y + 4, "text-anchor": "end", class: "name" }, cut(row.name, left - 10)),
    );
    if (!signed) {
      const [from, to] = [x(Math.min(0, row.value)), x(Math.max(0, row.value))];
      marked.append(svg("rect", { x: from, y: y - 8, width: to - from, height: 16 }));
    }
    if (typeof row.lowAll === "number") marked.append(whisker(x(row.lowAll), x(row.highAll), y, 3, "thin"));
    if (typeof row.low === "number") marked.append(whisker(x(row.low), x(row.high), y, 5, "thick"));
    if (signed) marked.append(point(x(row.value), y, row));
    picture.append(marked);
  });
  picture.append(svg("path", { class: "zero", d: `M${x(0)} 0V${foot}` }));
  return picture;
}

function whisker(low, high, y, cap, kind) {
  const d = `M${low} ${y}H${high}M${low} ${y - cap}v${2 * cap}M${high} ${y - cap}v${2 * cap}`;
  return svg("path", { class: kind, d });
}

// Show a rise or a fall by the shape too, not only by colour.
function point(x, y, row) {
  if (!row.strong) return svg("circle", { cx: x, cy: y, r: 4 });
  const d = row.value > 0 ? `M${x} ${y - 6}l6 11h-12Z` : `M${x} ${y + 6}l6 -11h-12Z`;
  return svg("path", { class: "point", d });
}

function side(value) {
  return value > 0 ? "up" : "down";
}

function said(row, unit) {
  const numbers = [row.value, row.low, row.high].map((value) => (typeof value === "number" ? shown(value, unit) : "?"));
  return `${row.name}: ${numbers[0]}, from ${numbers[1]} to ${numbers[2]}`;
}
