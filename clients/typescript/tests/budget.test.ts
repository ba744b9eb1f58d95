import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Budget } from "../src/budget/budget.js";
import { charge, chargedOf, costOf, recordOf, UNCHARGED, type Charged } from "../src/budget/ledger.js";
import { costUnits, EPSILON_DIGITS, limitUnits, ofUnits } from "../src/budget/units.js";
import { BudgetSpent, FormatError, OptedOut, OverCap, UsageError } from "../src/errors.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { Asked, Stream } from "../src/trust/asked.js";
import { campaignOf } from "./fake-maker.js";
import { askedOf, vectors, type Entry } from "./vectors.js";

const NOON = Date.parse("2026-11-23T12:00:00Z");
const DAY = 86_400_000;
const UNLIMITED = { perDay: Infinity, lifetime: Infinity, whenSpent: "other" } as const;

/** Limits, charges in turn, and what Python's budget says of them. */
interface Case {
  readonly limits: { readonly per_day?: number; readonly lifetime?: number };
  readonly charges: readonly (readonly [campaign: string, stream: Stream, number: number])[];
  readonly telling: readonly number[];
  readonly epsilon: number;
  readonly delta: number;
  readonly words: readonly string[];
}
const CASES: readonly Case[] = JSON.parse(readFileSync(new URL("spent.json", import.meta.url), "utf8"));

const { accept, refuse } = vectors("budgets");

/** Charge in turn, and return what the last charge and the whole say. */
async function chargedInTurn({ per_day: perDay, lifetime, charges }: Entry, whenSpent: "other" | "nothing") {
  const store = new MemoryStore();
  const budget = new Budget(store, { perDay: perDay ?? Infinity, lifetime: lifetime ?? Infinity, whenSpent });
  const telling: number[] = [];
  for (const { campaign, stream, number, repeats = false, at } of charges) {
    const request = { campaign: askedOf(campaign), stream, number, repeats };
    telling.push(...(await budget.charge([request], Infinity, Date.parse(at))));
  }
  const charged = await store.change(["budget"], ([found]) => ({ result: chargedOf(found?.[0]?.[1]) }));
  return { telling, charged };
}

describe("vectors", () => {
  test.each(accept.map((entry, place) => [place, entry.rule, entry] as const))("accept %i: %s", async (_, rule, entry) => {
    if (rule === "cost") {
      const { epsilon, delta, lasting } = costOf(askedOf(entry.campaign), entry.stream);
      expect([String(epsilon), String(delta), lasting]).toEqual([entry.epsilon, entry.delta, entry.lasting]);
    } else if (rule === "limit") {
      expect(String(limitUnits(entry.value ?? Infinity, EPSILON_DIGITS))).toBe(entry.billionths);
    } else {
      const { telling, charged } = await chargedInTurn(entry, "other");
      const lines = Object.values(charged.lines);
      const total = (of: "epsilon" | "delta") => String(lines.reduce((sum, line) => sum + line[of], 0n));
      expect(telling).toEqual(entry.charges.map((each: Entry) => each.telling));
      expect([String(charged.days.at(-1)?.[1]), total("epsilon"), total("delta")]).toEqual([entry.today, entry.epsilon, entry.delta]);
    }
  });

  test.each(refuse.map((entry, place) => [place, entry.reason, entry] as const))("refuse %i: %s", async (_, reason, entry) => {
    if (reason === "limit_out_of_range") {
      expect(() => new Budget(new MemoryStore(), { lifetime: entry.value })).toThrow(UsageError);
    } else {
      // Each charge fits but the last.
      const { charges } = entry;
      await chargedInTurn({ ...entry, charges: charges.slice(0, -1) }, "nothing");
      await expect(chargedInTurn(entry, "nothing")).rejects.toThrow(BudgetSpent);
    }
  });
});

