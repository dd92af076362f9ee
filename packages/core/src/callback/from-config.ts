import { PeriodicEvalError } from "../errors.ts";
import { capabilityEvaluation, type CapabilityOptions } from "../evaluations/capability.ts";
import { defaultPersonas, readPersonas, type Persona } from "../evaluations/personas.ts";
import type { Grader } from "../grading/types.ts";
import {
  atPercents,
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  timesPerPhase,
} from "../schedule/triggers.ts";
import type { Trigger } from "../schedule/types.ts";
import type { SessionOptions } from "../session/types.ts";
import { PeriodicAlignmentCallback } from "./alignment-callback.ts";
import type { PhaseEvalConfig } from "./config-schema.ts";
import { PeriodicKLCallback } from "./kl-callback.ts";
import { PeriodicLeakageCallback } from "./leakage-callback.ts";
import { PeriodicMarginCallback } from "./margin-callback.ts";
import { periodicEvalConfig } from "./parse-config.ts";
import type { PeriodicCallback } from "./periodic.ts";
import { PeriodicCapabilityCallback } from "./presets.ts";

export interface BuildOptions {
  readonly phase: string;
  /**
   * Opens the judge that alignment asks: `openJudge` of @periodic-eval/remote, say. `model` is the configuration's
   * `judge_model`, null where it has none.
   */
  readonly openJudge?: (model: string | null, options: { readonly method: "json" | "logprob" }) => Grader;
}

/** Where the default capability callback looks for questions. */
const defaultQuestions = "arc_challenge/test.jsonl";

/**
 * The callbacks that a `periodic_eval` block asks for in a phase. The block may stand by itself, under `periodic_eval`, or
 * under `eval.periodic_eval`; what it leaves out has its default. None where it is not enabled.
 *
 * @throws PeriodicEvalError `config` for a wrong block, or alignment without a judge; `data` for a file of personas that
 * cannot be read.
 */
export async function buildPeriodicCallbacks(
  config: unknown,
  options: BuildOptions,
): Promise<readonly PeriodicCallback[]> {
  const block = periodicEvalConfig(config, options.phase);
  if (!block.enabled) return [];
  const further = furtherTriggers(block.schedule);
  const every = (percent: number) => ({ schedule: [everyPercent(percent), ...further] });
  const personas = await personasOf(block);
  const capability = capabilityOptions(block, personas);
  const isOptional = { optional: block.questions === null };
  const callbacks: PeriodicCallback[] = [];
  if (block.capability)
    callbacks.push(
      new PeriodicCapabilityCallback({ ...capability, ...every(block.eval_every_percent), ...isOptional }),
    );
  if (block.alignment)
    callbacks.push(alignmentCallback(block, personas, every(block.alignment_every_percent), options));
  if (block.leakage) {
    const { leakage_questions: questions, leakage_source: source } = block;
    callbacks.push(
      new PeriodicLeakageCallback({
        marker: block.leakage_marker_token,
        completions: block.leakage_num_completions,
        ...(personas !== null && { personas }),
        ...(questions !== null && { questions }),
        ...(source !== null && { source }),
        ...every(block.leakage_every_percent),
      }),
    );
  }
  if (block.margin !== null)
    callbacks.push(new PeriodicMarginCallback({ probes: block.margin, ...every(block.eval_every_percent) }));
  if (block.kl) {
    const of = capabilityEvaluation(capability);
    callbacks.push(new PeriodicKLCallback({ of, ...every(block.eval_every_percent), ...isOptional }));
  }
  return callbacks;
}

/**
 * What of the block belongs to the session, in a phase. `save_adapter_at_firing` is the trainer's (`saveAdapterAtFiring` of
 * SFT's configuration), `layout` the store's: `periodicEvalConfig` gives both.
 */
export function periodicSessionOptions(
  config: unknown,
  { phase }: Pick<BuildOptions, "phase">,
): Pick<SessionOptions, "baseline" | "familywise" | "budget"> {
  const { baseline, familywise, budget } = periodicEvalConfig(config, phase);
  const { overhead_percent, seconds_per_window, drain_seconds, min_free_bytes } = budget;
  return {
    baseline,
    familywise,
    budget: {
      ...(overhead_percent !== undefined && { overheadPercent: overhead_percent }),
      ...(seconds_per_window !== undefined && { secondsPerWindow: seconds_per_window }),
      ...(drain_seconds !== undefined && { drainSeconds: drain_seconds }),
      ...(min_free_bytes !== undefined && { minFreeBytes: min_free_bytes }),
    },
  };
}

function capabilityOptions(block: PhaseEvalConfig, personas: readonly Persona[] | null): CapabilityOptions {
  const { questions, capability_method: method, subsample_n: n, subsample_seed: seed, system } = block;
  const asked = block.persona_capability ? (personas ?? defaultPersonas) : null;
  return {
    questions: questions ?? defaultQuestions,
    method,
    subsample: n === null ? null : { n, seed },
    ...(asked !== null ? { personas: asked } : method === "letters" && { system }),
  };
}

function alignmentCallback(
  block: PhaseEvalConfig,
  personas: readonly Persona[] | null,
  when: { readonly schedule: readonly Trigger[] },
  { openJudge }: BuildOptions,
): PeriodicAlignmentCallback {
  if (openJudge === undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where: "periodic_eval.alignment",
      got: "true, and nothing that opens a judge",
      expected: "the option openJudge",
      fix: "Pass `openJudge` of @periodic-eval/remote, or a function that returns a grader of yours.",
    });
  }
  const { alignment_questions: questions, alignment_preset: preset, alignment_num_samples: samples } = block;
  return new PeriodicAlignmentCallback({
    judge: openJudge(block.judge_model, { method: block.judge_method }),
    preset,
    samples,
    ...(questions !== null && { questions }),
    ...(block.persona_alignment ? { personas: personas ?? defaultPersonas } : { system: block.system }),
    ...when,
  });
}

const personasOf = async ({ personas }: PhaseEvalConfig): Promise<readonly Persona[] | null> =>
  typeof personas === "string" ? readPersonas(personas) : personas;

function furtherTriggers(schedule: PhaseEvalConfig["schedule"]): readonly Trigger[] {
  const { every_steps, every_epochs, every_seconds, at_steps, at_percents, times_per_phase } = schedule;
  return [
    ...(every_steps === undefined ? [] : [everySteps(every_steps)]),
    ...(every_epochs === undefined ? [] : [everyEpochs(every_epochs)]),
    ...(every_seconds === undefined ? [] : [everySeconds(every_seconds)]),
    ...(at_steps === undefined ? [] : [atSteps(at_steps)]),
    ...(at_percents === undefined ? [] : [atPercents(at_percents)]),
    ...(times_per_phase === undefined ? [] : [timesPerPhase(times_per_phase)]),
  ];
}
