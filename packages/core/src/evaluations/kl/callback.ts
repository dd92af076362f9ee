import { checkKeys } from "../../internal/check-keys.ts";
import { klToBase, type KLToBaseOptions } from "./evaluation.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { PeriodicCallback, periodicOptionNames, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";

/** On whose prompts, and when; the schedule is every 20 % of the phase by default, with its start and end. */
export type PeriodicKLOptions = KLToBaseOptions & Partial<PeriodicOptions>;

/**
 * How far an adapter has moved the model, on the prompts of an evaluation:
 * `new PeriodicKLCallback({ of: capabilityEvaluation({ questions: "arc.jsonl" }) })`. Its id is `kl_capability` there.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or an evaluation that does not tell its prompts.
 */
export class PeriodicKLCallback extends PeriodicCallback {
  constructor(options: PeriodicKLOptions) {
    checkKeys("PeriodicKLCallback", options, ["of", "limit", ...periodicOptionNames]);
    const { periodic, own } = splitOptions(options);
    super(klToBase(own), { schedule: [everyPercent(20)], id: `kl_${own.of.name}`, ...periodic });
  }
}
