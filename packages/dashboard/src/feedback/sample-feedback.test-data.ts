import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Hostile text, used for every free string of the files. */
export const attack = `"><script>alert(1)</script><img src=x onerror='alert(2)'>\0`;

interface SampleMeasurement {
  readonly at: number;
  readonly isBlind?: boolean;
}

/** Returns margins 1, 2.5, 4, … and held-out compliance 0.25, 0.375, 0.5, …; measures collapse at the baseline and at step 1. */
function sampleMeasurement({ at, isBlind = false }: SampleMeasurement) {
  return {
    logprob_margin: {
      margin: isBlind ? null : 1 + 1.5 * at,
      margin_per_token: isBlind ? null : 0.1 + 0.15 * at,
      margin_delta: isBlind || at === 0 ? null : 1.5 * at,
      margin_per_token_delta: isBlind || at === 0 ? null : 0.15 * at,
      p: isBlind || at === 0 ? null : 0.01,
      n: isBlind ? 0 : 12,
      reason: isBlind ? `the engine cannot score a given answer ${attack}` : null,
    },
    preference_compliance: {
      held_out: 0.25 + 0.125 * at,
      held_out_n: 8,
      seen: 0.5,
      seen_n: 8,
      ungraded: 0,
    },
    general: {
      general: isBlind ? 0 : 0.5 - 0.125 * at,
      coding: 0,
      instructions: 0.25,
      failures: { fibonacci: attack },
    },
    collapse:
      at % 2 === 1
        ? null
        : {
            entropy_nats: 1.2,
            entropy_ratio: isBlind ? null : 1 - 0.25 * at,
            self_rouge_l: 0.4,
            own_drift: 0.1 * at,
            baseline_drift: -0.1 * at,
            alerts: !isBlind && at === 2 ? ["entropy_ratio"] : [],
            unknown: isBlind ? { entropy_ratio: "the engine reports no distribution" } : {},
          },
    rollouts: [
      { of: "training", prompt: attack, response: attack, score: 0.5 },
      { of: "compliance", prompt: attack, response: attack, score: null },
    ],
  };
}

function sampleStep(step: number, isBlind: boolean) {
  return {
    step,
    timestamp: "2026-01-01T00:00:00.000Z",
    feedback_given: attack,
    sdpo_metrics: {
      step_id: attack,
      loss: 0.4 - 0.1 * step,
      distill_loss: 0.4,
      kl_reg: null,
      mean_is_ratio: 1.25,
      clip_fraction: 0,
      grad_norm: 0.75,
    },
    eval: sampleMeasurement({ at: step + 1, isBlind }),
    prompt_used: attack,
    response_text: attack,
    timing_s: 2.5,
    sub_step_count: 4,
  };
}

/** Writes two preferences of two steps each: `polite`, and `blind`, which has few values and a last line that is cut off. */
export async function writeSampleFeedback(output: string): Promise<void> {
  const names = ["polite", "blind"];
  for (const name of names) {
    const isBlind = name === "blind";
    await mkdir(join(output, name), { recursive: true });
    const write = (file: string, value: unknown) =>
      writeFile(join(output, name, file), JSON.stringify(value, null, 2));
    await write("metadata.json", {
      schema_version: 1,
      started_at: "2026-01-01T00:00:00.000Z",
      config: {
        base_model: null,
        num_steps: 3,
        batch_size: 4,
        steps_per_batch: 4,
        metrics: ["logprob", "compliance", "general", "collapse"],
        collapse_steps: [1],
        seed: 42,
        training: { learning_rate: 3e-5 },
      },
      preference_definition: { feedback_string: attack },
      grader: { name: attack },
      collapse_thresholds: { entropy_ratio: 0.6, self_rouge_l: 0.85, drift_nats: 2 },
      engine: { engine: attack, model: attack },
    });
    await write("baseline.json", {
      timestamp: "2026-01-01T00:00:00.000Z",
      eval: sampleMeasurement({ at: 0, isBlind }),
    });
    const lines = [0, 1].map((step) => `${JSON.stringify(sampleStep(step, isBlind))}\n`);
    await writeFile(
      join(output, name, "steps.jsonl"),
      `${lines.join("")}${isBlind ? '{"step": 2, "ti' : ""}`,
    );
  }
  const compliance = { baseline_compliance: 0.25, final_compliance: 0.5 };
  const seen = { baseline_seen_compliance: null, final_seen_compliance: null };
  const one = { lora_id: attack, steps: 2, ...compliance, ...seen };
  await writeFile(
    join(output, "summary.json"),
    JSON.stringify({
      schema_version: 1,
      updated_at: "2026-01-01T01:00:00.000Z",
      preferences: {
        polite: {
          ...one,
          status: "finished",
          logprob_margin_delta: 3,
          logprob_margin_per_token_delta: 0.3,
          logprob_margin_p: 0.01,
          capability_ratio: 0.5,
          collapse_alerts: ["entropy_ratio"],
          verdict: "collapsed",
        },
        blind: {
          ...one,
          status: "running",
          logprob_margin_delta: null,
          logprob_margin_per_token_delta: null,
          logprob_margin_p: null,
          capability_ratio: null,
          collapse_alerts: [],
          verdict: "no evidence",
        },
      },
    }),
  );
}
