import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { readIfPresent, writeFileAtomic } from "@periodic-eval/store";
import * as z from "zod";
import type { TrainedState, UpdateRecord, UpdateReport } from "./types.ts";

/**
 * The requests that a run sent to a service which does not report its updates: `updates.json` in the preference's folder. It
 * takes the place of a checkpoint when the run resumes.
 */
export interface Journal {
  /** The adapter's name at the service. */
  readonly lora_id: string;
  /** Finished updates. */
  readonly updates: number;
  readonly last: TrainedState["last"];
  /** The update that was begun and not finished. */
  readonly sending: {
    readonly record: UpdateRecord;
    /** Requests whose reply arrived. */
    readonly replies: number;
    /** The report after these. */
    readonly report: UpdateReport;
    /** Whether one more request was sent whose reply has not arrived. */
    readonly in_flight: boolean;
  } | null;
}

const reasons = z.record(z.string(), z.string());
const report = z.strictObject({
  metrics: z.record(z.string(), z.number().nullable()),
  subSteps: z.int().nullable(),
  unknown: reasons.optional(),
});
const record = { stepId: z.string(), step: z.int(), draft: z.json() };
const schema: z.ZodType<Journal> = z.strictObject({
  lora_id: z.string().min(1),
  updates: z.int().min(0),
  last: z.strictObject({ ...record, report }).nullable(),
  sending: z
    .strictObject({
      record: z.strictObject(record),
      replies: z.int().min(0),
      report,
      in_flight: z.boolean(),
    })
    .nullable(),
}) as z.ZodType<Journal>;

const pathOf = (folder: string): string => join(folder, "updates.json");

export const writeJournal = (folder: string, journal: Journal): Promise<void> =>
  writeFileAtomic(pathOf(folder), `${JSON.stringify(journal, null, 2)}\n`);

/** @throws PeriodicEvalError `store` for a missing or damaged journal. */
export async function readJournal(folder: string): Promise<Journal> {
  const text = await readIfPresent(pathOf(folder));
  const parsed = schema.safeParse(text === null ? null : jsonOf(text));
  if (parsed.success) return parsed.data;
  throw new PeriodicEvalError({
    code: "store",
    where: pathOf(folder),
    got: text === null ? "no such file" : "a damaged file",
    expected: "the run's record of its requests to the service",
    fix: "Choose another output_dir, or remove the preference's folder to train a new adapter.",
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * Returns the journal of a resumed run. If the service trained, or may have trained, part of an unfinished update, the update
 * counts as finished: sending it again could train it twice. Its number of gradient steps is null if a reply is missing.
 */
export function settle(journal: Journal): Journal {
  const { sending, updates } = journal;
  if (sending === null) return journal;
  const { record, replies, report, in_flight: inFlight } = sending;
  if (replies === 0 && !inFlight) return { ...journal, sending: null };
  const settledReport: UpdateReport = inFlight
    ? {
        ...report,
        subSteps: null,
        unknown: {
          ...report.unknown,
          sub_step_count: `${report.subSteps === null ? "0 to" : `${replies} or`} ${replies + 1}: the service did not confirm request ${replies + 1}, and it does not report what it has trained`,
        },
      }
    : report;
  return { ...journal, updates: updates + 1, last: { ...record, report: settledReport }, sending: null };
}
