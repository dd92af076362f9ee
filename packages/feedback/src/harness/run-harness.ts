import { mkdir } from "node:fs/promises";
import { basename } from "node:path";
import { PeriodicEvalError, type Grader, type Json } from "@periodic-eval/core";
import { hashJson, seedOf } from "@periodic-eval/core/random";
import {
  appendLines,
  nodeFiles,
  removeTemporaryFiles,
  takeLock,
  writeFileAtomic,
} from "@periodic-eval/core/snapshots";
import type { HarnessConfig } from "../config/schema.ts";
import type { FeedbackEngine, UpdateRecord, UpdateReport } from "../engine/types.ts";
import { openVerifier, rewardOf } from "../graders/open-verifier.ts";
import { collapseProbes, readCollapseProbes, type CollapseProbes } from "../metrics/collapse-probes.ts";
import { collapsePresets, readThresholds, writtenThresholds } from "../metrics/collapse-summary.ts";
import { readPreference, type Preference } from "../preferences/preference.ts";
import { feedbackOf, teacherTurnOf } from "../preferences/feedback-turns.ts";
import { promptsOf } from "./batches.ts";
import {
  lockPath,
  runPaths,
  summaryPath,
  type BaselineFile,
  type MetadataFile,
  type PreferenceSummary,
  type Rollout,
  type StepLine,
  type SummaryFile,
} from "./files.ts";
import { lookAt, type Looking } from "./measure-model.ts";
import { agreedMetadata, jsonText, linesOf, readEarlier } from "./run-files.ts";
import { summaryOf } from "./summary.ts";

export interface HarnessPorts {
  readonly engine: FeedbackEngine;
  /** Default the system's. Nothing is decided by it. */
  readonly now?: () => Date;
  readonly signal?: AbortSignal;
  /** Told after each step that is on disk, and after the baseline (`line` null). */
  readonly onStep?: (preference: string, line: StepLine | null, summary: PreferenceSummary) => void;
}

/** Longest answer that is learned from. */
const answerTokens = 256;

interface Prepared {
  readonly preference: Preference;
  readonly grader: Grader;
}

/** What a line holds beside what is measured; kept in the checkpoint, for a line that a crash keeps from being written. */
interface Draft {
  readonly feedback: string;
  readonly rollouts: readonly Rollout[];
}

/**
 * Trains a model on feedback, preference by preference, each from the base with an adapter of its own: answers are drawn, told
 * the preference's feedback, and learned from; after each batch the model is looked at. Files lie in `output_dir`, as `files.ts`
 * has them; the summary is written anew after each step.
 *
 * A run that was cut off goes on in the same folder: no step is repeated or lost, and its lines are those of a run that was
 * not, times aside.
 *
 * @throws PeriodicEvalError `config` before anything is trained: for a preference that is not there or is wrong, a verifier
 *   that fails, or a folder of another run; `store` for a folder that is damaged or in use; and what the engine throws.
 */
export async function runHarness(config: HarnessConfig, ports: HarnessPorts): Promise<SummaryFile> {
  const { engine, now = () => new Date(), signal = new AbortController().signal } = ports;
  const prepared = await prepare(config, signal);
  const probes =
    config.collapse_probes === null ? collapseProbes : await readCollapseProbes(config.collapse_probes);
  await engine.check?.(signal);
  await mkdir(config.output_dir, { recursive: true });
  const release = await takeLock(lockPath(config.output_dir), nodeFiles);
  try {
    await removeTemporaryFiles(config.output_dir, (file) => file === basename(summaryPath("")));
    const summaries: Record<string, PreferenceSummary> = {};
    const tell = async (name: string, line: StepLine | null, summary: PreferenceSummary): Promise<void> => {
      summaries[name] = summary;
      await writeFileAtomic(summaryPath(config.output_dir), jsonText(fileOf(summaries, now())));
      ports.onStep?.(name, line, summary);
    };
    for (const one of prepared) await runPreference(one, { config, probes, engine, now, signal, tell });
    return fileOf(summaries, now());
  } finally {
    await release();
  }
}

const fileOf = (preferences: SummaryFile["preferences"], at: Date): SummaryFile => ({
  schema_version: 1,
  updated_at: at.toISOString(),
  preferences: { ...preferences },
});

/** What stands beside the preferences' folders. */
const ownNames = [basename(summaryPath("")), "plots", "index.html"];

/** Everything that can be wrong with the preferences shows here. */
async function prepare(config: HarnessConfig, signal: AbortSignal): Promise<readonly Prepared[]> {
  const prepared: Prepared[] = [];
  for (const named of config.preferences) {
    const preference = await readPreference(named, config.preferences_dir);
    const { name } = preference;
    if (ownNames.includes(name.toLowerCase()))
      throw new PeriodicEvalError({
        code: "config",
        where: "preferences",
        got: `one of the name "${name}"`,
        expected: `a name other than ${ownNames.join(", ")}`,
        fix: "Rename it in its file: what is found out about it lies in a folder of its name.",
      });
    if (prepared.some((one) => one.preference.name.toLowerCase() === name.toLowerCase()))
      throw new PeriodicEvalError({
        code: "config",
        where: "preferences",
        got: `two of the name "${name}"`,
        expected: "names that differ",
        fix: "Rename one in its file: what is found out about it lies in a folder of its name.",
      });
    prepared.push({ preference, grader: await openVerifier(preference, { signal }) });
  }
  return prepared;
}

interface Running {
  readonly config: HarnessConfig;
  readonly probes: CollapseProbes;
  readonly engine: FeedbackEngine;
  readonly now: () => Date;
  readonly signal: AbortSignal;
  readonly tell: (name: string, line: StepLine | null, summary: PreferenceSummary) => Promise<void>;
}

