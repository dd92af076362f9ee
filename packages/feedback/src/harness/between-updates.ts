import { PeriodicEvalError, type EnteredGuard, type Guard } from "@periodic-eval/core";

/** Observes the weights between two updates, while graders and hooks run, which must not change them. */
export class BetweenUpdates {
  readonly #guards: readonly Guard[];
  #entered: readonly EnteredGuard[] = [];

  constructor(guards: readonly Guard[]) {
    this.#guards = guards.filter(({ around, advisory }) => around === "hooks" && advisory !== true);
  }

  /** Starts observing, after an update. */
  async begin(): Promise<void> {
    const entered: EnteredGuard[] = [];
    for (const guard of this.#guards) entered.push(await guard.enter({ seed: "between updates" }));
    this.#entered = entered;
  }

  /**
   * Ends observing, before an update.
   *
   * @throws PeriodicEvalError `receipt` if the weights changed since `begin`.
   */
  async end(step: number): Promise<void> {
    const evidence = [];
    for (const entered of this.#entered.toReversed()) evidence.push(await entered.leave());
    this.#entered = [];
    const change = evidence.find(({ intact }) => intact === false);
    if (change === undefined) return;
    throw new PeriodicEvalError({
      code: "receipt",
      where: `step ${step}`,
      got: `a change of the model between two updates (${change.part}: ${change.after})`,
      expected: "weights that only training changes",
      fix: "Correct the verifier or onStep, then train this preference again in another output_dir.",
    });
  }
}
