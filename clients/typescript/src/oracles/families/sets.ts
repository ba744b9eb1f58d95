/** Reports of several items: a subset, or one bit for each item. */

import { spendingFlip, spendingThreshold, WORD_VALUES } from "../../maths/thresholds.js";
import { integer, overItems, type Family } from "../given.js";
import { subset } from "../subset.js";
import { symmetric, unary } from "../unary.js";

const HALF = WORD_VALUES / 2n;

export const FAMILY: Family = {
  sue: (given) => overItems(given, (cells) => symmetric(given.epsilon, cells)),
  oue: (given) => overItems(given, (cells) => unary(cells, HALF, spendingFlip(given.epsilon, HALF))),
  ss: (given) =>
    overItems(given, (cells) => {
      const size = integer(given, "s");
      return subset(cells, size, spendingThreshold(given.epsilon, cells, size));
    }),
};
