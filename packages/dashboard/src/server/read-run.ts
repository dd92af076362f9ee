import { join } from "node:path/posix";
import type { Json } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { readRun, readWriter, type FileReader, type RunRecord } from "@periodic-eval/core/snapshots";
import { panelGroups, type PanelGroup } from "../feedback/panels.ts";
import { readFeedback, type FeedbackRun } from "../feedback/read-feedback.ts";
import { isMap, ownValue } from "../html/json-field.ts";
import type { ResultsRun, RunSamples } from "../results/results-run.ts";
import { summarizeResults, type ResultsSummary } from "../results/summarize-results.ts";
import { runState, stateOfWriter, type RunState } from "../run/run-state.ts";
import type { ContainedFiles } from "./contained-files.ts";
import { feedbackLock, partialResults, type FoundRun } from "./find-runs.ts";
import { keptAnswers, type KeptAnswers } from "./kept-answers.ts";

/** The content of a run's files. */
export type RunContent =
  | {
      readonly kind: "callbacks";
      readonly run: RunRecord;
      readonly answers: readonly KeptAnswers[];
      readonly unread: string | null;
    }
  | { readonly kind: "feedback"; readonly run: FeedbackRun; readonly groups: readonly PanelGroup[] }
  | { readonly kind: "results"; readonly summary: ResultsSummary };

/** A run after reading. If its files cannot be read, `content` is null and `problem` has the reason. */
export type ReadRun = { readonly found: FoundRun; readonly state: RunState } & (
  | { readonly content: RunContent; readonly problem: null }
  | { readonly content: null; readonly problem: string }
);

/** The runs of a `metrics.json`, and their documents if there are sample files. */
export interface ReadResults {
  readonly runs: readonly ResultsRun[];
  readonly samples: readonly RunSamples[];
}

export interface ReadOptions {
  readonly files: ContainedFiles;
  /** Null if benchmark results are not shown. */
  readonly readResults: ((file: string, fs: FileReader) => Promise<ReadResults>) | null;
  /** Number of stored answers to read per callback. */
  readonly mostAnswers: number;
}

/** Reads a run. Reports damaged files in the result instead of throwing. */
export async function readFound(found: FoundRun, options: ReadOptions): Promise<ReadRun> {
  try {
    return { found, problem: null, ...(await readers[found.kind](found, options)) };
  } catch (error) {
    const held = await heldBy(found, options.files).catch(() => null);
    const problem = errorMessage(error).replace(/^\[periodic-eval\] /, "");
    const state = held ?? { state: "unknown", explanation: "The files of this run cannot be read." };
    return { found, state, content: null, problem };
  }
}

interface Read {
  readonly state: RunState;
  readonly content: RunContent;
}

const readers: Readonly<Record<FoundRun["kind"], (found: FoundRun, options: ReadOptions) => Promise<Read>>> =
  {
    async callbacks({ path }, { files, mostAnswers }) {
      const run = await readRun(path, files);
      const reading = mostAnswers === 0 ? Promise.resolve([]) : keptAnswers(run, files, mostAnswers);
      const kept = await reading.then(
        (answers) => ({ answers, unread: null }),
        (error: unknown) => ({ answers: [], unread: errorMessage(error).replace(/^\[periodic-eval\] /, "") }),
      );
      return { state: runState(run), content: { kind: "callbacks", run, ...kept } };
    },
    async feedback({ path, writtenAt }, { files }) {
      const held = stateOfWriter(await readWriter(join(path, feedbackLock), files));
      const isThere = (await files.list(path)).some(({ name }) => name === "summary.json");
      const run = isThere ? await readFeedback(path, files) : emptyFeedback(path, writtenAt);
      const groups = panelGroups(run);
      return { state: held ?? stateOfFeedback(run), content: { kind: "feedback", run, groups } };
    },
    async results({ path }, { files, readResults }) {
      const entries = await files.list(path);
      const isThere = entries.some(({ name }) => name === "metrics.json");
      const empty = { runs: [], samples: [] };
      const { runs, samples } = isThere ? await readResults!(join(path, "metrics.json"), files) : empty;
      return {
        state: await stateOfResults(path, entries, files),
        content: { kind: "results", summary: summarizeResults(runs, 0, samples) },
      };
    },
  };

/** Returns the data of a run without a summary, which is first written after the baseline measurement. */
const emptyFeedback = (output: string, at: Date): FeedbackRun => ({
  output,
  summary: { schema_version: 1, updated_at: at.toISOString(), preferences: {} },
  preferences: [],
});

/** Returns the state of a run that could not be read, from its lock; null if no process holds it. */
async function heldBy({ path, kind }: FoundRun, files: ContainedFiles): Promise<RunState | null> {
  if (kind === "results") {
    const state = await stateOfResults(path, await files.list(path), files);
    return state.state === "finished" ? null : state;
  }
  const lock = kind === "feedback" ? feedbackLock : "periodic_eval/.lock";
  return stateOfWriter(await readWriter(join(path, lock), files));
}

function stateOfFeedback({ preferences }: FeedbackRun): RunState {
  if (preferences.length === 0)
    return { state: "stopped", explanation: "No process is writing this run, and it has no measurements." };
  const open = preferences.find(({ summary }) => summary.status !== "finished");
  if (open !== undefined)
    return {
      state: "stopped",
      explanation: `No process is writing this run. Training of ${open.name} ended after ${open.steps.length} of ${open.metadata.config.num_steps} steps.`,
    };
  // The configuration of the newest preference lists all preferences of the run.
  const config = preferences.at(-1)?.metadata.config as Json | undefined;
  const planned = isMap(config) ? ownValue(config, "preferences") : undefined;
  const plannedCount = Array.isArray(planned) ? planned.length : preferences.length;
  return preferences.length < plannedCount
    ? {
        state: "stopped",
        explanation: `No process is writing this run. It trained ${preferences.length} of ${plannedCount} preferences.`,
      }
    : {
        state: "finished",
        explanation: "No process is writing this run. Training finished for all preferences.",
      };
}

/** Returns the state of a suite. Each model that is being measured has a lock and a file of partial results. */
async function stateOfResults(
  path: string,
  entries: Awaited<ReturnType<ContainedFiles["list"]>>,
  files: ContainedFiles,
): Promise<RunState> {
  const begun = entries.flatMap(({ name }) => partialResults.exec(name)?.[1] ?? []);
  for (const name of begun) {
    const held = stateOfWriter(await readWriter(join(path, `.metrics.${name}.lock`), files));
    if (held !== null) return { ...held, explanation: `${name}: ${held.explanation}` };
  }
  return begun.length > 0
    ? {
        state: "stopped",
        explanation: `No process is measuring, and ${begun.join(", ")} did not finish.`,
      }
    : { state: "finished", explanation: "No process is measuring, and all runs finished." };
}
