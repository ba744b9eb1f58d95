// Time to scale, in the zone of the page: ticks at days, months or times of day, and names of windows.
import { svg, widthOf } from "./svg.js";

export const FOOT = 38;
const [HOUR, DAY] = [3600, 86400];
const STEPS = [1, 5, 15, 30].map((minutes) => 60 * minutes).concat([1, 3, 6, 12].map((hours) => HOUR * hours), [1, 2, 3, 7, 14].map((days) => DAY * days));
const MONTHS = [1, 3, 6, 12, 60];
const MONDAY = 4 * DAY;
const ROOM = 88;

const ZONE = known(document.body.dataset.zone) ?? "UTC";
const format = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
const PARTS = Object.fromEntries(["year", "month", "day", "hour", "minute", "second"].map((part) => [part, "numeric"]));
const CLOCK_OF_ZONE = format({ ...PARTS, timeZone: ZONE, hourCycle: "h23" });
const DATE = format({ weekday: "short", day: "numeric", month: "short" });
const FULL = format({ weekday: "short", day: "numeric", month: "short", year: "numeric" });
const MONTH = format({ month: "short", year: "numeric" });
const CLOCK = format({ hour: "2-digit", minute: "2-digit" });
const written = (form, seconds) => form.format(1000 * seconds).replace(",", "");

/** Return a zone, or undefined if the browser has no rules for it. */
function known(zone) {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone: zone }).resolvedOptions().timeZone && zone;
  } catch {
    return undefined;
  }
}

/** Return whether a day begins at a time: at midnight, or later if the clock skips midnight. */
function startsDay(seconds) {
  return Math.floor(local(seconds) / DAY) !== Math.floor(local(seconds - 1) / DAY);
}

/** Return a time as the zone's clock shows it, as if that were UTC. */
function local(seconds) {
  if (ZONE === "UTC") return seconds;
  const at = Object.fromEntries(CLOCK_OF_ZONE.formatToParts(1000 * seconds).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(at.year, at.month - 1, at.day, at.hour, at.minute, at.second) / 1000;
}

/** Return the time at which the zone's clock shows a time. */
function atLocal(shown) {
  const near = 2 * shown - local(shown);
  return near + shown - local(near);
}

/** Return ticks from begin to end, at most `number`: the seconds and the text of each. */
function ticks(begin, end, number) {
  const step = STEPS.find((one) => (end - begin) / one <= number);
  const found = [];
  if (step === undefined) {
    const every = MONTHS.find((one) => (end - begin) / (30.5 * DAY * one) <= number) ?? 12 * Math.ceil((end - begin) / (366 * DAY * number));
    const first = new Date(1000 * begin);
    for (let month = -(first.getUTCMonth() % every); ; month += every) {
      const seconds = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + month) / 1000;
      if (seconds > end) return found;
      if (seconds >= begin) found.push([seconds, written(MONTH, seconds)]);
    }
  }
  const offset = step % (7 * DAY) ? 0 : MONDAY;
  for (let at = offset + Math.ceil((begin - offset) / step) * step; at <= end; at += step) {
    found.push([at, written(at % DAY ? CLOCK : DATE, at)]);
  }
  return found;
}

/** Return an axis below a picture, from x(ends[0]) to x(ends[1]): grid lines from `top` to `foot`, ticks, and the zone. */
export function timeAxis(x, ends, top, foot) {
  const [begin, end] = ends;
  const [left, right] = [x(begin), x(end)];
  const parts = [svg("path", { class: "line", d: `M${left} ${foot}H${right}` })];
  let free = left;
  for (const [shown, text] of ticks(local(begin), local(end), Math.max(1, Math.floor((right - left) / ROOM)))) {
    const at = x(atLocal(shown));
    const anchor = at < left + ROOM / 2 ? "start" : at > right - ROOM / 2 ? "end" : "middle";
    parts.push(svg("path", { class: "grid", d: `M${at} ${top}V${foot + 4}` }));
    // A text at an end is not in the middle of its tick, so it may reach the next one.
    const width = widthOf(text);
    const starts = at - { start: 0, middle: width / 2, end: width }[anchor];
    if (starts < free) continue;
    free = starts + width + 4;
    parts.push(svg("text", { x: at, y: foot + 17, "text-anchor": anchor }, text));
  }
  const zone = `${startsDay(begin) && startsDay(end) ? "days" : "times of day"} in ${ZONE}`;
  parts.push(svg("text", { class: "quiet", x: right, y: foot + 33, "text-anchor": "end" }, zone));
  return parts;
}

/** Return a window's name with its day: Thu 3 Dec 2026, or Thu 3 Dec 2026 14:00 to 15:00 UTC. */
export function told(from, to) {
  const day = written(FULL, local(from));
  if (!startsDay(from) || !startsDay(to)) return `${day} ${written(CLOCK, local(from))} to ${written(CLOCK, local(to))} ${ZONE}`;
  const last = written(FULL, local(to - 1));
  return last === day ? day : `${day} to ${last}`;
}
