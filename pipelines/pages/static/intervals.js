// Rows with a value and its interval: bars from zero, or points beside a line of no change.
import { FOOT, axis, cut, html, namesWidth, scale, sheet, shown, svg } from "./svg.js";

const ROW = 26;
const ENDS = ["value", "low", "high", "lowAll", "highAll"];

/** Draw the rows that are a finding, or that somebody named. */
export function intervals(all, width, { unit, axis: title, signed, name, most: number }) {
  const rows = all.filter((row) => row.strong || row.named).slice(0, number);
  if (rows.length === 0) return html("p", {}, "Nothing here is detected, so nothing is drawn.");
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
    const kind = `mark ${row.strong ? "strong" : "weak"} ${signed ? side(row.value) : ""}`;
    const marked = svg("g", { class: kind, "data-says": said(row, unit) });
    marked.append(
      svg("rect", { class: "hit", x: 0, y: y - ROW / 2, width, height: ROW }),
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
  const d = row.value > 0 ? `M${x} ${y - 6}l6 11h-12Z` : `M${x} ${y + 6}l6 -11h-12Z`;
  return svg("path", { class: "point", d });
}

function side(value) {
  return value > 0 ? "up" : "down";
}

function said(row, unit) {
  const ends = (low, high) => `${shown(low, unit)} to ${shown(high, unit)}`;
  const alone = typeof row.low === "number" ? ` (${ends(row.low, row.high)})` : "";
  const together = typeof row.lowAll === "number" ? `; for all rows together ${ends(row.lowAll, row.highAll)}` : "";
  return `${row.name}${row.strong ? "" : ", not detected"}: ${shown(row.value, unit)}${alone}${together}`;
}
