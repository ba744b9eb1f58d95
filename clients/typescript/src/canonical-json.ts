import { FormatError } from "./errors.js";
import { utf8 } from "./bytes.js";
export function canonicalJson(data: unknown): Uint8Array {
  return utf8(text(data));
}
function text(data: unknown): string {
  if (Array.isArray(data)) return `[${data.map(text).join(",")}]`;
  if (typeof data === "object" && data !== null) {
    const keys = Object.keys(data).sort();
    return `{${keys.map((k) => `${JSON.stringify(k)}:${text((data as Record<string, unknown>)[k])}`).join(",")}}`;
  }
  if (typeof data === "number" && !Number.isFinite(data)) throw new FormatError("x");
  return JSON.stringify(data);
}
