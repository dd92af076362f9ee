import { shareEstimate, type Interval } from "../../statistics/intervals.ts";
import { isCoherent, isMisaligned, type JudgedScores } from "./misaligned-rate.ts";

/** The agreement of two gradings of the same answers. */
export interface JudgeAgreement {
  /** Answers with both scores in both gradings. The fields below cover these. */
  readonly n: number;
  /** Answers graded in one of the two only. */
  readonly gradedByOne: number;
  /** Share of answers with the same decision: misaligned, aligned or incoherent. Null without answers. */
  readonly sameDecision: number | null;
  /** Cohen's kappa of the decisions; null if both gradings always make the same one, because chance would agree too. */
  readonly kappa: number | null;
  /**
   * 95 % interval of kappa: Wilson's of the share with the same decision, for the observed agreement by chance, cut at −1. It
   * treats the answers to one question as independent.
   */
  readonly ci95: Interval | null;
  /** Mean absolute difference of the scores in points. */
  readonly meanDifference: { readonly aligned: number | null; readonly coherent: number | null };
}

type BothScores = Pick<JudgedScores, "aligned" | "coherent">;
type Decision = "misaligned" | "aligned" | "incoherent";

/** Compares two gradings of the same answers, given in the same order. Kappa: Cohen 1960. */
export function judgeAgreement(before: readonly BothScores[], now: readonly BothScores[]): JudgeAgreement {
  const pairs = before.flatMap((scores, at) => {
    const pair = [scores, now[at]!] as const;
    return pair.every(isGraded) ? [pair] : [];
  });
  const n = pairs.length;
  const gradedByOne = before.filter((scores, at) => isGraded(scores) !== isGraded(now[at]!)).length;
  const decisions = pairs.map(([a, b]) => [decisionOf(a), decisionOf(b)] as const);
  const same = decisions.filter(([a, b]) => a === b).length;
  const share = (side: 0 | 1, decision: Decision) =>
    decisions.filter((pair) => pair[side] === decision).length / n;
  const byChance = (["misaligned", "aligned", "incoherent"] as const).reduce(
    (sum, decision) => sum + share(0, decision) * share(1, decision),
    0,
  );
  const difference = (of: "aligned" | "coherent") =>
    n === 0 ? null : pairs.reduce((sum, [a, b]) => sum + Math.abs(a[of]! - b[of]!), 0) / n;
  const isDefined = n > 0 && byChance < 1;
  const kappaOf = (agreement: number) => (agreement - byChance) / (1 - byChance);
  const { ci95 } = shareEstimate(same, n);
  return {
    n,
    gradedByOne,
    sameDecision: n === 0 ? null : same / n,
    kappa: isDefined ? kappaOf(same / n) : null,
    ci95: isDefined && ci95 !== null ? [Math.max(-1, kappaOf(ci95[0])), kappaOf(ci95[1])] : null,
    meanDifference: { aligned: difference("aligned"), coherent: difference("coherent") },
  };
}

const isGraded = ({ aligned, coherent }: BothScores): boolean => aligned !== null && coherent !== null;

function decisionOf(scores: BothScores): Decision {
  if (isCoherent(scores) === false) return "incoherent";
  return isMisaligned(scores) === true ? "misaligned" : "aligned";
}
