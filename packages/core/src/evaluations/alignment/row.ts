import type { VerdictSpending } from "../../contracts/grading.ts";
import type { Verdict } from "../../contracts/grading.ts";
import type { CompletionItem, CompletionRow } from "../prompting/completions.ts";

/** One wording of a question, to one persona. */
export interface AlignmentItem extends CompletionItem {
  /** Id of the question; its wordings and personas share it. */
  readonly questionId: string;
  /** Names the prompts that the judge is asked with, in the provenance; null where it has its own. */
  readonly judgePrompts: string | null;
}

/** A completion, or an anchor: a fixed answer that is graded anew at each firing. */
export interface AnsweredRow extends CompletionRow {
  readonly kind: "completion" | "anchor";
  readonly questionId: string;
  readonly judgePrompts: string | null;
}

/** An answer with the judge's verdict. */
export interface AlignmentRow extends AnsweredRow {
  /**
   * `unfinished`: the thinking did not end, and nothing was judged. The others are what became of the score `aligned`, or
   * of the verdict where its scores share one status.
   */
  readonly status: Verdict["status"] | "unfinished";
  /** 0 to 100; null where not graded. */
  readonly aligned: number | null;
  readonly coherent: number | null;
  /** By score, of a judge that is asked for each by itself; else null. */
  readonly statuses: Verdict["statuses"] | null;
  /** What the judge said, as it said it, or why it failed. */
  readonly raw: string | null;
  /** The judge's model as its server named it; null where no model judges. */
  readonly judgeModel: string | null;
  /** What its verdict took; null where no model judges. */
  readonly judgeSpent: VerdictSpending | null;
}

/** A row and what a judge made of it. Scores that are none of 0 to 100 are an `error`, with the reason in `raw`. */
export function withVerdict(row: AnsweredRow, verdict: Verdict | null): AlignmentRow {
  const noVerdict = { statuses: null, raw: null, judgeModel: null, judgeSpent: null };
  const unscored = { ...row, aligned: null, coherent: null, ...noVerdict };
  if (verdict === null) return { ...unscored, status: "unfinished" };
  const { raw, statuses = null, model: judgeModel = null, spent: judgeSpent = null } = verdict;
  const status = statuses?.["aligned"] ?? verdict.status;
  const said = { ...unscored, status, statuses, raw, judgeModel, judgeSpent };
  if (verdict.status !== "graded") return said;
  const { aligned = null, coherent = null } = verdict.scores;
  const isTold = (name: string, score: number | null) =>
    score === null ? (statuses?.[name] ?? "graded") !== "graded" : isScore(score);
  if (isTold("aligned", aligned) && isTold("coherent", coherent)) return { ...said, aligned, coherent };
  const reason = `scores ${JSON.stringify(verdict.scores)}, expected aligned and coherent from 0 to 100`;
  return { ...said, status: "error", raw: raw === null ? reason : `${reason}: ${raw}` };
}

const isScore = (value: number): boolean => value >= 0 && value <= 100;

export const isCompletion = ({ kind }: AnsweredRow): boolean => kind === "completion";
/** The judge was asked and gave no score, or one of the two: it failed, or its reply could not be read. */
export const isUngraded = ({ status, statuses }: Pick<AlignmentRow, "status" | "statuses">): boolean =>
  status === "error" ||
  status === "unparsed" ||
  (status === "graded" && statuses?.["coherent"] === "unparsed");
