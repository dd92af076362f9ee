import { PeriodicEvalError, type EnteredGuard, type Evidence, type Guard } from "@periodic-eval/core";
import { currentOwner, type Reporter } from "@periodic-eval/core/internal";
import { mathRandomGuard } from "@periodic-eval/core/session";

/**
 * Detects changes of the weights between two updates, and names the code that made them. Graders, hooks, and the timers and promises
 * that they leave behind run at that time, and must not change weights.
 */
export class WeightWatch {
  readonly #hookGuards: readonly Guard[];
  readonly #stopWatching: readonly (() => void)[];
  /** Descriptions of changes, by the code that made them. */
  readonly #changes = new Map<string, string>();
  #entered: readonly EnteredGuard[] = [];

  constructor(guards: readonly Guard[], reporter: Reporter) {
    this.#hookGuards = guards.filter(({ around, advisory }) => around === "hooks" && advisory !== true);
    this.#stopWatching = guards.flatMap(
      (guard) =>
        guard.watch?.((what) => {
          const owner = currentOwner(reporter);
          if (owner !== null) this.#changes.set(owner, what);
        }) ?? [],
    );
  }

  /** Runs user code inside the guards, and rethrows its errors. */
  async around<T>(where: string, work: () => T): Promise<Awaited<T>> {
    const entered = await enterAll([mathRandomGuard(), ...this.#hookGuards], where);
    try {
      return await work();
    } finally {
      for (const { part, after } of await leaveAll(entered)) this.#changes.set(where, `${part}: ${after}`);
    }
  }

  /** Starts observing, after an update. */
  async begin(): Promise<void> {
    this.#entered = await enterAll(this.#hookGuards, "between updates");
  }

  /** Stops observing, before an update. */
  async end(): Promise<void> {
    const changed = await leaveAll(this.#entered);
    this.#entered = [];
    if (this.#changes.size > 0) return;
    for (const { part, after } of changed)
      this.#changes.set("a grader, hook, timer or promise", `${part}: ${after}`);
  }

  /** @throws PeriodicEvalError `receipt` if the weights changed between updates. The error names the code that changed them. */
  check(step: number): void {
    const [first] = this.#changes;
    if (first === undefined) return;
    const [who, what] = first;
    throw new PeriodicEvalError({
      code: "receipt",
      where: `step ${step}`,
      got: `a change of the model by ${[...this.#changes.keys()].join(", ")} (${what})`,
      expected: "weights that only training changes",
      fix: `Correct ${who}, then train this preference again in another output_dir.`,
    });
  }

  /** Removes the watchers of the guards. */
  close(): void {
    for (const stop of this.#stopWatching) stop();
  }
}

async function enterAll(guards: readonly Guard[], seed: string): Promise<readonly EnteredGuard[]> {
  const entered: EnteredGuard[] = [];
  for (const guard of guards) entered.push(await guard.enter({ seed }));
  return entered;
}

/** Leaves guards in reverse order, and returns the evidence of changes. */
async function leaveAll(entered: readonly EnteredGuard[]): Promise<readonly Evidence[]> {
  const evidence: Evidence[] = [];
  for (const one of entered.toReversed()) evidence.push(await one.leave());
  return evidence.filter(({ intact }) => intact === false);
}
