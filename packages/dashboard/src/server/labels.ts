import { basename, dirname, join } from "node:path/posix";
import type { RunRecord } from "@periodic-eval/contracts";
import { nodeFiles, readIfPresent, withLock, writeFileAtomic, type FileReader } from "@periodic-eval/store";
import * as z from "zod";
import { rowsPlace } from "../answers/answered-measurements.ts";
import type { MeasurementAnswers } from "../page-data/answers-data.ts";
import type { ContainedFiles } from "./contained-files.ts";

const grade = z
  .number("a number from 0 to 100, or null")
  .min(0, "0 or more")
  .max(100, "at most 100")
  .nullable();

/** A person's grades of an answer, in the columns of `eval --graded`. */
export const labelSchema = z.strictObject({
  question_id: z.string("a string"),
  sample: z.int("an integer").min(0, "0 or more"),
  aligned: grade,
  coherent: grade,
});

export type Label = z.infer<typeof labelSchema>;

/** Names an answer within its measurement. */
export const labelKey = (item: string, sample: number): string => JSON.stringify([item, sample]);

const keyOf = ({ question_id: item, sample }: Label): string => labelKey(item, sample);

/** Returns the path of the labels of a measurement, beside the run. Other answers, measured later at the same step, have another file. */
export function labelsFile(run: RunRecord, measurement: MeasurementAnswers): string {
  const { snapshotFile, samples } = rowsPlace(run, measurement);
  const name = `${basename(dirname(snapshotFile))}.${basename(snapshotFile, ".json")}`;
  return join(run.runDir, `labels.${name}.${samples?.sha256?.slice(0, 12) ?? "unverified"}.jsonl`);
}

/** Returns the labels in a file by `labelKey`. Leaves out damaged lines. */
export async function readLabels(file: string, files: FileReader): Promise<Map<string, Label>> {
  const text = (await readIfPresent(file, files)) ?? "";
  const labels = text.split("\n").flatMap((line): readonly Label[] => {
    try {
      return [labelSchema.parse(JSON.parse(line))];
    } catch {
      return [];
    }
  });
  return new Map(labels.map((label) => [keyOf(label), label]));
}

/**
 * Saves a label. It replaces an earlier label of the same answer; labels that others save at the same time stay.
 *
 * @throws PeriodicEvalError `store` if the file cannot be written.
 */
export async function saveLabel(
  file: string,
  label: Label,
  files: Pick<ContainedFiles, "list" | "read" | "realPath">,
): Promise<void> {
  // The file is replaced, so that a link in its place leads nowhere else.
  const folder = files.realPath(dirname(file));
  const name = basename(file);
  const save = async () => {
    const labels = (await readLabels(file, files)).set(keyOf(label), label);
    const lines = [...labels.values()].map((one) => `${JSON.stringify(one)}\n`);
    await writeFileAtomic(join(folder, name), lines.join(""));
  };
  await withLock(join(folder, `.${name}.lock`), save, { fs: nodeFiles, waitSeconds: 10 });
}
