import type { AnyEvaluation, Row } from "../../contracts/evaluation.ts";
import type { Guard } from "../../contracts/guard.ts";
import type { Awaitable } from "../../contracts/json.ts";
import type { Evidence, Snapshot } from "../../contracts/snapshot.ts";
import { measureRows } from "../records/checked-rows.ts";
import { countTokens } from "./count-tokens.ts";
import { deadlineAt } from "./deadline.ts";
import { drive } from "../loop/maybe-async.ts";
import { provenanceOf } from "../records/new-record.ts";
import type { Prepared } from "./preflight.ts";
import { guarded } from "./run-guarded.ts";

export interface MeasureOnce {
  readonly evaluation: AnyEvaluation;
  readonly prepared: Prepared;
  readonly guards: readonly Guard[];
  /** The guards' evidence of the measurement just before in this window. */
  readonly justLeft: readonly Evidence[];
  /** Names the stream that stands in for `Math.random`. */
  readonly seed: string;
  /** Names the streams of what is sampled: one for all measurements of a step. */
  readonly stepSeed: string;
  /** The run's seed, as provenance tells it. */
  readonly provenanceSeed: string;
  readonly signal: AbortSignal;
  readonly clock: () => number;
  /** Items to measure next; all at once where it is left out. */
  readonly portions?: (done: number, seconds: number) => number;
  /** When it is cut off, on the clock; null: never. */
  readonly deadline?: () => number | null;
  progress(done: number): void;
  /** Told what is about to be measured; true where a record of the same stands already, and nothing is measured. */
  before?(provenance: Snapshot["provenance"], weights: string | null): Awaitable<boolean>;
}

export interface Mark {
  readonly items: number;
  readonly seconds: number;
  /** Of the model, so far. */
  readonly calls: number;
}

export type Measured = {
  readonly receipt: readonly Evidence[];
  readonly provenance: Snapshot["provenance"] | null;
  readonly weights: string | null;
  readonly guardsSeconds: number;
  readonly measureSeconds: number;
  /** How far it was when: seconds of measuring at each call of `progress`. */
  readonly marks: readonly Mark[];
  /** The first of several portions; null where it was measured at once. */
  readonly firstPortion: Omit<Mark, "calls"> | null;
  /** Whether its deadline cut it off. */
  readonly isCut: boolean;
  /** Null where the engine does not tell. */
  readonly tokens: number | null;
} & (
  | { readonly kind: "measured"; readonly provenance: Snapshot["provenance"]; readonly rows: readonly Row[] }
  | { readonly kind: "adopted" }
  | { readonly kind: "failed"; readonly error: unknown }
);

/** One measurement inside the guards. Does not throw: what went wrong is in the result. */
export async function measureOnce(one: MeasureOnce): Promise<Measured> {
  const { evaluation, prepared, guards, clock, seed, signal } = one;
  const began = clock();
  let provenance: Snapshot["provenance"] | null = null;
  let weights = prepared.target.identity.weights;
  let measureSeconds = 0;
  const deadline = deadlineAt(one.deadline ?? (() => null), clock);
  let calls = 0;
  const { model: target, tokens } = countTokens(prepared.target, () => {
    calls += 1;
    deadline.check();
  });
  const marks: Mark[] = [];
  let firstPortion: Measured["firstPortion"] = null;
  const { outcome, evidence: receipt } = await drive(
    guarded(
      guards,
      (index) => {
        const left = one.justLeft[index];
        return left === undefined ? { seed } : { seed, justLeft: left };
      },
      async (fingerprint) => {
        weights = fingerprint ?? weights;
        provenance = provenanceOf(evaluation, prepared, one.provenanceSeed);
        if ((await one.before?.(provenance, weights)) === true) return null;
        const measuring = clock();
        const progress = (done: number) => {
          if (done > 0) marks.push({ items: done, seconds: clock() - measuring, calls });
          deadline.check();
          one.progress(done);
        };
        const { portions } = one;
        try {
          progress(0);
          return await measureRows(
            evaluation,
            { ...prepared, target },
            { seed: one.stepSeed, signal: AbortSignal.any([signal, deadline.signal]), progress },
            portions &&
              ((done) => {
                const seconds = clock() - measuring;
                const next = portions(done, seconds);
                if (done > 0 && next > 0) firstPortion ??= { items: done, seconds };
                return next;
              }),
          );
        } finally {
          measureSeconds = clock() - measuring;
          deadline.stop();
        }
      },
    ),
  );
  deadline.stop();
  const facts = {
    receipt,
    provenance,
    weights,
    guardsSeconds: clock() - began - measureSeconds,
    measureSeconds,
    marks,
    firstPortion,
    isCut: deadline.signal.aborted,
    tokens: tokens(),
  };
  if ("error" in outcome) return { ...facts, kind: "failed", error: outcome.error };
  if (outcome.value === null) return { ...facts, kind: "adopted" };
  // Provenance is known wherever rows are.
  return { ...facts, kind: "measured", provenance: provenance!, rows: outcome.value };
}
