// Draw each figure when it first becomes visible, and again when its width changes.
import { columns } from "./columns.js";
import { dots } from "./dots.js";
import { drill } from "./drill.js";
import { intervals } from "./intervals.js";
import { parts } from "./parts.js";
import { files } from "./files.js";
import { readable } from "./pointing.js";
import { html } from "./svg.js";
import { renewed } from "./renewal.js";
import { rowsOf, sortable } from "./tables.js";
import { choices, tabs } from "./tabs.js";
import { trend } from "./trend.js";

const PAPER = 680;
const CHARTS = { intervals, columns, dots, parts };
const prepared = new Map();
const widths = new Map();

/** Prepare a figure once; return the function that draws it with a width. */
async function prepare(figure) {
  const table = document.getElementById(figure.dataset.table);
  if (figure.dataset.chart === "trend") return trend(figure, table, () => renew(figure));
  const rows = rowsOf(table);
  const most = Number(figure.dataset.most);
  let width = 0;
  const draw = () => {
    const options = { ...figure.dataset, signed: "signed" in figure.dataset, most };
    const picture = CHARTS[figure.dataset.chart](level().filter(isDrawn), width, options);
    figure.querySelector(".picture").replaceChildren(picture);
    readable(picture, figure.querySelector(".readout"));
  };
  const level = drill(figure, rows, draw);
  return (wide) => {
    width = wide;
    if (rows.length > 0) draw();
  };
}

/** Prepare and draw a figure anew, without what listens in it; the focus stays where it was. */
function renew(figure) {
  const focus = document.activeElement.id;
  const fresh = figure.cloneNode(true);
  figure.replaceWith(fresh);
  document.getElementById(focus)?.focus();
  return drawAll(fresh.parentElement);
}

/** Rows of a chart have data; other rows are only in the table. */
function isDrawn({ row }) {
  return Object.keys(row.dataset).length > 0;
}

async function drawn(figure, width) {
  if (!prepared.has(figure)) prepared.set(figure, prepare(figure));
  const draw = await prepared.get(figure);
  if (widths.get(figure) === width) return;
  widths.set(figure, width);
  await draw(width);
}

/** Draw the visible figures in a part of the page. */
async function drawAll(part) {
  for (const figure of part.querySelectorAll("figure[data-chart]")) {
    const width = Math.floor(figure.querySelector(".picture").clientWidth);
    if (width > 0) await drawn(figure, width).catch((error) => failed(figure, error));
  }
  performance.mark("drawn");
}

function unfold(open) {
  for (const block of document.querySelectorAll("details.table, details.guarantee")) block.toggleAttribute("open", open);
}

function failed(figure, error) {
  figure.querySelector(".picture").replaceChildren(html("p", { role: "alert" }, `This chart cannot be drawn: ${error}`));
}

unfold(false);
for (const table of document.querySelectorAll("table")) sortable(table);
for (const section of document.querySelectorAll("section:has(table)")) files(section);
for (const block of document.querySelectorAll(".choices")) choices(block, drawAll);
for (const list of document.querySelectorAll("ul.tabs")) tabs(list, drawAll);
await drawAll(document.body);
new ResizeObserver(() => drawAll(document.body)).observe(document.body);

addEventListener("beforeprint", () => {
  unfold(true);
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    if (!widths.has(figure)) drawn(figure, PAPER).catch((error) => failed(figure, error));
  }
});
addEventListener("afterprint", () => unfold(false));
document.documentElement.dataset.ready = "yes";
renewed();
// Prepare the figures that are not visible yet, so that they can be drawn at once for a printer.
const idle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 200));
idle(() => {
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    if (!prepared.has(figure)) prepared.set(figure, prepare(figure));
  }
});
