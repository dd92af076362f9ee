import { join } from "node:path/posix";
import type { RunRecord } from "@periodic-eval/contracts";
import type { Json } from "@periodic-eval/core";
import { readRun, readWriter, type FileReader } from "@periodic-eval/store";
import { panelGroups, type PanelGroup } from "../feedback/panels.ts";
import { readFeedback, type FeedbackRun } from "../feedback/read-feedback.ts";
import { isMap, ownValue, problemText } from "../html/format.ts";
import type { ResultsRun, RunSamples } from "../results/paired-change.ts";
import {
  hasMethods,
  summarizeMethods,
  type MethodsSummary,
  resultsData,
} from "../results/summarize-methods.ts";
import { summarizeResults, type ResultsSummary } from "../results/summarize-results.ts";
import { phaseData } from "../run/phase-summary.ts";
import { runState, stateOfWriter, unwritten, type RunState } from "../run/run-state.ts";
import type { ContainedFiles } from "./contained-files.ts";
import { feedbackLock, partialResults, type FoundRun } from "./find-runs.ts";
import type { rowReader } from "./row-index.ts";
import { rowProblems } from "./stored-answers.ts";

/** The content of a run's files. */
export type RunContent =
  | {
      readonly kind: "callbacks";
      /** Its problems include those of its rows. */
      readonly run: RunRecord;
    }
  | { readonly kind: "feedback"; readonly run: FeedbackRun; readonly groups: readonly PanelGroup[] }
  | {
      readonly kind: "results";
      readonly summary: ResultsSummary;
      /** Null if no run names a method. */
      readonly methods: MethodsSummary | null;
    };

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
  /** Returns the measured run that is kept in memory if no file has changed, else the one that `make` reads, and keeps it. */
  readonly record: (make: () => Promise<RunRecord>) => Promise<RunRecord>;
  readonly rows: ReturnType<typeof rowReader>;
}

/** Reads a run. Reports damaged files in the result instead of throwing. */
export async function readFound(run: FoundRun, options: ReadOptions): Promise<ReadRun> {
  try {
    return { found: run, problem: null, ...(await readers[run.kind](run, options)) };
  } catch (error) {
    const lockState = await stateFromLock(run, options.files).catch(() => null);
    const problem = problemText(error);
    const state = lockState ?? { state: "unknown", explanation: "The files of this run cannot be read." };
    return { found: run, state, content: null, problem };
  }
}

interface Read {
  readonly state: RunState;
  readonly content: RunContent;
}

const readers: Readonly<Record<FoundRun["kind"], (run: FoundRun, options: ReadOptions) => Promise<Read>>> = {
  async callbacks({ path }, { files, rows, record }) {
    const read = await record(
      // Rows are verified where they are read: all of a large run do not fit into memory.
      async () => readRun(path, files, { rows: false }),
    );
    const run = { ...read, problems: [...read.problems, ...(await rowProblems(read, { files, rows }))] };
    return { state: runState(run), content: { kind: "callbacks", run } };
  },
  async feedback({ path, writtenAt }, { files }) {
    const lockState = stateOfWriter(await readWriter(join(path, feedbackLock), files));
    const hasSummary = (await files.list(path)).some(({ name }) => name === "summary.json");
    const run = hasSummary ? await readFeedback(path, files) : emptyFeedback(path, writtenAt);
    const groups = panelGroups(run);
    return { state: lockState ?? stateOfFeedback(run), content: { kind: "feedback", run, groups } };
  },
  async results({ path }, { files, readResults }) {
    const entries = await files.list(path);
    const hasMetrics = entries.some(({ name }) => name === "metrics.json");
    const empty = { runs: [], samples: [] };
    const { runs, samples } = hasMetrics ? await readResults!(join(path, "metrics.json"), files) : empty;
    return {
      state: await stateOfResults(path, entries, files),
      content: {
        kind: "results",
        summary: summarizeResults(runs, 0, samples),
        methods: hasMethods(runs) ? summarizeMethods(runs, samples) : null,
      },
    };
  },
};

/** Returns the data of a run that has no summary yet: the summary is first written after the baseline measurement. */
const emptyFeedback = (output: string, at: Date): FeedbackRun => ({
  output,
  summary: { schema_version: 1, updated_at: at.toISOString(), preferences: {} },
  preferences: [],
});

/** Returns the state of a run that could not be read, from its lock; null if no process holds it. */
async function stateFromLock({ path, kind }: FoundRun, files: ContainedFiles): Promise<RunState | null> {
  if (kind === "results") {
    const state = await stateOfResults(path, await files.list(path), files);
    return state.state === "finished" ? null : state;
  }
  const lock = kind === "feedback" ? feedbackLock : "periodic_eval/.lock";
  return stateOfWriter(await readWriter(join(path, lock), files));
}

function stateOfFeedback({ preferences }: FeedbackRun): RunState {
  const unfinished = preferences.find(({ summary }) => summary.status !== "finished");
  // The configuration of the newest preference lists all preferences of the run.
  const config = preferences.at(-1)?.metadata.config as Json | undefined;
  const listed = isMap(config) ? ownValue(config, "preferences") : undefined;
  const planned = Array.isArray(listed) ? listed.length : preferences.length;
  if (preferences.length === 0) return unwritten("interrupted", "It has no measurements.");
  if (unfinished !== undefined) {
    const { name, steps, metadata } = unfinished;
    const ended = `${steps.length} of ${metadata.config.num_steps} steps`;
    return unwritten("interrupted", `Training of ${name} ended after ${ended}.`);
  }
  return preferences.length < planned
    ? unwritten("interrupted", `It trained ${preferences.length} of ${planned} preferences.`)
    : unwritten("finished", "Training finished for all preferences.");
}

/** Returns the state of a suite. Each model that is being measured has a lock and a file of partial results. */
async function stateOfResults(
  path: string,
  entries: Awaited<ReturnType<ContainedFiles["list"]>>,
  files: ContainedFiles,
): Promise<RunState> {
  const unfinished = entries.flatMap(({ name }) => partialResults.exec(name)?.[1] ?? []);
  for (const name of unfinished) {
    const lockState = stateOfWriter(await readWriter(join(path, `.metrics.${name}.lock`), files));
    if (lockState !== null) return { ...lockState, explanation: `${name}: ${lockState.explanation}` };
  }
  return unfinished.length > 0
    ? unwritten("interrupted", `${unfinished.join(", ")} did not finish.`)
    : unwritten("finished", "All runs finished.");
}

/** Returns a run as JSON: its state and a summary of its results; `isWhole`: everything from its files. */
export const runJson = ({ found, state, content, problem }: ReadRun, isWhole: boolean) => ({
  results_dir: found.path,
  kind: found.kind,
  state: state.state,
  state_told: state.explanation,
  written_at: found.writtenAt.toISOString(),
  problem,
  ...(content && contentJson(content, isWhole)),
});

function contentJson(content: RunContent, isWhole: boolean) {
  switch (content.kind) {
    case "callbacks": {
      const { phases, problems, superseded } = content.run;
      const snapshots = phases.flatMap((phase) => phase.snapshots);
      return { phases: phaseData(content.run), problems, ...(isWhole && { snapshots, superseded }) };
    }
    case "feedback": {
      const { summary, preferences } = content.run;
      const filesOf = ({ name, metadata, baseline, steps }: (typeof preferences)[number]) => ({
        name,
        metadata,
        baseline,
        steps,
      });
      return { summary, ...(isWhole && { preferences: preferences.map(filesOf) }) };
    }
    case "results":
      return { ...resultsData(content.summary), ...(isWhole && { runs: content.summary.runs }) };
  }
}
