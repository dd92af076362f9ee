import { phaseData } from "../run/phase-data.ts";
import { resultsData } from "../results/results-data.ts";
import type { ReadRun, RunContent } from "./read-run.ts";

/** Returns a run as JSON: its state and a summary of its results. */
export const shortData = (read: ReadRun) => ({
  ...about(read),
  ...(read.content && summaryOf(read.content)),
});

/** Returns a run as JSON, with everything from its files. */
export const wholeData = (read: ReadRun) => ({
  ...shortData(read),
  ...(read.content && detailsOf(read.content)),
});

const about = ({ found, state, problem }: ReadRun) => ({
  results_dir: found.path,
  kind: found.kind,
  state: state.state,
  state_told: state.explanation,
  written_at: found.writtenAt.toISOString(),
  problem,
});

function summaryOf(content: RunContent) {
  switch (content.kind) {
    case "callbacks":
      return { phases: phaseData(content.run), problems: content.run.problems };
    case "feedback":
      return { summary: content.run.summary };
    case "results":
      return resultsData(content.summary);
  }
}

function detailsOf(content: RunContent) {
  switch (content.kind) {
    case "callbacks": {
      const { run, answers } = content;
      const unreadable = answers.flatMap(({ problem }) => problem?.message ?? []);
      return {
        snapshots: run.phases.flatMap(({ snapshots }) => snapshots),
        superseded: run.superseded,
        answers: answers.flatMap(({ problem, ...readable }) => (problem === null ? [readable] : [])),
        answers_problem: unreadable.length === 0 ? null : unreadable.join("\n"),
      };
    }
    case "feedback":
      return {
        preferences: content.run.preferences.map(({ name, metadata, baseline, steps }) => ({
          name,
          metadata,
          baseline,
          steps,
        })),
      };
    case "results":
      return { runs: content.summary.runs };
  }
}
