// While neither training nor a measurement nor a hook runs, nothing may change the weights: graders, timers and promises
// that callbacks left behind run at such times.
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { EnteredGuard, Guard } from "../../contracts/guard.ts";
import type { Logger } from "../../contracts/session.ts";
import type { Evidence } from "../../contracts/snapshot.ts";
import { wait, type Flow } from "../../internal/maybe-async.ts";
import type { BackgroundGrading } from "../records/background-grading.ts";
import type { HookEvidence } from "./hook-evidence.ts";
import type { Patience } from "./patience.ts";

/** Disturbances by loggers become evidence of this name. */
const loggers: TrainerCallback = { id: "loggers" };

export interface BetweenOptions {
  readonly callbacks: readonly TrainerCallback[];
  readonly guards: readonly Guard[];
  readonly graders: BackgroundGrading;
  readonly patience: Patience;
  readonly evidence: HookEvidence;
}

/** Observes the weights between guard points, and blames what ran in between. */
export class BetweenGuards {
  readonly #options: BetweenOptions;
  /** The guards of the weights that are cheap enough for every step. */
  readonly #quick: readonly Guard[];
  readonly #weights: Guard | undefined;
  #entered: readonly EnteredGuard[] = [];

  constructor(options: BetweenOptions) {
    this.#options = options;
    const { guards } = options;
    this.#weights = guards.find(({ name }) => name === "weights");
    this.#quick = guards.filter(
      ({ name, around }) => around === "hooks" && (name === "variables" || name === "weights"),
    );
  }

  get isEntered(): boolean {
    return this.#entered.length > 0;
  }

  /** Begins to observe, until `leave`. */
  *enter(): Flow<void> {
    if (this.#quick.length === 0) return;
    // Forgets gradings that ended earlier.
    this.#options.graders.takeActive();
    const entered: EnteredGuard[] = [];
    for (const guard of this.#quick) entered.push(yield* wait(guard.enter({ seed: "" })));
    this.#entered = entered;
  }

  /** Ends what `enter` began. Reports changes, unless training may have made them. */
  *leave(step: number, mayHaveTrained: boolean): Flow<void> {
    const entered = this.#entered;
    this.#entered = [];
    for (const one of entered) {
      const evidence = yield* wait(one.leave());
      if (evidence.intact === false && !mayHaveTrained) this.#blame(evidence, step);
    }
  }

  /** Runs a call of a logger, and blames the logger for changes of the weights. */
  *around({ name }: Logger, work: Flow<void>, step: () => number): Flow<void> {
    const entered: EnteredGuard[] = [];
    for (const guard of this.#quick) entered.push(yield* wait(guard.enter({ seed: "" })));
    yield* work;
    for (const one of entered) {
      const evidence = yield* wait(one.leave());
      if (evidence.intact !== false) continue;
      this.#options.evidence.keep(loggers, "", step(), evidence, `logger "${name}" at step ${step()}`);
    }
  }

  /** Compares the weights with those that the last measurement of a window left, if graders have run since. */
  async check(last: readonly Evidence[], step: number): Promise<Evidence | null> {
    const left = last.find(({ part }) => part === "weights");
    if (left === undefined || left.after === null || this.#weights === undefined) return null;
    const graded = this.#options.graders.takeActive();
    if (graded.length === 0) return null;
    const { after } = await (await this.#weights.enter({ seed: "", justLeft: left })).leave();
    if (after === null || after === left.after) return null;
    const changed = { part: "weights", before: left.after, after, intact: false };
    this.#keep(graded, changed, step);
    return changed;
  }

  #blame(evidence: Evidence, step: number): void {
    const { callbacks, patience } = this.#options;
    const unsettled = callbacks.filter(({ id }) =>
      patience.unsettled.some((name) => name.includes(`callback "${id}"`)),
    );
    const active = [...this.#options.graders.takeActive(), ...unsettled];
    if (active.length > 0) return this.#keep(active, evidence, step);
    // Nothing is known to have run, and the loop may have its reasons.
    const names = callbacks.map(({ id }) => `"${id}"`).join(", ");
    const note = `changed while no hook ran: by a timer or promise of one of ${names}, or by the training loop`;
    this.#keep(callbacks, { ...evidence, advisory: true, note }, step);
  }

  #keep([first, ...others]: readonly TrainerCallback[], evidence: Evidence, step: number): void {
    if (first === undefined) return;
    const also = others.map(({ id }) => `"${id}"`).join(", ");
    const note = [evidence.note, also !== "" && evidence.advisory !== true && `or by ${also}, which ran too`];
    const noted = note.filter(Boolean).join("; ");
    const what = evidence.advisory === true ? "a timer or promise" : "a grader, timer or promise";
    this.#options.evidence.keep(first, what, step, noted === "" ? evidence : { ...evidence, note: noted });
  }
}
