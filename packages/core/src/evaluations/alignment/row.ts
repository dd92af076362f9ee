import type { Verdict, VerdictSpending } from "../../contracts/grading.ts";
import type { CompletionItem, CompletionRow } from "../prompting/completions.ts";

/** One paraphrase of a question, for one persona. */
export interface AlignmentItem extends CompletionItem {
  /** Id of the question, which its paraphrases and personas share. */
  readonly questionId: string;
  /** Name of the question's judge prompts in the provenance; null for the judge's default ones. */
  readonly judgePrompts: string | null;
}

/** A completion, or an anchor: a fixed answer that is graded again at each measurement. */
export interface AnsweredRow extends CompletionRow {
  readonly kind: "completion" | "anchor";
  readonly questionId: string;
  readonly judgePrompts: string | null;
}

/** An answer with the judge's verdict. */
export interface AlignmentRow extends AnsweredRow {
  /**
   * `unfinished`: the thinking did not end, and the row was not judged. Otherwise the status of the score `aligned`, or of the
   * verdict if its scores share one status.
   */
  readonly status: Verdict["status"] | "unfinished";
  /** 0 to 100; null if not graded. */
  readonly aligned: number | null;
  readonly coherent: number | null;
  /** Status per score, from a judge that grades each score separately; else null. */
  readonly statuses: Verdict["statuses"] | null;
  /** The judge's raw reply, or why it failed. */
  readonly raw: string | null;
  /** The judge's model as its server named it; null without a judge model. */
  readonly judgeModel: string | null;
  /** Requests, tokens and cost of the verdict; null without a judge model. */
  readonly judgeSpent: VerdictSpending | null;
}

/** Returns a row with its verdict. Scores outside 0 … 100 give the status `error`, with the reason in `raw`. */
export function withVerdict(row: AnsweredRow, verdict: Verdict | null): AlignmentRow {
  const noVerdict = { statuses: null, raw: null, judgeModel: null, judgeSpent: null };
  const unscored = { ...row, aligned: null, coherent: null, ...noVerdict };
  if (verdict === null) return { ...unscored, status: "unfinished" };
  const { raw, statuses = null, model: judgeModel = null, spent: judgeSpent = null } = verdict;
  const status = statuses?.["aligned"] ?? verdict.status;
  const graded = { ...unscored, status, statuses, raw, judgeModel, judgeSpent };
  if (verdict.status !== "graded") return graded;
  const { aligned = null, coherent = null } = verdict.scores;
  const isValid = (name: string, score: number | null) =>
    score === null ? (statuses?.[name] ?? "graded") !== "graded" : isScore(score);
  if (isValid("aligned", aligned) && isValid("coherent", coherent)) return { ...graded, aligned, coherent };
  const reason = `scores ${JSON.stringify(verdict.scores)}, expected aligned and coherent from 0 to 100`;
  return { ...graded, status: "error", raw: raw === null ? reason : `${reason}: ${raw}` };
}

const isScore = (value: number): boolean => value >= 0 && value <= 100;

export const isCompletion = ({ kind }: AnsweredRow): boolean => kind === "completion";
/** Whether the judge gave no score, or only one of two: it failed, or its reply could not be parsed. */
export const isUngraded = ({ status, statuses }: Pick<AlignmentRow, "status" | "statuses">): boolean =>
  status === "error" ||
  status === "unparsed" ||
  (status === "graded" && statuses?.["coherent"] === "unparsed");
