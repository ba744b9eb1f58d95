// A whole and its parts as one bar, such as a budget with its spent and its remaining part.
import { sheet, shown, svg } from "./svg.js";

/** Draw the value of each row as a part of the bar, and below it a line of text for each row. */
export function parts(rows, width, { name }) {
  const whole = rows.reduce((sum, row) => sum + row.value, 0) || 1;
  const picture = sheet(width, 40 + 22 * rows.length, name);
  let at = 4;
  rows.forEach((row, number) => {
    const wide = ((width - 8) * row.value) / whole;
    const marked = svg("g", { class: `mark part part-${number}`, "data-says": `${row.name}: ${shown(row.value)}` });
    marked.append(svg("rect", { x: at, y: 4, width: wide, height: 24 }));
    const y = 50 + 22 * number;
    marked.append(svg("rect", { x: 4, y: y - 10, width: 12, height: 12 }));
    marked.append(svg("text", { x: 24, y, class: "name" }, `${row.name}: ${shown(row.value)}`));
    picture.append(marked);
    at += wide;
  });
  return picture;
}
