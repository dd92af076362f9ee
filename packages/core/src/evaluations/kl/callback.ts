import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { klEvaluation } from "./evaluation.ts";
import { klShape, type KLOptions } from "./options.ts";

/** The options of `klEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicKLOptions = KLOptions & Partial<PeriodicOptions>;

/**
 * Measures how far an adapter has moved the model, on the prompts of an evaluation:
 * `new PeriodicKLCallback({ of: capabilityEvaluation({ questions: "arc.jsonl" }) })`. Its id is then `kl_capability`.
 *
 * @throws PeriodicEvalError `config` for a wrong option or an evaluation without `prompts`.
 */
export class PeriodicKLCallback extends PeriodicCallback {
  constructor(options: PeriodicKLOptions) {
    const { periodic, evaluation } = splitOptions("PeriodicKLCallback options", klShape, options);
    super(klEvaluation(evaluation), {
      schedule: [everyPercent(20)],
      id: `kl_${evaluation.of.name}`,
      ...periodic,
    });
  }
}