async function runPreference({ preference, grader }: Prepared, running: Running): Promise<void> {
  const { config, engine, now, signal, tell, probes } = running;
  const paths = runPaths(config.output_dir, preference.name);
  const earlier = await readEarlier(paths);
  const { folder: _, ...definition } = preference;
  const startedAt = now().toISOString();
  const metadata = agreedMetadata(
    paths,
    {
      schema_version: 1,
      preference: preference.name,
      lora_id: `${config.lora_id_prefix}-${preference.name}-${startedAt.replaceAll(/[-:.]/g, "")}`,
      started_at: startedAt,
      config,
      preference_definition: definition,
      grader: { name: grader.name, fingerprint: grader.fingerprint },
      collapse_thresholds: writtenThresholds(collapsePresets.claas),
      engine: engine.describe(),
    } satisfies MetadataFile,
    earlier.metadata,
  );
  const { lora_id: loraId } = metadata;
  if (earlier.baseline !== null && earlier.lines.length >= config.num_steps)
    return tell(preference.name, null, summaryOf(earlier.baseline, earlier.lines, config.num_steps));
  const { training, steps_per_batch: stepsPerBatch, seed } = config;
  const model = await engine.open({ loraId, training, stepsPerBatch, seed, folder: paths.folder, signal });
  try {
    const lines = [...(await linesOf(paths, earlier, model.trained))];
    // Not before the model could be opened: a wrong one is not this run's.
    if (earlier.metadata === null) await writeFileAtomic(paths.metadata, jsonText(metadata));
    const thresholds = readThresholds(metadata.collapse_thresholds);
    const looking = { config, preference, grader, probes, thresholds, model, signal };
    const baseline = earlier.baseline ?? (await keepBaseline(paths.baseline, looking, loraId, now));
    await tell(preference.name, null, summaryOf(baseline, lines, config.num_steps));
    while (lines.length < config.num_steps) {
      signal.throwIfAborted();
      const step = lines.length;
      const began = now();
      const { last, updates } = model.trained;
      // Trained before the crash that kept its line from being written.
      const { record, report } =
        updates > step && last?.step === step
          ? { record: last, report: last.report }
          : await train(looking, step);
      const line = await lineOf(looking, { record, report, began, now, baseline });
      await appendLines(paths.steps, [JSON.stringify(line)]);
      lines.push(line);
      await tell(preference.name, line, summaryOf(baseline, lines, config.num_steps));
    }
  } finally {
    await model.dispose();
  }
}

async function keepBaseline(
  path: string,
  looking: Looking,
  loraId: string,
  now: () => Date,
): Promise<BaselineFile> {
  const look = await lookAt(looking, 0, null);
  const baseline: BaselineFile = {
    preference: looking.preference.name,
    lora_id: loraId,
    timestamp: now().toISOString(),
    ...look,
  };
  await writeFileAtomic(path, jsonText(baseline));
  return baseline;
}

async function train(
  { config, preference, grader, model, signal }: Looking,
  step: number,
): Promise<{ readonly record: UpdateRecord; readonly report: UpdateReport }> {
  const { name, train_prompts: prompts } = preference;
  const asked = promptsOf(prompts, step, config.batch_size, config.seed);
  const requests = asked.map((prompt, at) => ({
    prompt,
    maxNewTokens: answerTokens,
    seed: seedOf(String(config.seed), name, "training", step, at),
  }));
  const answers = await model.sample(requests, signal);
  const rewards = (
    await grader.grade(
      answers.map(({ text }, at) => ({ question: asked[at]!, answer: text })),
      { signal },
    )
  ).map(rewardOf);
  const feedback = feedbackOf(preference, config.feedback_repetitions);
  const rollouts = answers.map(({ text }, at): Rollout => ({
    of: "training",
    prompt: asked[at]!,
    response: text,
    score: rewards[at]!,
  }));
  const draft: Draft = { feedback, rollouts };
  const kept = JSON.parse(JSON.stringify(draft)) as Json;
  const record: UpdateRecord = {
    // By what was trained on: the checkpoint and the step's line both carry it.
    stepId: hashJson({ name, step, seed: config.seed, draft: kept }),
    step,
    draft: kept,
  };
  const batch = answers.map((answer, at) => {
    const prompt = asked[at]!;
    return {
      prompt,
      answer,
      feedback,
      teacherTurn: teacherTurnOf(preference, { prompt, response: answer.text, feedback }),
    };
  });
  return { record, report: await model.update(batch, record, signal) };
}

interface Trained {
  readonly record: UpdateRecord;
  readonly report: UpdateReport;
  readonly began: Date;
  readonly now: () => Date;
  readonly baseline: BaselineFile;
}

async function lineOf(
  looking: Looking,
  { record, report, began, now, baseline }: Trained,
): Promise<StepLine> {
  const { feedback, rollouts } = record.draft as unknown as Draft;
  const { eval: seen } = await lookAt(looking, record.step + 1, baseline);
  const ended = now();
  return {
    preference: looking.preference.name,
    step: record.step,
    timestamp: ended.toISOString(),
    feedback_given: feedback,
    sdpo_metrics: { step_id: record.stepId, ...report.metrics },
    eval: { ...seen, rollouts: [...rollouts, ...seen.rollouts] },
    prompt_used: rollouts[0]!.prompt,
    response_text: rollouts[0]!.response,
    timing_s: (ended.getTime() - began.getTime()) / 1000,
    sub_step_count: report.subSteps,
  };
}
