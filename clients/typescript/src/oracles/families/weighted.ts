/** Reports of a row of a weighted design. */

import { FormatError } from "../../errors.js";
import { designNamed, weightedDesign } from "../design.js";
import { identity } from "../encoders.js";
import { built, type Family, type Given } from "../given.js";
import type { Mechanism } from "../mechanism.js";

export { parseDesigns } from "../design.js";

export const FAMILY: Family = { wss: weighted };

function weighted(given: Given): Mechanism {
  const { design: name, s } = given.parameters;
  const design = designNamed(typeof name === "string" ? name : "", given.designs);
  if (design.width < (given.domain ?? 0)) {
    throw new FormatError(`the design has ${String(design.width)} cells, must have one for each item`);
  }
  if (s !== undefined && s !== design.size) throw new FormatError(`s must be ${String(design.size)}, or left out`);
  return built(given, identity(BigInt(design.width)), () => weightedDesign(given.epsilon, design));
}
