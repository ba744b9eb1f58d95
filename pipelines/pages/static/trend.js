// The figure of all items over windows: search, range, lines of the chosen items, their values, and their table.
import { sourceOf } from "./data.js";
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
export async function trend(figure, table, renew) {
  const part = (name) => figure.querySelector(`.${name}`);
  const { values: [grain], keep: keepGrain } = stateOf(figure, "by");
  const by = part("by");
  if ([...(by?.options ?? [])].some((one) => one.value === grain)) by.value = grain;
  const data = await sourceOf(document.getElementById(`${figure.dataset.source}-${by?.value ?? "window"}`));
  by?.addEventListener("change", () => {
    keepGrain([by.value]);
    // The same name means another end in another grain.
    range.clear();
    renew();
  });
  const { values: items, keep: keepItems } = stateOf(figure, "items");
  const wanted = items.map((item) => data.items.indexOf(item)).filter((place) => place >= 0);
  let chosen = (items.length > 0 ? wanted : data.first).slice(0, MOST).map((place, colour) => ({ place, colour }));
  let width = 0;

  const range = ranges(figure, data, () => draw());
  const zoom = (...ends) => {
    const [first, last] = ends.sort((one, other) => one - other);
    range.set(data.times.findIndex(([begin]) => begin === first), data.times.findLastIndex(([begin]) => begin === last));
  };
  const whole = () => {
    range.clear();
    return draw();
  };
  part("whole").addEventListener("click", () => {
    whole();
    // The button is hidden now.
    part("from").focus();
  });
  let turn = 0;
  const draw = async () => {
    const { from, to } = range.get();
    part("whole").hidden = from === 0 && to === data.windows.length - 1;
    const within = ({ place }) => from <= place && place <= to;
    const mine = (turn += 1);
    const points = await Promise.all(chosen.map((one) => data.points(one.place)));
    // Somebody chose again while an item was fetched.
    if (mine !== turn) return;
    const all = chosen.map((one, number) => ({ ...one, name: data.items[one.place], points: points[number].filter(within) }));
    const drawn = all.filter(({ points }) => points.length > 0);
    // A window in which an epoch ends has two results, and one place on the axis.
    const times = data.times.slice(from, to + 1).filter(([begin], place, all) => begin !== all[place + 1]?.[0]);
    const values = chips(all);
    const pick = (time, item) => {
      const here = ({ points }) => points.findLast((one) => one.begin === times[time][0]);
      const pointed = item < 0 ? "" : `, ${drawn[item].name}: ${value(here(drawn[item]))}`;
      const partial = data.partial.some((place) => data.times[place][0] === times[time][0]) ? ", partial" : "";
      part("readout").textContent = `${told(...times[time])}${partial}${pointed}`;
      all.forEach((one, number) => (values[number].textContent = value(here(one))));
    };
    const name = `${figure.dataset.name}: ${all.map((one) => cut(one.name, CHIP)).join(", ")}`;
    const picture = drawn.length > 0 ? lines(drawn, times, width, { name, pick, zoom, whole }) : html("p", { class: "nothing" }, "No item is drawn.");
    const held = part("picture").contains(document.activeElement);
    part("picture").replaceChildren(picture);
    if (held) picture.focus();
    if (drawn.length > 0) pick(times.length - 1, -1);
    else part("readout").textContent = "";
    fill(table, HEADS, all.flatMap((one) => one.points.map((point) => [one.name, ...cells(point)])));
  };
  const change = async (to, says) => {
    const before = chosen;
    chosen = to;
    // A page that loads itself again reads the items from its address.
    keepItems(chosen.map((one) => data.items[one.place]));
    const failed = (error) => {
      chosen = before;
      return `This cannot be drawn: ${error.message}`;
    };
    part("said").textContent = await draw().then(() => says, failed);
  };
  const chips = (all) => {
    const values = all.map(() => html("span", { class: "value" }));
    part("chosen").replaceChildren(
      ...all.map((one, number) => {
        const button = html("button", { type: "button", "aria-label": `Remove ${cut(one.name, 4 * CHIP)}` }, "×");
        button.addEventListener("click", async () => {
          await change(chosen.filter((other) => other.place !== one.place), `${cut(one.name, CHIP)} is removed`);
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
    return draw();
  };
}

/** Fill the lists of first and last windows; return functions that get, set and clear the places of the range. */
function ranges(figure, { windows, labels }, draw) {
  const keeps = {};
  const [from, to] = ["from", "to"].map((end) => {
    const { values: [name], keep } = stateOf(figure, end);
    keeps[end] = keep;
    const list = figure.querySelector(`select.${end}`);
    list.replaceChildren(...windows.map((window, place) => html("option", { value: window }, labels[place])));
    list.selectedIndex = end === "from" ? 0 : windows.length - 1;
    if (windows.includes(name)) list.value = name;
    list.addEventListener("change", () => {
      keep([list.value]);
      draw();
    });
    return list;
  });
  const get = () => {
    const ends = [from.selectedIndex, to.selectedIndex].sort((one, other) => one - other);
    return { from: ends[0], to: ends[1] };
  };
  const set = (first, last) => {
    [from.selectedIndex, to.selectedIndex] = [first, last];
    keeps.from([from.value]);
    keeps.to([to.value]);
    draw();
  };
  // Without ends in the address, the range grows with the results.
  const clear = () => {
    [from.selectedIndex, to.selectedIndex] = [0, windows.length - 1];
    keeps.from([]);
    keeps.to([]);
  };
  return { get, set, clear };
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
