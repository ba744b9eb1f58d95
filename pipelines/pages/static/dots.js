// Values over time: a row for each value, and a dot for each window in which it was seen, sized by its count.
import { cut, namesWidth, scale, sheet, shown, svg } from "./svg.js";
import { FOOT, timeAxis, told } from "./time.js";

const ROW = 24;

/** Draw rows with points, a JSON list of [place, count] with count null if unknown; `times` has the places' windows. */
export function dots(all, width, { name, times: text, most: number }) {
  const rows = all.slice(0, number);
  const times = JSON.parse(text);
  const left = namesWidth(rows, width) + 16;
  const ends = [times[0][0], times.at(-1)[1]];
  const x = scale(...ends, left + 10, width - 14);
  const series = rows.map((row) => JSON.parse(row.points));
  const most = Math.max(1, ...series.flat().map(([, count]) => count ?? 0));
  const picture = sheet(width, ROW * rows.length + FOOT, name);
  const at = (place) => x((times[place][0] + times[place][1]) / 2);
  picture.append(...timeAxis(x, ends, 0, ROW * rows.length));
  rows.forEach((row, number) => {
    const y = ROW * number + ROW / 2;
    const marked = svg("g", { class: "mark" });
    marked.append(svg("text", { class: "name", x: left - 8, y: y + 4, "text-anchor": "end" }, cut(row.name, left - 10)));
    const [first, last] = [series[number][0], series[number].at(-1)];
    marked.append(svg("path", { class: "grid", d: `M${at(first[0])} ${y}H${at(last[0])}` }));
    for (const [place, count] of series[number]) {
      const radius = count === null ? 3 : 3 + 7 * Math.sqrt(Math.max(count, 0) / most);
      const says = `${row.name}, ${told(...times[place])}: ${count === null ? "found, without a detected count" : shown(count)}`;
      marked.append(svg("circle", { class: count === null ? "dot unknown" : "dot", cx: at(place), cy: y, r: radius, "data-says": says }));
    }
    picture.append(marked);
  });
  return picture;
}
