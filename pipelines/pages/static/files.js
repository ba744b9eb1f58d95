// Files to take along: a table as CSV, a picture as SVG and as PNG.
import { html } from "./svg.js";

const SHARP = 2;

/** Add buttons below a section's table and picture. */
export function files(section) {
  const table = section.querySelector("table");
  const name = section.querySelector("h2, h3").textContent.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80);
  const button = (kind, made) => {
    const one = html("button", { type: "button" }, kind.toUpperCase());
    one.addEventListener("click", async () => save(`${name}.${kind}`, await made()));
    return one;
  };
  const bar = html("p", { class: "files", role: "group", "aria-label": `Files of ${name}` });
  bar.append(button("csv", () => new Blob([csv(table)], { type: "text/csv" })));
  const figure = section.querySelector("figure");
  if (figure !== null) {
    const picture = () => figure.querySelector(".picture svg");
    bar.append(button("svg", () => new Blob([alone(picture())], { type: "image/svg+xml" })), button("png", () => png(picture())));
  }
  section.append(bar);
}

function save(name, blob) {
  const link = html("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Return a table's rows; numbers lose their commas, and names cannot become formulas of a spreadsheet. */
export function csv(table) {
  const field = (cell) => {
    const text = cell.textContent;
    const value = cell.scope === "row" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /^-?[\d,]+(\.\d+)?$/.test(value) ? value.replaceAll(",", "") : /[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
  };
  return [...table.rows].map((row) => `${[...row.cells].map(field).join(",")}\r\n`).join("");
}

/** Return a picture as a file that has its style within. */
function alone(picture) {
  const copy = picture.cloneNode(true);
  const style = document.createElementNS(copy.namespaceURI, "style");
  style.textContent = document.querySelector("style").textContent;
  const paper = document.createElementNS(copy.namespaceURI, "rect");
  for (const [key, value] of Object.entries({ class: "paper", width: "100%", height: "100%" })) paper.setAttribute(key, value);
  copy.prepend(style, paper);
  return new XMLSerializer().serializeToString(copy);
}

async function png(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(alone(picture))}`;
  await image.decode();
  const canvas = html("canvas", { width: SHARP * picture.clientWidth, height: SHARP * picture.clientHeight });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
