import { type Guard, type Awaitable, evidenceSchema, type Evidence } from "@periodic-eval/contracts";
import { expectEqual, expectThat, type Check } from "./check.ts";

export interface GuardConformanceOptions {
  /** Causes the disturbance that the guard detects. Without it, a guard that sees nothing passes the suite. */
  readonly disturb?: () => Awaitable<void>;
}

/**
 * Returns the checks that every guard must pass.
 *
 * @param makeGuard Returns a guard that observes something that nothing else changes during the checks.
 *
 *     for (const check of guardConformance(() => weightsGuard(lm), { disturb: () => swapTwoWeights(lm) })) it(check.name, check.run);
 */
export function guardConformance(
  makeGuard: () => Awaitable<Guard>,
  options: GuardConformanceOptions = {},
): readonly Check[] {
  const { disturb } = options;
  const check = (name: string, run: (guard: Guard) => Promise<void>): Check => ({
    name,
    run: async () => run(await makeGuard()),
  });
  const pass = async (guard: Guard, during: () => Awaitable<void> = () => undefined): Promise<Evidence> => {
    const entered = await guard.enter({ seed: "conformance" });
    await during();
    const evidence = await entered.leave();
    // Evidence of a disturbance may contain only the part that differs.
    if (evidence.intact !== false) {
      expectEqual(
        evidence.before,
        entered.before,
        "`before` of the evidence, which must equal `before` on entering",
      );
    }
    return evidence;
  };
  return [
    check("returns evidence under its name", async (guard) => {
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
    check("reports no disturbance if there is none", async (guard) => {
      const { intact, before, after } = await pass(guard);
      expectThat(intact !== false, "intact is true or null");
      expectThat(
        intact === null || (before !== null && after !== null),
        "intact is null for a state that was not observed",
      );
    }),
    check("returns the same evidence when entered again", async (guard) => {
      const first = await pass(guard);
      expectEqual(await pass(guard), first, "evidence of a second pass");
    }),
    check("nests inside another guard of its kind", async (guard) => {
      const other = await makeGuard();
      expectThat(
        (await pass(guard, async () => void (await pass(other)))).intact !== false,
        "intact is true or null",
      );
    }),
    ...(disturb === undefined
      ? []
      : [
          check("detects its disturbance", async (guard) => {
            expectEqual((await pass(guard, disturb)).intact, false, "intact after a disturbance");
          }),
        ]),
  ];
}
