// Values over time: a row for each value, and a dot for each window in which it was seen, sized by its count.
import { ends } from "./columns.js";
import { cut, namesWidth, scale, sheet, shown, svg } from "./svg.js";

const ROW = 24;

/** Draw rows with points, a JSON list of [place, count] with count null if unknown; `windows` names the places. */
export function dots(rows, width, { name, windows }) {
  const named = JSON.parse(windows);
  const left = namesWidth(rows, width) + 16;
  const x = scale(0, Math.max(named.length - 1, 1), left + 10, width - 14);
  const series = rows.map((row) => JSON.parse(row.points));
  const most = Math.max(1, ...series.flat().map(([, count]) => count ?? 0));
  const picture = sheet(width, ROW * rows.length + 26, name);
  rows.forEach((row, number) => {
    const y = ROW * number + ROW / 2;
    const marked = svg("g", { class: "mark" });
    marked.append(svg("text", { class: "name", x: left - 8, y: y + 4, "text-anchor": "end" }, cut(row.name, left - 10)));
    const [first, last] = [series[number][0], series[number].at(-1)];
    marked.append(svg("path", { class: "grid", d: `M${x(first[0])} ${y}H${x(last[0])}` }));
    for (const [place, count] of series[number]) {
      const radius = count === null ? 3 : 3 + 7 * Math.sqrt(Math.max(count, 0) / most);
      const said = `${row.name}, ${named[place]}: ${count === null ? "seen" : shown(count)}`;
      const kind = count === null ? "dot unknown" : "dot";
      marked.append(svg("circle", { class: kind, cx: x(place), cy: y, r: radius }, svg("title", {}, said)));
    }
    picture.append(marked);
  });
  picture.append(...ends(named, width - left, ROW * rows.length + 18).map((text) => moved(text, left)));
  return picture;
}

function moved(text, by) {
  text.setAttribute("x", Number(text.getAttribute("x")) + by);
  return text;
}
