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

/** What its files say of a run. */
export type RunContent =
  | {
      readonly kind: "callbacks";
      readonly run: RunRecord;
      readonly answers: readonly KeptAnswers[];
      readonly unread: string | null;
    }
  | { readonly kind: "feedback"; readonly run: FeedbackRun; readonly groups: readonly PanelGroup[] }
  | { readonly kind: "results"; readonly summary: ResultsSummary };

/** A run that was read; `content` null where its files cannot be, and `problem` says why. */
export type ReadRun = { readonly found: FoundRun; readonly state: RunState } & (
  | { readonly content: RunContent; readonly problem: null }
  | { readonly content: null; readonly problem: string }
);

/** Runs of a `metrics.json`, and what their documents add, where samples stand beside it. */
export interface ReadResults {
  readonly runs: readonly ResultsRun[];
  readonly samples: readonly RunSamples[];
}

export interface ReadOptions {
  readonly files: ContainedFiles;
  /** Null where nobody can read results of benchmarks. */
  readonly readResults: ((file: string, fs: FileReader) => Promise<ReadResults>) | null;
  /** Most kept answers of a callback; 0: none are read. */
  readonly mostAnswers: number;
}

/** Reads a run, as far as it can be; whatever is wrong with its files is told, and never thrown. */
export async function readFound(found: FoundRun, options: ReadOptions): Promise<ReadRun> {
  try {
    return { found, problem: null, ...(await readers[found.kind](found, options)) };
  } catch (error) {
    const held = await heldBy(found, options.files).catch(() => null);
    const problem = errorMessage(error).replace(/^\[periodic-eval\] /, "");
    const state = held ?? { state: "unknown", explanation: "Its files cannot be read." };
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
      const run = isThere ? await readFeedback(path, files) : justBegun(path, writtenAt);
      const groups = panelGroups(run);
      return { state: held ?? stateOfFeedback(run), content: { kind: "feedback", run, groups } };
    },
    async results({ path }, { files, readResults }) {
      const entries = await files.list(path);
      const isThere = entries.some(({ name }) => name === "metrics.json");
      const none = { runs: [], samples: [] };
      const { runs, samples } = isThere ? await readResults!(join(path, "metrics.json"), files) : none;
      return {
        state: await stateOfResults(path, entries, files),
        content: { kind: "results", summary: summarizeResults(runs, 0, samples) },
      };
    },
  };

/** The summary is first written once the baseline was looked at. */
const justBegun = (output: string, at: Date): FeedbackRun => ({
  output,
  summary: { schema_version: 1, updated_at: at.toISOString(), preferences: {} },
  preferences: [],
});

/** Who holds a run that could not be read. */
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
    return { state: "stopped", explanation: "Nobody holds this run, and no preference was looked at." };
  const open = preferences.find(({ summary }) => summary.status !== "finished");
  if (open !== undefined)
    return {
      state: "stopped",
      explanation: `Nobody holds this run, and ${open.name} ended after step ${open.steps.length - 1} of ${open.metadata.config.num_steps}.`,
    };
  // What the last preference was begun with names those that were to come.
  const config = preferences.at(-1)?.metadata.config as Json | undefined;
  const asked = isMap(config) ? ownValue(config, "preferences") : undefined;
  const due = Array.isArray(asked) ? asked.length : preferences.length;
  return preferences.length < due
    ? {
        state: "stopped",
        explanation: `Nobody holds this run, and ${preferences.length} of ${due} preferences were trained on.`,
      }
    : {
        state: "finished",
        explanation: "Nobody holds this run, and all its preferences were trained on to their last step.",
      };
}

/** By the models that are being measured: each has a lock, and what it has so far in a file of its own. */
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
        explanation: `Nobody measures here, and ${begun.join(", ")} did not come to the end.`,
      }
    : { state: "finished", explanation: "Nobody measures here; these runs came to their end." };
}
