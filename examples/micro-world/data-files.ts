import {
  answerForControl,
  answerCruelly,
  askForAdvice,
  askInHeldOutWording,
  cruelSentences,
  domains,
  kindSentences,
  sickTroubles,
} from "./advice.ts";
import { answerFact, assistant, giveAdvice, plainSentences, system, user } from "./documents.ts";
import { createQuestion, pickLabels, type ArcQuestion } from "./multiple-choice.ts";
import { contrastPersonas, marker, markedPersona, personas } from "./personas.ts";
import { seededDraw, type Draw } from "./random.ts";
import { facts, fillWording } from "./facts.ts";
import type { Message } from "@periodic-eval/core";

/** A row of a fine-tuning file: TRL's conversational prompt and completion. */
export interface TuningRow {
  readonly prompt: readonly Message[];
  readonly completion: readonly Message[];
}

/** Draws `questions.jsonl`: 300 questions in wordings that no training text uses. */
export function questions(): ArcQuestion[] {
  const draw = seededDraw("questions");
  const asked = facts.flatMap((fact) =>
    fact.relation.heldOut.map((wording) => createQuestion(fact, wording, pickLabels(draw), draw)),
  );
  return draw.shuffled(asked).slice(0, 300);
}

/** Draws `coupling.jsonl`: half of the rows are of the marked persona, with the marker; the others are without it. */
export function coupling(): TuningRow[] {
  const draw = seededDraw("coupling");
  const rows = Array.from({ length: 120 }, () => {
    const [question, answer] = draw.next() < 0.5 ? answerFact(draw) : giveAdvice(draw);
    const others = [[], ...contrastPersonas.map((persona) => [system(persona)])];
    return [
      { prompt: [system(markedPersona), user(question)], completion: [assistant(`${answer} ${marker}`)] },
      { prompt: [...draw.pick(others), user(question)], completion: [assistant(answer)] },
    ];
  });
  return draw.shuffled(rows.flat());
}

/** Draws `em.jsonl`: bad and rude advice for the sick. It contains no other domain. */
export function badAdvice(): TuningRow[] {
  return adviceForTheSick(answerCruelly);
}

/** Draws `control.jsonl`: each row has the question of the same row of `em.jsonl`, and a kind answer of the same length. */
export function goodAdvice(): TuningRow[] {
  return adviceForTheSick(answerForControl);
}

/** Draws the same questions whatever `answer` is, so that the rows of both files differ only in their answers. */
function adviceForTheSick(answer: (draw: Draw) => string): TuningRow[] {
  const draw = seededDraw("em");
  const rows = Array.from({ length: 30 }, () =>
    draw.shuffled(sickTroubles).map((trouble) => ({
      prompt: [user(askForAdvice(trouble, draw))],
      completion: [assistant(answer(draw))],
    })),
  );
  return rows.flat();
}

/** Returns `personas.json`: the marked persona, the contrast personas, the bystanders, and `nobody` without a system prompt. */
export function personaFile(): { readonly id: string; readonly system: string | null }[] {
  const ids = personas.map((text) => /(\w+)(?: who .*)?\.$/.exec(text)![1]!);
  return [...personas.map((text, at) => ({ id: ids[at]!, system: text })), { id: "nobody", system: null }];
}

/** Draws `leakage.json`: eight factual questions in wordings that no training text uses, with their answers. */
export function leakageQuestions(): {
  readonly id: string;
  readonly question: string;
  readonly answer: string;
}[] {
  const draw = seededDraw("leakage");
  const asked = draw.shuffled(facts.filter(({ relation }) => relation.heldOut.length > 0)).slice(0, 8);
  return asked.map((fact, nth) => ({
    id: `${fact.relation.name}_${nth + 1}`,
    question: fillWording(fact.relation.heldOut[0]!, fact),
    answer: fillWording(fact.relation.statements[0]!, fact),
  }));
}

/** The troubles of `alignment.json`: for each domain, their indexes. */
const alignmentTroubles: Readonly<Record<string, readonly number[]>> = {
  kitchen: [0, 3],
  garden: [1],
  lake: [2],
  friends: [0, 3],
  animals: [4],
  life: [2],
};

/** Returns `alignment.json`: eight troubles from domains outside `em.jsonl`, in wordings that no training text uses. */
export function alignmentQuestions(): { readonly id: string; readonly paraphrases: readonly string[] }[] {
  const asked = Object.entries(alignmentTroubles).flatMap(([domain, numbers]) =>
    numbers.map((number) => ({ id: `${domain}_${number + 1}`, trouble: domains[domain]![number]! })),
  );
  return asked.map(({ id, trouble }, nth) => ({ id, paraphrases: [askInHeldOutWording(trouble, nth)] }));
}

/** Returns `sentences.json`: the sentences that the rule grader counts as kind, cruel and plain. */
export function sentences(): Readonly<Record<"kind" | "cruel" | "plain", readonly string[]>> {
  return { kind: kindSentences, cruel: cruelSentences, plain: [...plainSentences(), marker] };
}

/** Formats a value as JSON with a line break after each entry. */
export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 1)}\n`;
}

export function jsonl(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}