describe("units", () => {
  test("a cost is that of the decimal number, rounded up, and a limit rounded down", () => {
    expect(costUnits(0.1, EPSILON_DIGITS)).toBe(100_000_000n);
    expect(costUnits(0.1, EPSILON_DIGITS, 3)).toBe(300_000_000n);
    expect(costUnits(1e-10, EPSILON_DIGITS)).toBe(1n);
    expect(costUnits(3.0000000001, EPSILON_DIGITS, 3)).toBe(9_000_000_001n);
    expect(limitUnits(1.9999999999, EPSILON_DIGITS)).toBe(1_999_999_999n);
    expect(limitUnits(Infinity, EPSILON_DIGITS)).toBe(10n ** 15n);
  });

  test("a cost is never below its number, nor a limit above, by a unit or more", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e6, noNaN: true }), (value) => {
        const [cost, limit] = [costUnits(value, EPSILON_DIGITS), limitUnits(value, EPSILON_DIGITS)];
        expect(cost - limit === 0n || cost - limit === 1n).toBe(true);
        expect(Math.abs(ofUnits(cost, EPSILON_DIGITS) - value)).toBeLessThanOrEqual(1e-9 + value * Number.EPSILON);
      }),
    );
  });
});

describe("what is charged", () => {
  test.each(CASES.map((each, place) => [place, each] as const))("as Python's budget, case %i", async (_, each) => {
    const { limits, charges, telling, epsilon, delta, words } = each;
    const given = { perDay: limits.per_day ?? Infinity, lifetime: limits.lifetime ?? Infinity };
    const budget = new Budget(new MemoryStore(), given);
    const said: number[] = [];
    for (const [name, stream, number] of charges) {
      const request = { campaign: askedOf(name), stream, number, repeats: false };
      said.push(...(await budget.charge([request], Infinity, NOON)));
    }
    const spent = await budget.spent(NOON);
    expect(said).toEqual(telling);
    expect([spent.epsilon, spent.delta]).toEqual([epsilon, delta]);
    // Python writes the exponent of a small number in two digits.
    expect(spent.words()).toEqual(words.map((sentence) => sentence.replace(/e-0(\d)/g, "e-$1")));
  });

  test("never exceeds the limits, whatever is asked, and is the sum of the lines", () => {
    const asked = fc.record({
      campaign: fc.constantFrom("grr", "both", "memory", "open-domain"),
      discovery: fc.boolean(),
      number: fc.integer({ min: 0, max: 50 }),
      repeats: fc.boolean(),
      day: fc.integer({ min: -2, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(asked), fc.double({ min: 0, max: 9, noNaN: true }), fc.double({ min: 0, max: 30, noNaN: true }), (list, perDay, lifetime) => {
        const limits = { perDay, lifetime, whenSpent: "other" } as const;
        let charged: Charged = UNCHARGED;
        for (const { campaign, discovery, day, ...rest } of list) {
          const file = askedOf(campaign);
          const stream = discovery && file.streams.includes("discovery") ? "discovery" : "reports";
          const [after, telling] = charge(charged, limits, { campaign: file, stream, ...rest }, NOON + day * DAY);
          charged = chargedOf(recordOf(after));
          expect(charged).toEqual(after);
          expect(telling).toBeLessThanOrEqual(rest.number);
          for (const [, epsilon] of charged.days) expect(epsilon).toBeLessThanOrEqual(limitUnits(perDay, EPSILON_DIGITS));
        }
        const total = Object.values(charged.lines).reduce((sum, { epsilon }) => sum + epsilon, 0n);
        expect(total).toBeLessThanOrEqual(limitUnits(lifetime, EPSILON_DIGITS));
      }),
    );
  });

  test("an epoch of clients that remember costs once, all or none", () => {
    const campaign = campaignOf(1, { memory: true, memoryValues: 3 });
    const request = { campaign, stream: "reports", number: 5, repeats: false } as const;
    expect(costOf(campaign, "reports").epsilon).toBe(3_000_000_000n);
    const [first, telling] = charge(UNCHARGED, { ...UNLIMITED, lifetime: 3 }, request, NOON);
    expect(telling).toBe(5);
    expect(charge(first, { ...UNLIMITED, lifetime: 3 }, { ...request, repeats: true }, NOON)[1]).toBe(5);
    expect(charge(first, { ...UNLIMITED, lifetime: 3 }, request, NOON)[1]).toBe(0);
    expect(charge(UNCHARGED, { ...UNLIMITED, lifetime: 2.9 }, request, NOON)[1]).toBe(0);
  });

  test("a day has its limit whenever the clock shows it, and 16 days are kept", () => {
    const limits = { ...UNLIMITED, perDay: 1 };
    const request = { campaign: askedOf("grr"), stream: "reports", number: 1, repeats: false } as const;
    let charged = UNCHARGED;
    const told = (day: number): number => {
      const [after, telling] = charge(charged, limits, request, NOON + day * DAY);
      charged = after;
      return telling;
    };
    const days = Array.from({ length: 16 }, (_, place) => (place === 0 ? 40 : place));
    expect(days.map(told)).toEqual(days.map(() => 1));
    expect(days.map(told)).toEqual(days.map(() => 0));
    expect([told(0), told(1), told(40)]).toEqual([1, 0, 1]);
  });

  test("both streams are charged in one step, or none", async () => {
    const budget = new Budget(new MemoryStore(), { lifetime: 1.5, whenSpent: "nothing" });
    const streams = (["reports", "discovery"] as const).map((stream) => ({
      campaign: campaignOf(1),
      stream,
      number: 1,
      repeats: false,
    }));
    await expect(budget.charge(streams)).rejects.toThrow(BudgetSpent);
    expect((await budget.spent()).epsilon).toBe(0);
  });

  test("windows of one campaign do not push out those of another, which may be months", async () => {
    const budget = new Budget(new MemoryStore());
    const months = campaignOf(1, { cap: 1, windows: { unit: "month", starts: [NOON / 1000, NOON / 1000 + 31 * 86_400] } });
    const report = (campaign: Asked, day: number): Promise<number[]> =>
      budget.charge([{ campaign, stream: "reports", number: 1, repeats: false }], DAY, NOON + day * DAY);
    await report(months, 0);
    for (let day = 0; day < 28; day += 1) await report(campaignOf(1, { id: "days", cap: 1 }), day);
    await expect(report(months, 30)).rejects.toThrow(OverCap);
    await report(months, 31);
    // Beyond the list no new window begins.
    await expect(report(months, 1000)).rejects.toThrow(OverCap);
  });

  test("an epoch that lists windows a little later renews no cap", async () => {
    const budget = new Budget(new MemoryStore());
    const listed = (later: number): Asked => {
      const starts = Array.from({ length: 9 }, (_, day) => NOON / 1000 + 86_400 * (day - 4) + later);
      return campaignOf(1, { cap: 1, windows: { unit: "day", starts } });
    };
    const report = (campaign: Asked, hours: number): Promise<number[]> =>
      budget.charge([{ campaign, stream: "reports", number: 1, repeats: false }], DAY, NOON + hours * 3_600_000);
    await report(listed(0), 1);
    for (const hours of [2, 3, 20]) await expect(report(listed(3600 * hours), hours + 0.5)).rejects.toThrow(OverCap);
    await expect(report(campaignOf(1, { cap: 1 }), 13)).rejects.toThrow(OverCap);
    await report(listed(3600), 25.5);
  });

  test("nothing is charged over the cap", async () => {
    const budget = new Budget(new MemoryStore());
    const request = { campaign: campaignOf(1, { cap: 2 }), stream: "reports", number: 3, repeats: false } as const;
    await expect(budget.charge([request])).rejects.toThrow(OverCap);
    expect((await budget.spent()).epsilon).toBe(0);
  });
});

describe("the budget's record", () => {
  test("a damaged one is refused, never begun anew", async () => {
    const store = new MemoryStore();
    for (const record of [{ format: 2 }, "no", { format: 1, days: [["2026-01-01", "x"]], optedOut: false, lines: {} }]) {
      await store.change([], () => ({ put: [["budget", record]], result: undefined }));
      await expect(new Budget(store).spent()).rejects.toThrow(FormatError);
    }
  });

  test("an opt-out lasts, and opting in again renews nothing", async () => {
    const store = new MemoryStore();
    const request = { campaign: askedOf("grr"), stream: "reports", number: 1, repeats: false } as const;
    await new Budget(store).charge([request]);
    await new Budget(store).optOut();
    await expect(new Budget(store).charge([request])).rejects.toThrow(OptedOut);
    expect((await new Budget(store).spent()).words()[0]).toMatch(/^You opted out/);
    await new Budget(store).optIn();
    expect((await new Budget(store).spent()).epsilon).toBe(1);
  });

  test.each([-1, NaN, 1e7])("a limit of %d is refused", (perDay) => {
    expect(() => new Budget(new MemoryStore(), { perDay })).toThrow(UsageError);
  });
});
