import { basename } from "node:path";
import type { Grader, Json } from "@periodic-eval/core";
import { hashJson, seedOf } from "@periodic-eval/core/random";
import { errorMessage, configError, modelError } from "@periodic-eval/contracts/options";
import { humanizeName } from "@periodic-eval/core/statistics";
import {
  appendLines,
  makeFolder,
  nodeFiles,
  removeTemporaryFiles,
  takeLock,
  writeFileAtomic,
} from "@periodic-eval/store";
import { completeHarnessConfig } from "../config/load-config.ts";
import type { HarnessConfig, HarnessConfigInput } from "../config/schema.ts";
import type { FeedbackEngine, UpdateRecord, UpdateReport } from "../engine/types.ts";
import { openVerifier, rewardOf, callUser, safeWarning, type OnWarning } from "../graders/open-verifier.ts";
import {
  collapseProbes,
  readCollapseProbes,
  type CollapseProbes,
  collapsePresets,
} from "../metrics/collapse.ts";
import { readGeneralQuestions, type GeneralQuestion } from "../metrics/general.ts";
import {
  readPlacedPreference,
  type PlacedPreference,
  type Preference,
  feedbackOf,
  teacherTurnOf,
} from "../preferences/preference.ts";
import { unknownResults, withTrainPrompts, promptsOf } from "../preferences/unknown-results.ts";
import { checkLengths } from "./check-lengths.ts";
import {
  lockPath,
  runPaths,
  summaryPath,
  unknownFields,
  type BaselineFile,
  type MetadataFile,
  type PreferenceSummary,
  type Rollout,
  type StepLine,
  type SummaryFile,
} from "./files.ts";
import { measureModel, type MeasureInputs } from "./measure-model.ts";
import { agreedMetadata, jsonText, linesOf, readEarlier } from "./run-files.ts";
import { summaryOf } from "./summary.ts";

export interface HarnessPorts {
  readonly engine: FeedbackEngine;
  /** Clock for timestamps. Default: the system's. */
  readonly now?: () => Date;
  readonly signal?: AbortSignal;
  /** Receives, before training, a line for each result that a preference cannot give. Default: `process.emitWarning`. */
  readonly onWarning?: (message: string) => void;
  /**
   * Called after each stored step, and after the baseline (with `line` null). Its errors become warnings.
   */
  readonly onStep?: (preference: string, line: StepLine | null, summary: PreferenceSummary) => void;
}

type OnStep = NonNullable<HarnessPorts["onStep"]>;

/** Maximum length of a training answer, in tokens. */
const answerTokens = 256;

interface Prepared {
  /** From `withTrainPrompts`. */
  readonly preference: Preference;
  /** As in its file. */
  readonly placed: PlacedPreference;
  readonly grader: Grader;
}

/** The part of a line that is not measured. The checkpoint stores it, so that the line can be written after a crash. */
interface Draft {
  readonly feedback: string;
  readonly rollouts: readonly Rollout[];
}

/**
 * Trains a model on feedback, one preference after the other, each from the base with a separate adapter. Each step samples
 * answers, trains on them with the preference's feedback, and measures the model. `files.ts` describes the files in
 * `output_dir`; the summary is rewritten after each step.
 *
 *     await runHarness({ preferences: ["concise"], num_steps: 5, output_dir: "runs/concise" }, { engine });
 *
 * An interrupted run resumes in the same folder. No step is repeated or lost, and its lines equal those of an uninterrupted run,
 * except for timestamps and durations.
 *
 * @param given Its keys and defaults are those of the configuration file; relative paths are relative to the working directory.
 * @throws PeriodicEvalError `config` before training: for a wrong key or value, a missing or wrong preference, a failing verifier, a prompt or
 *   answer beyond the model's context, or the folder of another run; `store` for a damaged folder or one in use; and the errors of the engine.
 */
