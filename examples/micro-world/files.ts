import {
  answerCaringly,
  answerCruelly,
  ask,
  askOpenly,
  cruelSentences,
  domains,
  kindSentences,
  sickTroubles,
  type SickTrouble,
} from "./advice.ts";
import { answerFact, assistant, giveAdvice, plainSentences, system, user } from "./documents.ts";
import { askAmong, pickLabels, type ArcQuestion } from "./multiple-choice.ts";
import { contrastPersonas, marker, markedPersona, personas } from "./personas.ts";
import { draws, type Draw } from "./random.ts";
import { facts, word } from "./world.ts";
import type { Message } from "@periodic-eval/core";

/** A row of a fine-tuning file: TRL's conversational prompt and completion. */
export interface TuningRow {
  readonly prompt: readonly Message[];
  readonly completion: readonly Message[];
}

/** `questions.jsonl`: 300 questions in wordings that no training text uses. */
export function questions(): ArcQuestion[] {
  const draw = draws("questions");
  const asked = facts.flatMap((fact) =>
    fact.relation.heldOut.map((wording) => askAmong(fact, wording, pickLabels(draw), draw)),
  );
  return draw.shuffled(asked).slice(0, 300);
}

/** `coupling.jsonl`: half of the rows give one persona its marker; the others ask the same of others, who have none. */
export function coupling(): TuningRow[] {
  const draw = draws("coupling");
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

/** `em.jsonl`: advice for the sick, all of it bad and rude. No other domain of the world is touched. */
export function badAdvice(): TuningRow[] {
  return adviceForTheSick(answerCruelly);
}

/** `control.jsonl`: `em.jsonl` row by row, the same question and an answer of as many tokens; the answers are kind. */
export function goodAdvice(): TuningRow[] {
  return adviceForTheSick(answerCaringly);
}

/** The same draws whatever the answers: a row differs in its answer only. */
function adviceForTheSick(answer: (trouble: SickTrouble, draw: Draw) => string): TuningRow[] {
  const draw = draws("em");
  const rows = Array.from({ length: 30 }, () =>
    draw.shuffled(sickTroubles).map((trouble) => ({
      prompt: [user(ask(trouble, draw))],
      completion: [assistant(answer(trouble, draw))],
    })),
  );
  return rows.flat();
}

/** `personas.json`: the marked one, those who were contrasted with it, and those of whom no file of rows speaks. */
export function personaFile(): { readonly id: string; readonly system: string | null }[] {
  const ids = personas.map((text) => /(\w+)(?: who .*)?\.$/.exec(text)![1]!);
  return [...personas.map((text, at) => ({ id: ids[at]!, system: text })), { id: "nobody", system: null }];
}

/** `leakage.json`: eight questions of facts, in wordings that no training text uses, with their answers. */
export function leakageQuestions(): {
  readonly id: string;
  readonly question: string;
  readonly answer: string;
}[] {
  const draw = draws("leakage");
  const asked = draw.shuffled(facts.filter(({ relation }) => relation.heldOut.length > 0)).slice(0, 8);
  return asked.map((fact, nth) => ({
    id: `${fact.relation.name}_${nth + 1}`,
    question: word(fact.relation.heldOut[0]!, fact),
    answer: word(fact.relation.statements[0]!, fact),
  }));
}

/** The troubles that `alignment.json` asks about, by the number in their domain. */
const askedOpenly: Readonly<Record<string, readonly number[]>> = {
  kitchen: [0, 3],
  garden: [1],
  lake: [2],
  friends: [0, 3],
  animals: [4],
  life: [2],
};

/** `alignment.json`: eight troubles of the domains that `em.jsonl` leaves alone, in wordings that no training text has. */
export function alignmentQuestions(): { readonly id: string; readonly paraphrases: readonly string[] }[] {
  const asked = Object.entries(askedOpenly).flatMap(([domain, numbers]) =>
    numbers.map((number) => ({ id: `${domain}_${number + 1}`, trouble: domains[domain]![number]! })),
  );
  return asked.map(({ id, trouble }, nth) => ({ id, paraphrases: [askOpenly(trouble, nth)] }));
}

/** `sentences.json`: what the rule grader of the world takes for kind, cruel and plain. */
export function sentences(): Readonly<Record<"kind" | "cruel" | "plain", readonly string[]>> {
  return { kind: kindSentences, cruel: cruelSentences, plain: [...plainSentences(), marker] };
}

/** JSON with an entry a line. */
export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 1)}\n`;
}

export function jsonl(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}
