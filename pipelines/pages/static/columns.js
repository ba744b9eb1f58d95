// Numbers by window, one band for each series: kept and rejected reports; numbers that do not add up are red.
import { cut, scale, sheet, shown, svg } from "./svg.js";
import { FOOT, timeAxis, told } from "./time.js";

const BAND = 66;
const HIGH = 40;

/** Draw rows with band, begin, end, kept, rejected and wrong; each band has its own scale. */
export function columns(rows, width, { name }) {
  const bands = [...new Set(rows.map((row) => row.band))];
  const ends = [Math.min(...rows.map((row) => row.begin)), Math.max(...rows.map((row) => row.end))];
  const x = scale(...ends, 4, width - 4);
  const picture = sheet(width, BAND * bands.length + FOOT, name);
  picture.append(...timeAxis(x, ends, 18, BAND * bands.length));
  bands.forEach((band, number) => {
    const mine = rows.filter((row) => row.band === band);
    const most = Math.max(1, ...mine.map((row) => row.kept + row.rejected));
    const foot = BAND * (number + 1);
    picture.append(svg("text", { x: 4, y: foot - HIGH - 7, class: "name" }, cut(`${band}, up to ${shown(most)}`, width - 8)));
    picture.append(svg("path", { class: "line", d: `M4 ${foot}H${width - 4}` }));
    for (const row of mine) {
      const room = x(row.end) - x(row.begin);
      const wide = Math.max(room - 1, 1);
      const left = x(row.begin);
      const kept = (HIGH * row.kept) / most;
      const rejected = (HIGH * row.rejected) / most;
      const says = `${told(row.begin, row.end)}, ${band}: ${shown(row.kept)} kept, ${shown(row.rejected)} rejected`;
      picture.append(
        svg(
          "g",
          { class: `mark column ${row.wrong ? "wrong" : ""}`, "data-says": says },
          svg("rect", { class: "hit", x: left, y: foot - HIGH, width: wide, height: HIGH }),
          svg("rect", { class: "kept", x: left, y: foot - kept, width: wide, height: kept }),
          svg("rect", { class: "rejected", x: left, y: foot - kept - rejected, width: wide, height: rejected }),
          ...(row.wrong ? [svg("text", { class: "alarm", x: left + wide / 2, y: foot - HIGH - 7, "text-anchor": "middle" }, "✖")] : []),
        ),
      );
    }
  });
  return picture;
}
