// While neither training nor a measurement nor a hook runs, nothing may change the weights: graders, timers and promises
// that callbacks left behind run at such times. They also run during the measurements and hooks of others.
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { EnteredGuard, Guard } from "../../contracts/guard.ts";
import type { Logger } from "../../contracts/session.ts";
import type { Evidence } from "../../contracts/snapshot.ts";
import { drive, wait, type Flow } from "../../internal/maybe-async.ts";
import type { BackgroundGrading } from "../records/background-grading.ts";
import { currentOwner, ownerNameOf } from "../owners/left-behind.ts";
import type { Reporter } from "../owners/reporter.ts";
import type { HookEvidence } from "./hook-evidence.ts";
import type { Patience } from "./patience.ts";
import { runGuarded } from "./run-guarded.ts";

/** Disturbances by loggers become evidence of this name. */
const loggers: TrainerCallback = { id: "loggers" };

export interface BetweenOptions {
  readonly callbacks: readonly TrainerCallback[];
  readonly guards: readonly Guard[];
  readonly graders: BackgroundGrading;
  readonly patience: Patience;
  readonly evidence: HookEvidence;
  readonly reporter: Reporter;
  readonly progress: { readonly current: { readonly step: number } };
}

/** Changes during a hook or measurement of another callback: the name of the owner and the guard. */
export type Others = readonly { readonly owner: string; readonly part: string }[];
const nobody: Others = [];

const isOfWeights = (part: string): boolean => part === "variables" || part === "weights";
const isSame = (part: string, other: string): boolean =>
  part === other || (isOfWeights(part) && isOfWeights(other));

/** Whether evidence of a hook or measurement is about weights or settings that only others changed meanwhile. */
export const isExplainedBy = (others: Others, { part }: Evidence): boolean =>
  others.some((other) => isSame(other.part, part));

/** Observes the weights between guard points, and blames what ran in between. */
export class BetweenGuards {
  readonly #options: BetweenOptions;
  /** The guards of the weights that are cheap enough for every step. */
  readonly #quick: readonly Guard[];
  readonly #weights: Guard | undefined;
  #entered: readonly EnteredGuard[] = [];
  /** The callback or logger whose code guards observe, as `currentOwner` names it. */
  #running: string | null = null;
  /** The guards whose part that code changed. */
  readonly #changed = new Set<string>();
  /** By owner and guard. */
  readonly #others = new Map<string, Others[number]>();
  /** Whether a change since `enter` has been blamed on the code that made it. */
  #isBlamed = false;
  readonly #endWatching: readonly (() => void)[];

  constructor(options: BetweenOptions) {
    this.#options = options;
    const { guards } = options;
    this.#weights = guards.find(({ name }) => name === "weights");
    this.#quick = guards.filter(
      ({ name, around }) => around === "hooks" && (name === "variables" || name === "weights"),
    );
    this.#endWatching = guards.flatMap(
      (guard) => guard.watch?.((what) => this.#noteChange(guard.name, what)) ?? [],
    );
  }

  /** Notes that a hook or measurement of a callback, or a call of a logger, begins, whose own changes guards see. */
  begin(owner: string): void {
    this.#running = owner;
    this.#changed.clear();
    this.#others.clear();
  }

  /** Ends what `begin` began. Returns who else changed something meanwhile that the callback did not change. */
  end(): Others {
    this.#running = null;
    if (this.#others.size === 0) return nobody;
    const changed = [...this.#changed];
    return [...this.#others.values()].filter(({ part }) => !changed.some((other) => isSame(other, part)));
  }

  close(): void {
    for (const end of this.#endWatching) end();
  }

  /** Blames the code that is changing the weights, or what else guards watch, right now, unless it is training, or guards observe it. */
  #noteChange(part: string, what: string): void {
    const { reporter, callbacks, evidence, progress } = this.#options;
    const owner = currentOwner(reporter);
    if (owner === null) return;
    if (owner === this.#running) {
      this.#changed.add(part);
      return;
    }
    if (isOfWeights(part)) this.#isBlamed = true;
    if (this.#running !== null) this.#others.set(`${owner}/${part}`, { owner, part });
    const { step } = progress.current;
    const callback = callbacks.find((one) => ownerNameOf(one) === owner);
    const by = `a grader, timer or promise of ${owner} at step ${step}`;
    const before = isOfWeights(part) ? "weights as training left them" : "as training left it";
    const change = { part, before, after: what, intact: false };
    evidence.keep(callback ?? loggers, "a grader, timer or promise", step, change, by);
  }

  get isEntered(): boolean {
    return this.#entered.length > 0;
  }

  /** Begins to observe, until `leave`. */
  *enter(): Flow<void> {
    if (this.#quick.length === 0) return;
    // Forgets gradings that ended earlier.
    this.#options.graders.takeActive();
    this.#isBlamed = false;
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
      if (evidence.intact === false && !mayHaveTrained && !this.#isBlamed) this.#blame(evidence, step);
    }
  }

  /** Runs a call of a logger, and blames the logger for changes of the weights. */
  *around({ name }: Logger, work: Flow<void>): Flow<void> {
    const entered: EnteredGuard[] = [];
    for (const guard of this.#quick) entered.push(yield* wait(guard.enter({ seed: "" })));
    this.begin(`logger "${name}"`);
    yield* work;
    const others = this.end();
    for (const one of entered) {
      const evidence = yield* wait(one.leave());
      if (evidence.intact !== false || isExplainedBy(others, evidence)) continue;
      const { step } = this.#options.progress.current;
      this.#options.evidence.keep(loggers, "", step, evidence, `logger "${name}" at step ${step}`);
    }
  }

  /** Compares the weights with those that the last measurement of a window left, if graders have run since. */
  async check(last: readonly Evidence[], step: number): Promise<Evidence | null> {
    const left = last.find(({ part }) => part === "weights");
    if (left === undefined || left.after === null || this.#weights === undefined) return null;
    const graded = this.#options.graders.takeActive();
    if (graded.length === 0 && !this.#isBlamed) return null;
    const observing = runGuarded(
      [this.#weights],
      () => ({ seed: "", justLeft: left }),
      () => undefined,
    );
    // Weights that were disposed cannot be observed: the guard throws.
    const { after, intact } = (await drive(observing)).evidence[0] ?? { after: null, intact: false };
    if (after === left.after || (after === null && intact !== false)) return null;
    const changed = { part: "weights", before: left.after, after, intact: false };
    if (!this.#isBlamed) this.#keep(graded, changed, step);
    this.#isBlamed = false;
    return changed;
  }

  #blame(evidence: Evidence, step: number): void {
    const { callbacks, patience } = this.#options;
    const unsettled = callbacks.filter((one) =>
      patience.unsettled.some((name) => name.includes(ownerNameOf(one))),
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
