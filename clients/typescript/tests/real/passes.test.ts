/** The client, a real issuer and a real collector: passes are signed, shown and taken. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { Sender } from "../../src/sender/sender.js";
import { MemoryStore } from "../../src/store/memory-store.js";
import { Newest } from "../../src/trust/newest.js";
import { Policy } from "../../src/trust/policy.js";

const ROOT = new URL("../../../../", import.meta.url).pathname;
const PYTHON = process.env.HUSHCOUNT_PYTHON ?? `${ROOT}.venv/bin/python`;

if (!existsSync(PYTHON)) console.warn(`SKIPPED: ${PYTHON} is missing: nothing was asked of a real issuer`);

test.skipIf(!existsSync(PYTHON))("accounts get passes, and others wait", { timeout: 120_000 }, async () => {
  const env = { ...process.env, PYTHONPATH: ROOT };
  const served = spawn(PYTHON, [`${ROOT}clients/typescript/tests/real/serve.py`, "passes"], { env, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: served.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<any> => JSON.parse((await lines.next()).value ?? "");
  const { url, policy, issuer, authorizations } = await next();
  const deliver = async (authorization: string): Promise<unknown> => {
    const store = new MemoryStore();
    const given = { issuer: { address: issuer as string, authorization: () => authorization }, delaySeconds: 0, strict: true };
    const sender = new Sender({ site: url, policy: Policy.parse(policy, new Newest(store)), store, ...given });
    await sender.report("word-1");
    return sender.deliver(true);
  };
  for (const authorization of authorizations) {
    expect(await deliver(authorization)).toMatchObject({ sent: 2, waiting: 0, dropped: {} });
  }
  expect(await deliver("Bearer nobody")).toMatchObject({ sent: 0, waiting: 2, dropped: {} });
  served.stdin.end();
  expect(await next()).toEqual({ reports: 2, discovery: 2, clients: 2 });
});
