// The figure of all items over windows: search, range, lines of the chosen items, their values, and their table.
import { series, unpacked } from "./data.js";
import { lines } from "./lines.js";
import { searchBox } from "./search.js";
import { stateOf } from "./state.js";
import { cut, html, shown } from "./svg.js";
import { fill } from "./tables.js";
import { told } from "./time.js";

const MOST = 6;
const CHIP = 260;
const HEADS = ["item", "window", "reports", "count", "low", "high", "share", "state"];

/** Prepare a figure; return the function that draws it with a width. */
export async function trend(figure, table) {
  const data = await unpacked(document.getElementById(figure.dataset.source));
  const part = (name) => figure.querySelector(`.${name}`);
  const { values: items, keep: keepItems } = stateOf(figure, "items");
  const wanted = items.map((item) => data.items.indexOf(item)).filter((place) => place >= 0);
  let chosen = (items.length > 0 ? wanted : data.first).slice(0, MOST).map((place, colour) => ({ place, colour }));
  let width = 0;

  const range = ranges(figure, data.windows, () => draw());
  const draw = () => {
    const { from, to } = range();
    const within = ({ place }) => from <= place && place <= to;
    const all = chosen.map((one) => ({ ...one, name: data.items[one.place], points: series(data, one.place).filter(within) }));
    const drawn = all.filter(({ points }) => points.length > 0);
    // A window in which an epoch ends has two results, and one place on the axis.
    const times = data.times.slice(from, to + 1).filter(([begin], place, all) => begin !== all[place + 1]?.[0]);
    const values = chips(all);
    const pick = (time, item) => {
      const here = ({ points }) => points.findLast((one) => one.begin === times[time][0]);
      const pointed = item < 0 ? "" : `, ${drawn[item].name}: ${value(here(drawn[item]))}`;
      part("readout").textContent = `${told(...times[time])}${pointed}`;
      all.forEach((one, number) => (values[number].textContent = value(here(one))));
    };
    const name = `${figure.dataset.name}: ${all.map((one) => cut(one.name, CHIP)).join(", ")}`;
    const picture = drawn.length > 0 ? lines(drawn, times, width, { name, pick }) : html("p", { class: "nothing" }, "No item is drawn.");
    part("picture").replaceChildren(picture);
    if (drawn.length > 0) pick(times.length - 1, -1);
    else part("readout").textContent = "";
    fill(table, HEADS, all.flatMap((one) => one.points.map((point) => [one.name, ...cells(point)])));
  };
  const change = (to, says) => {
    chosen = to;
    keepItems(chosen.map((one) => data.items[one.place]));
    draw();
    part("said").textContent = says;
  };
  const chips = (all) => {
    const values = all.map(() => html("span", { class: "value" }));
    part("chosen").replaceChildren(
      ...all.map((one, number) => {
        const button = html("button", { type: "button", "aria-label": `Remove ${cut(one.name, 4 * CHIP)}` }, "×");
        button.addEventListener("click", () => {
          change(chosen.filter((other) => other.place !== one.place), `${cut(one.name, CHIP)} is removed`);
          part("search").focus();
        });
        return html("li", { class: `s${one.colour}` }, html("bdi", {}, cut(one.name, CHIP)), " ", values[number], " ", button);
      }),
    );
    return values;
  };
  const choose = (place) => {
    if (chosen.some((one) => one.place === place)) return;
    const rest = chosen.length === MOST ? chosen.slice(1) : chosen;
    const free = Array.from({ length: MOST }, (_, colour) => colour);
    const colour = free.find((number) => !rest.some((one) => one.colour === number));
    change([...rest, { place, colour }], `${cut(data.items[place], CHIP)} is drawn`);
  };
  searchBox(data, { box: part("search"), list: part("matches"), said: part("said") }, choose);
  return (wide) => {
    width = wide;
    draw();
  };
}

/** Fill the lists of first and last windows; return the function that returns the places of the range. */
function ranges(figure, windows, draw) {
  const [from, to] = ["from", "to"].map((end) => {
    const { values: [name], keep } = stateOf(figure, end);
    const list = figure.querySelector(`select.${end}`);
    list.append(...windows.map((window) => html("option", {}, window)));
    list.selectedIndex = end === "from" ? 0 : windows.length - 1;
    if (windows.includes(name)) list.value = name;
    list.addEventListener("change", () => {
      keep([list.value]);
      draw();
    });
    return list;
  });
  return () => {
    const ends = [from.selectedIndex, to.selectedIndex].sort((one, other) => one - other);
    return { from: ends[0], to: ends[1] };
  };
}

function value(point) {
  if (point === undefined) return "not counted";
  const [share, low, high] = ["count", "low", "high"].map((end) => shown(point.share[end], "share"));
  return `${share} (${low.replace("%", "")} to ${high})${point.found ? "" : ", not detected"}`;
}

function cells({ window, reports, users, share, found }) {
  const numbers = [reports, users.count, users.low, users.high].map((number) => shown(number));
  return [window, ...numbers, shown(share.count, "share"), found ? "detected" : "not detected"];
}
