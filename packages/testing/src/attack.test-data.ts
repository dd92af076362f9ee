import fc from "fast-check";

const minutes = Number(process.env["ATTACK_MINUTES"] ?? 0);
const [seed, path] = process.env["ATTACK_CASE"]?.split("/") ?? [];

/** The time limit of a test that attacks. */
export const attackTimeout = 60_000 * (minutes + 10);

/**
 * Checks random cases: `runs` with a fixed seed, or with `ATTACK_MINUTES` as many as fit, with a new seed. A failure names seed and
 * path of the smallest case that still fails; `ATTACK_CASE=SEED/PATH` repeats it.
 */
export const attack = <Case>(
  runs: number,
  cases: fc.Arbitrary<Case>,
  check: (drawn: Case) => Promise<void>,
): Promise<void> =>
  fc.assert(fc.asyncProperty(cases, check), {
    numRuns: minutes > 0 ? 1e9 : runs,
    ...(minutes > 0 ? { interruptAfterTimeLimit: 60_000 * minutes } : { seed: 8201 }),
    ...(seed !== undefined && { seed: Number(seed), path: path! }),
  });
