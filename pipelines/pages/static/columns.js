// Numbers by window, one band for each series: kept and rejected reports; numbers that do not add up are red.
import { cut, scale, sheet, shown, svg } from "./svg.js";

const BAND = 74;
const HIGH = 44;
const WIDEST = 64;

/** Draw rows with band, place, kept, rejected and wrong; each band has its own scale. */
export function columns(rows, width, { name }) {
  const bands = [...new Set(rows.map((row) => row.band))];
  const places = [...new Set(rows.map((row) => row.place))].sort();
  const x = scale(0, places.length, 4, Math.min(width - 4, 4 + places.length * (WIDEST + 2)));
  const wide = Math.min(Math.max((width - 8) / places.length - 2, 1), WIDEST);
  const picture = sheet(width, BAND * bands.length + 22, name);
  bands.forEach((band, number) => {
    const mine = rows.filter((row) => row.band === band);
    const most = Math.max(1, ...mine.map((row) => row.kept + row.rejected));
    const foot = BAND * number + BAND - 8;
    const top = foot - HIGH;
    const head = `${band}, up to ${shown(most)}`;
    picture.append(svg("text", { x: 4, y: top - 7, class: "name" }, cut(head, width - 8)));
    picture.append(svg("path", { class: "line", d: `M4 ${foot}H${width - 4}` }));
    for (const row of mine) {
      const left = x(places.indexOf(row.place));
      const kept = (HIGH * row.kept) / most;
      const rejected = (HIGH * row.rejected) / most;
      picture.append(
        svg(
          "g",
          { class: `mark column ${row.wrong ? "wrong" : ""}` },
          svg("title", {}, `${row.label}, ${band}: ${shown(row.kept)} kept, ${shown(row.rejected)} rejected`),
          svg("rect", { class: "kept", x: left, y: foot - kept, width: wide, height: kept }),
          svg("rect", { class: "rejected", x: left, y: foot - kept - rejected, width: wide, height: rejected }),
          ...(row.wrong ? [svg("text", { class: "alarm", x: left + wide / 2, y: top - 7, "text-anchor": "middle" }, "✖")] : []),
        ),
      );
    }
  });
  const labels = new Map(rows.map((row) => [row.place, row.label]));
  picture.append(...ends(places.map((place) => labels.get(place)), Math.max(x(places.length), 200), BAND * bands.length + 14));
  return picture;
}

/** Return labels below a picture: the first and the last name. */
export function ends(names, width, y) {
  const first = svg("text", { class: "quiet", x: 4, y }, names[0]);
  if (names.length < 2) return [first];
  return [first, svg("text", { class: "quiet", x: width - 4, y, "text-anchor": "end" }, names.at(-1))];
}