export async function runHarness(given: HarnessConfigInput, ports: HarnessPorts): Promise<SummaryFile> {
  const { engine, now = () => new Date(), signal = new AbortController().signal } = ports;
  const config = completeHarnessConfig(given, now());
  const onWarning = safeWarning(ports.onWarning);
  const prepared = await prepare(config, signal, onWarning);
  const probes =
    config.collapse_probes === null ? collapseProbes : await readCollapseProbes(config.collapse_probes);
  const questions = config.general_probes === null ? null : await readGeneralQuestions(config.general_probes);
  await engine.check?.(signal);
  for (const { preference } of prepared)
    for (const [result, reason] of Object.entries(unknownResults(preference, config.metrics)))
      onWarning(`preference ${preference.name}: ${humanizeName(result)} will not be known: ${reason}`);
  await makeFolder(config.output_dir);
  const lease = await takeLock(lockPath(config.output_dir), nodeFiles, { onWait: onWarning });
  try {
    await removeTemporaryFiles(config.output_dir, (file) => file === basename(summaryPath("")));
    const summaries: Record<string, PreferenceSummary> = {};
    const report: Running["report"] = async (name, line, summary) => {
      summaries[name] = summary;
      await writeFileAtomic(summaryPath(config.output_dir), jsonText(fileOf(summaries, now())));
      callUser(
        () => ports.onStep?.(name, line, summary),
        (reason) => onWarning(`onStep of preference ${name}: ${reason}`),
      );
    };
    const placed = prepared.map((run) => run.placed);
    for (const run of prepared)
      await runPreference(run, { config, placed, probes, questions, engine, now, signal, onWarning, report });
    return fileOf(summaries, now());
  } finally {
    await lease.release();
  }
}

const fileOf = (preferences: SummaryFile["preferences"], at: Date): SummaryFile => ({
  schema_version: 1,
  updated_at: at.toISOString(),
  preferences: { ...preferences },
});

/** Names of other files and folders in `output_dir`, beside the folders of the preferences. */
const reservedNames = [basename(summaryPath("")), "plots", "index.html"];

/** Reads all preferences and opens their graders, so that their errors appear before training. */
async function prepare(
  config: HarnessConfig,
  signal: AbortSignal,
  onWarning: OnWarning,
): Promise<readonly Prepared[]> {
  const prepared: Prepared[] = [];
  for (const named of config.preferences) {
    const placed = await readPlacedPreference(named, config.preferences_dir);
    const preference = withTrainPrompts(placed.preference);
    const { name } = preference;
    if (reservedNames.includes(name.toLowerCase()))
      throw configError({
        where: "preferences",
        got: `a preference named "${name}"`,
        expected: `a name other than ${reservedNames.join(", ")}`,
        fix: "Rename it in its file: its results are stored in a folder with its name.",
      });
    if (prepared.some((earlier) => earlier.preference.name.toLowerCase() === name.toLowerCase()))
      throw configError({
        where: "preferences",
        got: `two preferences named "${name}"`,
        expected: "unique names",
        fix: "Rename one in its file: its results are stored in a folder with its name.",
      });
    prepared.push({ preference, placed, grader: await openVerifier(preference, { signal }, onWarning) });
  }
  return prepared;
}

interface Running {
  readonly config: HarnessConfig;
  /** All preferences of the run. */
  readonly placed: readonly PlacedPreference[];
  readonly probes: CollapseProbes;
  readonly questions: readonly GeneralQuestion[] | null;
  readonly engine: FeedbackEngine;
  readonly now: () => Date;
  readonly signal: AbortSignal;
  readonly onWarning: OnWarning;
  readonly report: (...step: Parameters<OnStep>) => Promise<void>;
}

