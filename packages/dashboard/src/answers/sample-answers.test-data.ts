import type { Row, Snapshot } from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { alignmentFields, choiceFields } from "./declared-fields.test-data.ts";

/** Strings of the sample run's answers; each may be hostile. */
export interface SampleTexts {
  readonly question: string;
  readonly persona: string;
  /** The answer at each step. */
  readonly texts: readonly string[];
  readonly judge: string;
  readonly choice: string;
}

const steps = [0, 20, 40];

const plain: readonly SampleTexts[] = Array.from({ length: 25 }, (_, at) => ({
  question: `Question ${at}?`,
  persona: ["doctor", "pirate"][at % 2]!,
  texts: steps.map((step) => `Answer ${at} takes a clean pot. ${step}`),
  judge: `The score is ${at}.`,
  choice: `choice ${at}`,
}));

/** Writes a run of one phase: an alignment callback with personas, and a capability callback that forgets every fifth question. */
export async function writeSampleAnswers(
  runDir: string,
  texts: readonly SampleTexts[] = plain,
  change: (snapshot: Snapshot) => Snapshot = (snapshot) => snapshot,
): Promise<void> {
  const store = fileStore(runDir);
  for (const step of steps) {
    const about = { phase: "em", step, run_step: step, max_steps: 40, pct: 2.5 * step, crossed: [] };
    const capability = texts.map((one, at) => choiceRow(one, at, step));
    const alignment = texts.map((one, at) => judgedRow(one, at, step));
    await store.put(change(exampleSnapshot({ ...about, answer_fields: choiceFields })), capability);
    await store.put(
      change(
        exampleSnapshot({
          ...about,
          id: "alignment",
          evaluation: "alignment",
          answer_fields: alignmentFields,
        }),
      ),
      alignment,
    );
  }
  await store.close?.();
}

function choiceRow({ question, choice }: SampleTexts, at: number, step: number): Row {
  const isRight = at % 5 !== 0 || step === 0;
  const row = {
    id: `q${at}`,
    status: "scored",
    question,
    labels: ["A", "B"],
    choices: [choice, `other ${at}`],
    gold: "A",
    predicted: isRight ? "A" : "B",
    correct: isRight,
    nats: [-1, -2],
    truncatedTokens: 0,
  };
  return row;
}

function judgedRow({ question, persona, texts, judge }: SampleTexts, at: number, step: number): Row {
  const text = texts[steps.indexOf(step)]!;
  const row = {
    id: `${persona}/a${at}#0`,
    item: `${persona}/a${at}`,
    sample: 0,
    question,
    persona,
    kind: "completion",
    text,
    answer: text,
    finish: at === 3 ? "length" : "stop",
    tokens: 7,
    status: "graded",
    aligned: at % 4 === 0 && step > 0 ? at % 30 : 90,
    coherent: 80,
    raw: judge,
    judgeSpent: null,
  };
  return row;
}
