import { PeriodicEvalError, type EnteredGuard, type Evidence, type Guard } from "@periodic-eval/core";
import { currentOwner, type Reporter } from "@periodic-eval/core/internal";
import { mathRandomGuard } from "@periodic-eval/core/session";

/**
 * Notices who changes the weights between two updates. While neither an update nor a measurement runs, nothing may: graders, hooks,
 * and the timers and promises that they left behind run at such times.
 */
export class WeightWatch {
  readonly #quick: readonly Guard[];
  readonly #endWatching: readonly (() => void)[];
  /** Descriptions of changes, by who made them. */
  readonly #changes = new Map<string, string>();
  #entered: readonly EnteredGuard[] = [];

  constructor(guards: readonly Guard[], reporter: Reporter) {
    this.#quick = guards.filter(({ around, advisory }) => around === "hooks" && advisory !== true);
    this.#endWatching = guards.flatMap(
      (guard) =>
        guard.watch?.((what) => {
          const owner = currentOwner(reporter);
          if (owner !== null) this.#changes.set(owner, what);
        }) ?? [],
    );
  }

  /** Runs user code inside the guards. What it throws passes through. */
  async around<T>(where: string, work: () => T): Promise<Awaited<T>> {
    const entered = await enterAll([mathRandomGuard(), ...this.#quick], where);
    try {
      return await work();
    } finally {
      for (const { part, after } of await leaveAll(entered)) this.#changes.set(where, `${part}: ${after}`);
    }
  }

  /** Begins to observe, after an update. */
  async begin(): Promise<void> {
    this.#entered = await enterAll(this.#quick, "between updates");
  }

  /** Ends to observe, before an update. */
  async end(): Promise<void> {
    const changed = await leaveAll(this.#entered);
    this.#entered = [];
    if (this.#changes.size > 0) return;
    for (const { part, after } of changed)
      this.#changes.set("a grader, hook, timer or promise", `${part}: ${after}`);
  }

  /** @throws PeriodicEvalError `receipt` if anything but an update changed the weights, with who did. */
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

  close(): void {
    for (const end of this.#endWatching) end();
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
