/** Reports of windows on a line, for the mean of numbers; items are points, the highest first. */

import { FormatError } from "../../errors.js";
import { spendingThreshold } from "../../maths/thresholds.js";
import { integer, type Family } from "../given.js";
import { interval } from "../interval.js";
import { mechanism } from "../mechanism.js";

const MOST_POINTS = 256n;

export const FAMILY: Family = {
  line: (given) => {
    const [points, spare] = [integer(given, "m"), integer(given, "b")];
    if (given.domain !== 2) throw new FormatError("mechanism line needs a dictionary of one item");
    if (!(points >= 2n && points <= MOST_POINTS)) throw new FormatError(`m must be in 2..${String(MOST_POINTS)}`);
    if (!(spare >= 0n && spare <= points)) throw new FormatError(`b must be in 0..${String(points)}`);
    const [cells, size] = [points + 2n * spare, 2n * spare + 1n];
    const windows = interval(cells, size, spendingThreshold(given.epsilon, cells, size));
    return mechanism(Number(points), { cells, fields: [], cell: (item) => cells - 1n - item }, windows);
  },
};
