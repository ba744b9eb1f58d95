import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { fetchDocument, type Document } from "../src/sender/documents.js";
import { readPublication } from "../src/sender/publication.js";
import { utf8 } from "../src/bytes.js";
import { DeliveryError, FormatError } from "../src/errors.js";

const LINES = utf8("one\ntwo\nthree\n");

function documentOf(data: Uint8Array): Document {
  return { data, signature: "", refreshAt: 0 };
}

test("no more of a dictionary is unpacked than the policy allows", async () => {
  const campaign = documentOf(utf8("{}"));
  const bomb = new Uint8Array(1 << 24).fill(97);
  const read = async (data: Uint8Array, most: number): Promise<number | undefined> =>
    (await readPublication({ campaign, dictionary: documentOf(gzipSync(data)) }, most)).dictionary
      ?.length;
  expect(await read(LINES, LINES.length)).toBe(LINES.length);
  await expect(read(LINES, LINES.length - 1)).rejects.toThrow(FormatError);
  expect((await readPublication({ campaign, dictionary: documentOf(LINES) }, LINES.length)).dictionary).toEqual(LINES);
  await expect(read(bomb, 1 << 20)).rejects.toThrow(/1048576/);
});

test("an answer that says that it is too long is not fetched, and one that does not say so only as far", async () => {
  for (const tells of [true, false]) {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          pulled += 1;
          controller.enqueue(new Uint8Array(1 << 10));
        },
      },
      { highWaterMark: 0 },
    );
    const headers = tells ? { "Content-Length": String(1 << 30) } : undefined;
    const answer = new Response(body, headers && { headers });
    await expect(fetchDocument(() => Promise.resolve(answer), "https://a.example/", 4 << 10, 0)).rejects.toThrow(DeliveryError);
    expect(pulled).toBe(tells ? 0 : 5);
  }
});
