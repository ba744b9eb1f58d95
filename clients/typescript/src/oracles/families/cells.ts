/** Reports of one cell, or of a window of cells: cells are items, signs of a Hadamard matrix, or affine buckets. */

import { FormatError } from "../../errors.js";
import { spendingThreshold } from "../../maths/thresholds.js";
import { affine, primeOf } from "../affine.js";
import { built, integer, overItems, spendingOne, type Family, type Given } from "../given.js";
import { hadamard } from "../hadamard.js";
import { interval } from "../interval.js";
import { mechanism, type Mechanism } from "../mechanism.js";

const overSigns = (blocks: (given: Given) => bigint) => (given: Given): Mechanism =>
  built(given, hadamard(BigInt(given.domain ?? 0), blocks(given)), spendingOne(given.epsilon));

export const FAMILY: Family = {
  grr: (given) => overItems(given, spendingOne(given.epsilon)),
  he: overSigns(() => 1n),
  hr: overSigns(() => 1n),
  rhr: overSigns(blocksOf),
  blh: buckets,
  olh: buckets,
  ocms: buckets,
  "ocms-mse": buckets,
  "ocms-l2": buckets,
  "ocms-round": buckets,
  ais: windows,
};

function blocksOf(given: Given): bigint {
  const [bits, most] = [integer(given, "b"), (given.domain ?? 2).toString(2).length];
  if (!(bits >= 1n && bits <= BigInt(most))) throw new FormatError(`b is ${String(bits)}, must be in 1..${String(most)}`);
  return 1n << (bits - 1n);
}

function buckets(given: Given): Mechanism {
  return built(given, affine(primeOf(given.domain), integer(given, "B")), spendingOne(given.epsilon));
}

function windows(given: Given): Mechanism {
  const [prime, size] = [primeOf(given.domain), integer(given, "s")];
  const keep = spendingThreshold(given.epsilon, prime, size);
  return mechanism(given.domain, affine(prime, prime), interval(prime, size, keep));
}