async function runPreference({ preference, grader }: Prepared, running: Running): Promise<void> {
  const { config, placed, engine, now, signal, onWarning, report: publish, probes, questions } = running;
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
      ...(questions !== null && { general_questions: questions }),
      grader: { name: grader.name, fingerprint: grader.fingerprint },
      collapse_thresholds: collapsePresets.claas,
      engine: engine.describe(),
    } satisfies MetadataFile,
    earlier.metadata,
  );
  if (earlier.baseline !== null && earlier.lines.length >= config.num_steps)
    return publish(preference.name, null, summaryOf(earlier.baseline, earlier.lines, config));
  const { training, steps_per_batch: stepsPerBatch, seed } = config;
  const model = await engine.open({
    loraId: metadata.lora_id,
    training,
    stepsPerBatch,
    seed,
    folder: paths.folder,
    earlier: earlier.metadata?.engine ?? null,
    hasTeacherTurns: preference.hindsight !== null,
    signal,
  });
  const { loraId = metadata.lora_id, unknown = {} } = model;
  try {
    // The base model is the same for all preferences, so this also checks the later ones before any training.
    await checkLengths({ config, preferences: placed, probes, questions }, model);
    const lines = [...(await linesOf(paths, earlier, model.trained))];
    // The metadata is written after the model has opened, so that a wrong model does not claim the folder.
    const opened = { ...metadata, lora_id: loraId, engine: engine.describe(), ...unknownFields(unknown) };
    if (earlier.metadata === null) await writeFileAtomic(paths.metadata, jsonText(opened));
    const inputs = { config, preference, grader, probes, questions, model, signal };
    const baseline = earlier.baseline ?? (await writeBaseline(paths.baseline, inputs, loraId, now));
    await publish(preference.name, null, summaryOf(baseline, lines, config));
    while (lines.length < config.num_steps) {
      signal.throwIfAborted();
      const step = lines.length;
      const began = now();
      const { last, updates } = model.trained;
      // A crash after training prevented this step's line.
      const { record, report } =
        updates > step && last?.step === step
          ? { record: last, report: last.report }
          : await train(inputs, step);
      const line = await lineOf(inputs, { record, report, began, now, baseline });
      await appendLines(paths.steps, [JSON.stringify(line)]);
      lines.push(line);
      await publish(preference.name, line, summaryOf(baseline, lines, config));
    }
  } finally {
    // Every step is stored, or an error is on its way, which this one must not replace.
    try {
      await model.dispose();
    } catch (error) {
      onWarning(`preference ${preference.name}, the engine's dispose: ${errorMessage(error)}`);
    }
  }
}

async function writeBaseline(
  path: string,
  inputs: MeasureInputs,
  loraId: string,
  now: () => Date,
): Promise<BaselineFile> {
  const { unknown, ...measurement } = await measureModel(inputs, 0, null);
  const baseline: BaselineFile = {
    preference: inputs.preference.name,
    lora_id: loraId,
    timestamp: now().toISOString(),
    ...measurement,
    ...unknownFields(unknown),
  };
  await writeFileAtomic(path, jsonText(baseline));
  return baseline;
}

async function train(
  { config, preference, grader, model, signal }: MeasureInputs,
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
  if (answers.length !== requests.length) throw wrongAnswers(answers.length, requests.length);
  const graded = answers.map(({ text, finish }, at) => ({ question: asked[at]!, answer: text, finish }));
  const verdicts = await grader.grade(graded, { signal });
  const rewards = verdicts.map(rewardOf);
  const feedback = feedbackOf(preference, config.feedback_repetitions);
  const rollouts = answers.map(({ text }, at): Rollout => ({
    of: "training",
    prompt: asked[at]!,
    response: text,
    score: rewards[at]!,
  }));
  const draft: Draft = { feedback, rollouts };
  const draftJson = JSON.parse(JSON.stringify(draft)) as Json;
  const record: UpdateRecord = {
    // A hash of the training data. The checkpoint and the step's line contain it.
    stepId: hashJson({ name, step, seed: config.seed, draft: draftJson }),
    step,
    draft: draftJson,
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

const wrongAnswers = (got: number, expected: number) =>
  modelError(
    "the engine's sample",
    `${got} answers`,
    `${expected}, one per request`,
    "Correct the engine: it returns answers in the order of the requests.",
  );

interface Trained {
  readonly record: UpdateRecord;
  readonly report: UpdateReport;
  readonly began: Date;
  readonly now: () => Date;
  readonly baseline: BaselineFile;
}

async function lineOf(
  inputs: MeasureInputs,
  { record, report, began, now, baseline }: Trained,
): Promise<StepLine> {
  const { feedback, rollouts } = record.draft as unknown as Draft;
  const { eval: measured, unknown } = await measureModel(inputs, record.step + 1, baseline);
  const ended = now();
  return {
    preference: inputs.preference.name,
    step: record.step,
    timestamp: ended.toISOString(),
    feedback_given: feedback,
    sdpo_metrics: { step_id: record.stepId, ...report.metrics },
    eval: { ...measured, rollouts: [...rollouts, ...measured.rollouts] },
    prompt_used: rollouts[0]!.prompt,
    response_text: rollouts[0]!.response,
    timing_s: (ended.getTime() - began.getTime()) / 1000,
    sub_step_count: report.subSteps,
    ...unknownFields({ ...unknown, ...report.unknown }),
  };
}
