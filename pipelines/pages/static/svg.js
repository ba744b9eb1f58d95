// Elements of pictures, scales, ticks and numbers.

const SVG = "http://www.w3.org/2000/svg";
export const FOOT = 40;

/** Return an SVG element. Children that are strings become text, so that no name of an item is ever markup. */
export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Return an HTML element, in the same way. */
export function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Return a picture of this size, with a name for screen readers; arrow keys move within it. */
export function sheet(width, height, name) {
  return svg("svg", { role: "img", tabindex: 0, "aria-label": name, viewBox: `0 0 ${width} ${height}`, width, height });
}

/** Return the function that maps least..most to from..to. */
export function scale(least, most, from, to) {
  const unit = (to - from) / (most - least || 1);
  return (value) => Math.round((from + (value - least) * unit) * 10) / 10;
}

/** Return at most number + 1 multiples of 1, 2 or 5 times a power of ten from least to most. */
export function ticks(least, most, number) {
  const between = (most - least || 1) / Math.max(number, 1);
  const power = 10 ** Math.floor(Math.log10(between));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= between * 0.999999) * power;
  const found = [];
  for (let place = Math.ceil(least / step - 1e-9); place * step <= most + step * 1e-9; place += 1) {
    found.push(Number((place * step).toPrecision(12)));
  }
  return found;
}

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const SHARE = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 2 });

/** Return a number in its unit: users, or a share. */
export function shown(value, unit) {
  if (unit === "share") return SHARE.format(value);
  return Math.abs(value) < 10 && value % 1 ? FINE.format(value) : WHOLE.format(value);
}

const PEN = document.createElement("canvas").getContext("2d");

/** Return the width of a text in a picture, in pixels. */
export function widthOf(text) {
  PEN.font = "600 12px system-ui, sans-serif";
  return PEN.measureText(text).width;
}

/** Cut a text to a width in pixels, between characters and never within one. */
export function cut(text, width) {
  if (text.length < 500 && widthOf(text) <= width) return text;
  const letters = [...text].slice(0, 200);
  let most = letters.length;
  while (most > 1 && widthOf(`${letters.slice(0, most).join("")}…`) > width) most -= 1;
  return `${letters.slice(0, most).join("")}…`;
}

/** Return the width for the names of rows: the width of the longest name, but at most a part of the picture. */
export function namesWidth(rows, width) {
  const most = Math.round(width * 0.42);
  return Math.min(most, Math.ceil(Math.max(...rows.map((row) => widthOf(row.name.slice(0, 200))))));
}

/** Return the axis below a picture: grid lines through the picture, numbers, and a title. */
export function axis(x, [least, most], [left, right], foot, unit, title) {
  const room = Math.max(2, Math.floor((right - left) / 90));
  // One number alone is no scale; of a third more intervals at least two numbers are in the picture.
  const found = ticks(least, most, room);
  const marks = found.length > 1 ? found : ticks(least, most, room + 1);
  const parts = [svg("path", { class: "line", d: `M${left} ${foot}H${right}` })];
  for (const value of marks) {
    parts.push(svg("path", { class: "grid", d: `M${x(value)} 0V${foot}` }));
    parts.push(svg("text", { x: x(value), y: foot + 16, "text-anchor": "middle" }, shown(value, unit)));
  }
  parts.push(svg("text", { class: "quiet", x: (left + right) / 2, y: foot + 33, "text-anchor": "middle" }, title));
  return parts;
}
