// The figure of all items over windows: search, chosen items, their lines, and a table of the chosen items.
import { series, unpacked } from "./data.js";
import { lines } from "./lines.js";
import { searchBox } from "./search.js";
import { cut, html, shown } from "./svg.js";
import { fill } from "./tables.js";

const MOST = 6;
const CHIP = 260;

/** Prepare a figure; return the function that draws it with a width. */
export async function trend(figure, table) {
  const data = await unpacked(document.getElementById(figure.dataset.source));
  const part = (name) => figure.querySelector(`.${name}`);
  const names = data.windows;
  let chosen = data.first.map((place, colour) => ({ place, colour }));
  let width = 0;

  const pick = (place) => {
    const said = chosen.map((one) => {
      const here = series(data, one.place).find((point) => point.place === place);
      return `${cut(data.items[one.place], CHIP)} ${here ? shown(here.count / here.reports, "share") : "not counted"}`;
    });
    part("readout").textContent = `${names[place]}: ${said.join(", ")}`;
  };
  const draw = () => {
    const drawn = chosen.map((one) => ({ ...one, name: data.items[one.place], points: series(data, one.place) }));
    const some = drawn.filter(({ points }) => points.length > 0);
    const name = `${figure.dataset.name}: ${drawn.map((one) => cut(one.name, CHIP)).join(", ") || "no item is chosen"}`;
    part("picture").replaceChildren(lines(some, names, width, { name, pick }));
    const heads = ["item", "window", "reports", "count", "low", "high", "share"];
    const rows = drawn.flatMap((one) => one.points.map((point) => [one.name, ...cells(point)]));
    fill(table, heads, rows);
    chips();
  };
  const cells = ({ window, reports, count, low, high }) => [
    window, ...[reports, count, low, high].map((value) => shown(value)), shown(count / reports, "share"),
  ];
  const chips = () => {
    part("chosen").replaceChildren(
      ...chosen.map((one) => {
        const name = data.items[one.place];
        const button = html("button", { type: "button", "aria-label": `Remove ${cut(name, 4 * CHIP)}`, class: `s${one.colour}` });
        button.append(html("bdi", {}, cut(name, CHIP)), " ×");
        button.addEventListener("click", () => {
          chosen = chosen.filter((other) => other !== one);
          draw();
          part("search").focus();
        });
        return html("li", {}, button);
      }),
    );
  };
  const choose = (place) => {
    if (chosen.some((one) => one.place === place)) return;
    if (chosen.length === MOST) chosen = chosen.slice(1);
    const free = Array.from({ length: MOST }, (_, colour) => colour);
    const colour = free.find((number) => !chosen.some((one) => one.colour === number));
    chosen = [...chosen, { place, colour }];
    draw();
    part("said").textContent = `${cut(data.items[place], CHIP)} is drawn`;
  };
  searchBox(data, { box: part("search"), list: part("matches"), said: part("said") }, choose);
  return (wide) => {
    width = wide;
    draw();
  };
}
