// Tables: rows that charts are drawn from, columns to sort by, and rows that hold a text.
import { html } from "./svg.js";

const FEW = 10;

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
  sortable(table);
}

/** Let a reader sort a table by a column, and show only the rows that hold a text. */
export function sortable(table) {
  for (const head of table.tHead.rows[0]?.cells ?? []) {
    const button = html("button", { type: "button" }, ...head.childNodes);
    button.addEventListener("click", () => sort(table, head));
    head.replaceChildren(button);
  }
  const region = table.closest(".scroll");
  const before = region.previousElementSibling;
  const there = before?.classList.contains("filter");
  if (!there && table.tBodies[0].rows.length > FEW) {
    const box = html("input", { type: "search", autocomplete: "off" });
    box.addEventListener("input", () => filter(table, box.value));
    region.before(html("label", { class: "filter" }, "Rows with ", box));
  } else if (there) filter(table, before.querySelector("input").value);
}

function filter(table, text) {
  const wanted = text.trim().toLowerCase();
  for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}

function sort(table, head) {
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.cells[head.cellIndex].textContent]));
  const number = (row) => (texts.get(row) === "" ? -Infinity : Number(texts.get(row).replace(/[,%]/g, "")));
  const numbers = rows.every((row) => !Number.isNaN(number(row)));
  const by = numbers ? (one, other) => number(one) - number(other) || 0 : (one, other) => texts.get(one).localeCompare(texts.get(other));
  // Largest numbers come first, and the first names.
  const now = head.getAttribute("aria-sort");
  const sign = now === null ? (numbers ? -1 : 1) : now === "ascending" ? -1 : 1;
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  table.tBodies[0].append(...rows.sort((one, other) => sign * by(one, other)));
}
