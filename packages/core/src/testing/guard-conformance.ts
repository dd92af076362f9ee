import type { Guard } from "../contracts/guard.ts";
import type { Awaitable } from "../contracts/json.ts";
import { evidenceSchema, type Evidence } from "../contracts/snapshot.ts";
import { expectEqual, expectThat, type Check } from "./check.ts";

export interface GuardConformanceOptions {
  /** Does what the guard is there to catch; without it the suite cannot tell a watching guard from a blind one. */
  readonly disturb?: () => Awaitable<void>;
}

/**
 * What every guard must do. `makeGuard` gives a guard over something that nobody else changes meanwhile.
 *
 *     for (const check of guardConformance(() => weightsGuard(lm), { disturb: () => swapTwoWeights(lm) })) it(check.name, check.run);
 */
export function guardConformance(
  makeGuard: () => Awaitable<Guard>,
  { disturb }: GuardConformanceOptions = {},
): readonly Check[] {
  const check = (name: string, run: (guard: Guard) => Promise<void>): Check => ({
    name,
    run: async () => run(await makeGuard()),
  });
  const pass = async (guard: Guard, during: () => Awaitable<void> = () => undefined): Promise<Evidence> => {
    const entered = await guard.enter({ seed: "conformance" });
    await during();
    const evidence = await entered.leave();
    // Evidence of a disturbance may show the part that differs instead.
    if (evidence.intact !== false) {
      expectEqual(evidence.before, entered.before, "the evidence's `before` is the one given on entering");
    }
    return evidence;
  };
  return [
    check("gives evidence in its own name", async (guard) => {
      const evidence = await pass(guard);
      expectThat(
        evidenceSchema.safeParse(JSON.parse(JSON.stringify(evidence))).success,
        `valid evidence: ${JSON.stringify(evidence)}`,
      );
      const isNamed = evidence.part === guard.name || evidence.part.startsWith(`${guard.name}/`);
      expectThat(
        guard.name !== "" && isNamed,
        `the part "${evidence.part}" begins with the guard's name "${guard.name}"`,
      );
    }),
    check("sees no disturbance where there is none", async (guard) => {
      const { intact, before, after } = await pass(guard);
      expectThat(intact !== false, "intact is true or null");
      expectThat(
        intact === null || (before !== null && after !== null),
        "what was not observed is not called intact",
      );
    }),
    check("can be entered again, and sees the same", async (guard) => {
      const first = await pass(guard);
      expectEqual(await pass(guard), first, "evidence of a second pass");
    }),
    check("stands inside another of its kind", async (guard) => {
      const other = await makeGuard();
      expectThat(
        (await pass(guard, async () => void (await pass(other)))).intact !== false,
        "intact is true or null",
      );
    }),
    ...(disturb === undefined
      ? []
      : [
          check("catches what it is there for", async (guard) => {
            expectEqual((await pass(guard, disturb)).intact, false, "intact after a disturbance");
          }),
        ]),
  ];
}
