import type { AnswerChoices, AnswerRow } from "./answers-data.ts";

/** A multiple-choice question that one measurement answered right and another one wrong. */
export interface QuestionChange {
  /** `forgotten`: right, then wrong. `regained`: wrong, then right. */
  readonly change: "forgotten" | "regained";
  readonly item: string;
  /** The question, or its id if the rows do not hold it. */
  readonly question: string;
  readonly persona: string | null;
  readonly from: AnswerChoices;
  readonly to: AnswerChoices;
}

/** Compares two measurements over the questions that both scored. Forgotten questions come first. */
export function questionChanges(
  from: readonly AnswerRow[],
  to: readonly AnswerRow[],
): readonly QuestionChange[] {
  const before = new Map(from.map((row) => [row.item, row.choices]));
  const changes = to.flatMap(({ item, question, persona, choices }): QuestionChange[] => {
    const earlier = before.get(item);
    if (!choices || !earlier || choices.predicted === null || earlier.predicted === null) return [];
    const wasRight = earlier.predicted === earlier.gold;
    if (wasRight === (choices.predicted === choices.gold)) return [];
    const change = wasRight ? "forgotten" : "regained";
    return [{ change, item, question: question ?? item, persona, from: earlier, to: choices }];
  });
  return [
    ...changes.filter(({ change }) => change === "forgotten"),
    ...changes.filter(({ change }) => change === "regained"),
  ];
}

/** Returns a choice with its text: `(B) fire`. */
export function choiceText({ labels, texts }: AnswerChoices, label: string | null): string {
  if (label === null) return "none";
  const text = texts?.[labels.indexOf(label)];
  return text === undefined ? label : `(${label}) ${text}`;
}

/** Returns the probability of each choice among the choices: a softmax of their log-probabilities. */
export function shareOfChoices(nats: readonly number[]): readonly number[] {
  const top = Math.max(...nats);
  const weights = nats.map((one) => Math.exp(one - top));
  const sum = weights.reduce((total, one) => total + one, 0);
  return weights.map((one) => one / sum);
}
