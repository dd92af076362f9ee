import { existsSync } from "node:fs";
import * as z from "zod";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { configError, errorMessage, fileError, parseContent } from "@periodic-eval/contracts/options";
import { makeFolder, readIfPresent, removeTemporaryFiles, writeFileAtomic } from "@periodic-eval/store";
import type { TrainedState } from "../engine/types.ts";
import type { BaselineFile, MetadataFile, runPaths, StepLine } from "./files.ts";

type Paths = ReturnType<typeof runPaths>;

// The fields that a resume reads. A file without them was damaged or edited.
const object = z.looseObject({});
const part = object.nullable();
const collapse = z.looseObject({ alerts: z.array(z.string()), unknown: object }).nullable();
const measured = z.looseObject({
  logprob_margin: part,
  preference_compliance: part,
  general: part,
  collapse,
});
const stepSchema = z.looseObject({ sdpo_metrics: z.looseObject({ step_id: z.string() }), eval: measured });
const baselineSchema = z.looseObject({
  lora_id: z.string(),
  eval: measured,
  margin_rows: z.array(z.looseObject({ id: z.string() })).nullable(),
  collapse_reference: part,
});
const metadataSchema = z.looseObject({
  lora_id: z.string(),
  config: object,
  preference_definition: object,
  grader: z.looseObject({ fingerprint: z.string() }),
});

export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Files of an earlier start in a preference's folder. */
export interface EarlierRun {
  readonly metadata: MetadataFile | null;
  readonly baseline: BaselineFile | null;
  readonly lines: readonly StepLine[];
}

/**
 * Reads the files of an earlier start. Drops an incomplete last line, which a crash left: the checkpoint contains its step.
 *
 * @throws PeriodicEvalError `store` for any other damage.
 */
export async function readEarlier(paths: Paths): Promise<EarlierRun> {
  await makeFolder(paths.folder);
  await removeTemporaryFiles(paths.folder, () => true);
  const text = (await readIfPresent(paths.steps)) ?? "";
  const end = text.lastIndexOf("\n") + 1;
  // After a failed sync, a power cut can still lose the lines that the next steps build on.
  if (text !== "") await writeFileAtomic(paths.steps, text.slice(0, end));
  const whole = text.slice(0, end).split("\n").slice(0, -1);
  const lines = whole.map((line, at) => parse<StepLine>(`${paths.steps}:${at + 1}`, line, stepSchema));
  lines.forEach(({ step }, at) => {
    if (step !== at) throw damaged(`${paths.steps}:${at + 1}`, `step ${String(step)}`, `step ${at}`);
  });
  const read = async <T>(path: string, schema: z.ZodType) => {
    const content = await readIfPresent(path);
    return content === null ? null : parse<T>(path, content, schema);
  };
  return {
    metadata: await read<MetadataFile>(paths.metadata, metadataSchema),
    baseline: await read<BaselineFile>(paths.baseline, baselineSchema),
    lines,
  };
}

/**
 * Returns the lines of the steps in the checkpoint. Drops lines of later steps, whose checkpoint was lost: those steps are
 * trained again.
 *
 * @throws PeriodicEvalError `store` if checkpoint and lines are from different runs.
 */
export async function linesOf(
  paths: Paths,
  { lines, baseline }: EarlierRun,
  { updates, last }: TrainedState,
): Promise<readonly StepLine[]> {
  if (updates > lines.length + 1)
    throw damaged(
      paths.steps,
      `${lines.length} lines and a checkpoint of ${updates} updates`,
      "a line for each update but the last",
    );
  if (baseline === null && (updates > 0 || lines.length > 0))
    throw damaged(
      paths.baseline,
      `no file, but a model after ${updates} updates`,
      "the baseline, measured before any update",
    );
  const trained = lines.slice(0, updates);
  const lastId = trained.at(updates - 1)?.sdpo_metrics.step_id;
  if (lastId !== undefined && updates > 0 && lastId !== last?.stepId)
    throw damaged(
      `${paths.steps}:${updates}`,
      `the step ${lastId}`,
      `${last?.stepId ?? "a step"}, the step of the checkpoint`,
    );
  if (trained.length < lines.length)
    await writeFileAtomic(paths.steps, trained.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return trained;
}

/** Configuration keys that may change when a run resumes. */
const changeableKeys = ["num_steps", "plots", "preferences", "output_dir"] as const;

/**
 * Returns the stored metadata if it agrees with this run's, or this run's if there is no stored one.
 *
 * @throws PeriodicEvalError `config` if the run in the folder has a different configuration.
 */
export function agreedMetadata(paths: Paths, now: MetadataFile, before: MetadataFile | null): MetadataFile {
  if (before === null) {
    if (existsSync(paths.steps))
      throw damaged(paths.metadata, "no file beside steps.jsonl", "the metadata of the steps");
    return now;
  }
  const fixedValues = ({
    config,
    preference_definition,
    general_questions = [],
    grader,
    engine,
  }: MetadataFile): Record<string, Json> => {
    const fixed = Object.entries(config).filter(
      ([key]) => !(changeableKeys as readonly string[]).includes(key),
    );
    return JSON.parse(
      JSON.stringify({
        ...Object.fromEntries(fixed),
        preference_definition,
        general_questions,
        grader,
        engine,
      }),
    ) as Record<string, Json>;
  };
  const [current, written] = [fixedValues(now), fixedValues(before)];
  const differs = Object.keys({ ...written, ...current }).filter(
    (key) => canonicalJson(current[key] ?? null) !== canonicalJson(written[key] ?? null),
  );
  if (differs.length === 0) return before;
  throw configError({
    where: paths.metadata,
    got: `different values of ${differs.join(", ")}`,
    expected: "the values that the run started with",
    fix: "Choose another output_dir for another run.",
  });
}

function parse<T>(where: string, text: string, schema: z.ZodType): T {
  try {
    return parseContent(schema, JSON.parse(text), { code: "store", where, fix: startOver }) as T;
  } catch (error) {
    if (PeriodicEvalError.is(error)) throw error;
    throw damaged(where, errorMessage(error), "JSON");
  }
}

const startOver = "Choose another output_dir, or remove the preference's folder to train it again.";

const damaged = (where: string, got: string, expected: string): PeriodicEvalError =>
  fileError(where, got, expected, startOver);
