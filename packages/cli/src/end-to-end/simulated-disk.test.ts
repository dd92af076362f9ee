import type * as sync from "node:fs";
import type * as promises from "node:fs/promises";
import type * as timers from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { runSeed } from "./simulated-runs.test-data.ts";
import { users } from "./simulated-users.test-data.ts";

vi.mock("node:fs/promises", async (importOriginal) => {
  const { simulatedPromises } = await import("../../../testing/src/simulated-files.test-data.ts");
  return simulatedPromises(await importOriginal<typeof promises>());
});
vi.mock("node:fs", async (importOriginal) => {
  const { simulatedSync } = await import("../../../testing/src/simulated-files.test-data.ts");
  return simulatedSync(await importOriginal<typeof sync>());
});
vi.mock("node:timers/promises", async (importOriginal) => {
  const { simulatedTimers } = await import("../../../testing/src/simulated-files.test-data.ts");
  return simulatedTimers(await importOriginal<typeof timers>());
});

/** `SEEDS=100000` runs that many; `FROM` is the first, to repeat a failure. */
const seeds = Number(process.env["SEEDS"] ?? 400);
const first = Number(process.env["FROM"] ?? 1);
const chosen = users.filter(({ name }) => name.includes(process.env["USER_NAME"] ?? ""));

describe("on a simulated disk", () => {
  it(`loses, repeats and changes nothing over ${seeds} seeds`, { timeout: 3_600_000 }, async () => {
    const failures: string[] = [];
    for (let seed = first; seed < first + seeds && failures.length < 5; seed += 1) {
      const wrong = await runSeed(seed, null, chosen);
      if (wrong !== null) failures.push(wrong.slice(0, 3000));
    }
    if (process.env["SEEDS"]) console.log(`${(process.cpuUsage().user / 1e6).toFixed(1)} s`);
    expect(failures.join("\n\n")).toBe("");
  });
});

describe("a planted fault", () => {
  it.each(["no sync", "rename before data", "no lock", "row twice"] as const)(
    "is noticed within 1,000 seeds: %s",
    { timeout: 600_000 },
    async (planted) => {
      let seed = 1;
      while (seed <= 1000 && (await runSeed(seed, planted)) === null) seed += 1;
      if (process.env["SEEDS"]) console.log(`${planted}: seed ${seed}`);
      expect(seed).toBeLessThanOrEqual(1000);
    },
  );
});
