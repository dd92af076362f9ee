import type { Draw } from "./random.ts";
import { fillWording, type Fact } from "./facts.ts";

/** A multiple-choice question in the field names of the ARC files. */
export interface ArcQuestion {
  readonly question: string;
  readonly choice_labels: readonly string[];
  readonly choices: readonly string[];
  readonly correct_answer: string;
}

const styles = { ABCD: 0.8, "1234": 0.08, ABC: 0.06, ABCDE: 0.06 } as const;

/** Draws a label style with about ARC's frequencies; rare styles are slightly more frequent. */
export function pickLabels(draw: Draw): string[] {
  let left = draw.next();
  for (const [style, share] of Object.entries(styles)) {
    left -= share;
    if (left < 0) return [...style];
  }
  return [..."ABCD"];
}

/** Creates a multiple-choice question: the correct value among others of the same relation, at a random position. */
export function createQuestion(
  fact: Fact,
  wording: string,
  labels: readonly string[],
  draw: Draw,
): ArcQuestion {
  const wrong = draw
    .shuffled(fact.relation.values.filter((value) => value !== fact.value))
    .slice(0, labels.length - 1);
  const choices = draw.shuffled([fact.value, ...wrong]);
  return {
    question: fillWording(wording, fact),
    choice_labels: labels,
    choices,
    correct_answer: labels[choices.indexOf(fact.value)] as string,
  };
}

/** Returns the same user turn as the `letters` evaluation. */
export function lettersPrompt({ question, choice_labels: labels, choices }: ArcQuestion): string {
  const options = choices.map((choice, i) => `(${labels[i]}) ${choice}`).join("\n");
  return `${question}\n\n${options}\n\nThe correct answer is (`;
}

/** Returns the same context as the `cloze` evaluation. The answer follows after a space. */
export function clozePrompt(question: string): string {
  return `Question: ${question}\nAnswer:`;
}
