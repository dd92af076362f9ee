import { basename, dirname, join } from "node:path/posix";
import { PeriodicEvalError, type RunRecord } from "@periodic-eval/contracts";
import { parseContent } from "@periodic-eval/contracts/options";
import { strictJson } from "@periodic-eval/data";
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

const storedLabel = z.object({
  question_id: z.string("a string"),
  sample: z.int("an integer").min(0, "0 or more"),
  aligned: grade,
  coherent: grade,
});

/** A person's grades of an answer, in the columns of `eval --graded`. A client sends no other columns; a file may have them. */
export const labelSchema = storedLabel.strict();

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

interface StoredLabel {
  readonly label: Label;
  /** The line, which may have further columns. */
  readonly line: string;
}

/**
 * Returns the labels in a file by `labelKey`. The later of two labels of an answer counts.
 *
 * @throws PeriodicEvalError `store` for a file that cannot be read, or with the number of its first damaged line.
 */
export async function readLabels(file: string, files: FileReader): Promise<Map<string, Label>> {
  return new Map((await readLines(file, files)).map(({ label }) => [keyOf(label), label]));
}

async function readLines(file: string, files: FileReader): Promise<readonly StoredLabel[]> {
  return ((await readIfPresent(file, files)) ?? "").split("\n").flatMap((line, at) => {
    if (line.trim() === "") return [];
    const error = { code: "store", where: `${file}:${at + 1}`, fix: "Correct or remove the line." } as const;
    const json = strictJson(line);
    if (json.fault !== null) throw new PeriodicEvalError({ ...json.fault, ...error });
    return [{ label: parseContent(storedLabel, json.value, error), line }];
  });
}

/**
 * Saves a label. It replaces an earlier label of the same answer. All other lines stay as they are, also those that others save at
 * the same time.
 *
 * @throws PeriodicEvalError `store` if the file cannot be written, or has a damaged line.
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
    const others = (await readLines(file, files)).filter((stored) => keyOf(stored.label) !== keyOf(label));
    const lines = [...others.map(({ line }) => line), JSON.stringify(label)];
    await writeFileAtomic(join(folder, name), lines.map((line) => `${line}\n`).join(""));
  };
  await withLock(join(folder, `.${name}.lock`), save, { fs: nodeFiles, waitSeconds: 10 });
}
