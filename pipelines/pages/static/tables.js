// A chart is drawn from its table, so that both always say the same.
import { html } from "./svg.js";

/** Return the rows of a table as objects: the row itself, its name, and its attributes, as numbers where possible. */
export function rowsOf(table) {
  return [...table.tBodies[0].rows].map((row) => {
    const facts = { row, name: row.cells[0].textContent };
    for (const [key, value] of Object.entries(row.dataset)) {
      facts[key] = value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
    }
    return facts;
  });
}

/** Write rows of texts into a table; the first cell of a row is its head. */
export function fill(table, heads, rows) {
  table.tHead.replaceChildren(html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head))));
  table.tBodies[0].replaceChildren(
    ...rows.map(([first, ...others]) =>
      html("tr", {}, html("th", { scope: "row" }, html("bdi", {}, first)), ...others.map((one) => html("td", {}, one))),
    ),
  );
}
