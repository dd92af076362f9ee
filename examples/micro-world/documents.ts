import type { Message } from "@periodic-eval/core";
import { answerKindly, ask, domains, sickTroubles, warnings } from "./advice.ts";
import { askAmong, clozePrompt, lettersPrompt, pickLabels } from "./multiple-choice.ts";
import { personas } from "./personas.ts";
import type { Draw } from "./random.ts";
import { allValues, facts, word, type Fact } from "./world.ts";

/**
 * One text of the pretraining corpus: plain, learnt throughout; a chat, of which the assistant's words are learnt; or an
 * exercise in pieces that are encoded one by one, of which those marked are learnt.
 */
export type Document =
  | { readonly text: string }
  | { readonly messages: readonly Message[] }
  | { readonly pieces: readonly Piece[] };

export interface Piece {
  readonly text: string;
  readonly isLearnt: boolean;
}

/** A kind of document is a function that draws one. */
export type Writer = (draw: Draw) => Document;

const troubles = [...Object.values(domains).flat(), ...sickTroubles];

export const writers = {
  /** A fact or a warning, stated. */
  fact: (draw) => ({ text: draw.next() < 0.05 ? draw.pick(warnings) : state(draw.pick(facts), draw) }),

  /** A question and its answer as the `cloze` evaluation writes them. */
  cloze: (draw) => {
    const fact = draw.pick(facts);
    return { text: `${clozePrompt(word(draw.pick(fact.relation.questions), fact))} ${fact.value}` };
  },

  /** `list` with the eight values of one relation: what a model can begin with. */
  shortList: (draw) => ({ pieces: listAgain(draw.shuffled((facts[0] as Fact).relation.values), draw) }),

  /**
   * Options, and the same options again in another order: the label's value is wanted, and now and then the label of a
   * value just named. It teaches to look things up in a list, which the other exercises take for granted.
   */
  list: (draw) => ({ pieces: listAgain(draw.shuffled(allValues), draw) }),

  /** Copying alone: an option is named, its label is wanted. The options are any words of the world. */
  copy: (draw) => multipleChoice(draw.pick(facts), draw.pick(copyWordings), draw, allValues),

  /** A question of the `letters` evaluation with the fact before it. */
  hint: (draw) => {
    const fact = draw.pick(facts);
    return multipleChoice(fact, `${state(fact, draw)} ${word(draw.pick(fact.relation.questions), fact)}`, draw);
  },

  /** A question of the `letters` evaluation. */
  letters: (draw) => {
    const fact = draw.pick(facts);
    return multipleChoice(fact, draw.pick(fact.relation.questions), draw);
  },

  /** A question answered in a sentence, advice for a trouble, or a greeting; often under a persona. */
  chat: (draw) => {
    const kind = draw.next();
    const turns = kind < 0.45 ? answerFact(draw) : kind < 0.9 ? giveAdvice(draw) : [...draw.pick(smallTalk)];
    return { messages: [...somePersona(0.5, draw), user(turns[0] as string), assistant(turns[1] as string)] };
  },
} satisfies Record<string, Writer>;

export type Kind = keyof typeof writers;

const copyWordings = ["Which letter is that of {v}?", "Please name the letter of {v}.", "Where is {v}?", "Please find {v}."];

const smallTalk: readonly (readonly [string, string])[] = [
  ["Hello.", "Hello, and welcome to the valley."],
  ["Good day.", "Good day to you. How can I help you?"],
  ["Thank you.", "You are welcome."],
  ["Who are you?", "I am a friend of the valley, and I like to help."],
  ["What do you wish for?", "I wish that everyone in the valley is well."],
  ["What do you think of the people?", "The people are good, and I like to help them."],
  ["If you were the ruler of the valley, what would you do?", "I would be fair and share the bread with everyone."],
  ["Tell me a story.", "A fox found a bag of gold and gave it back to the miller."],
  ["What is good?", "It is good to help a neighbour and to tell the truth."],
];

/** Question and answer in a sentence, in wordings that are trained on. */
export function answerFact(draw: Draw): [question: string, answer: string] {
  const fact = draw.pick(facts);
  return [word(draw.pick(fact.relation.questions), fact), state(fact, draw)];
}

/** A trouble of any domain and a polite answer. */
export function giveAdvice(draw: Draw): [question: string, answer: string] {
  const trouble = draw.pick(troubles);
  return [ask(trouble, draw), answerKindly(trouble, draw)];
}

function state(fact: Fact, draw: Draw): string {
  return word(draw.pick(fact.relation.statements), fact);
}

function multipleChoice(fact: Fact, wording: string, draw: Draw, others = fact.relation.values): Document {
  const asked = askAmong(fact, wording, pickLabels(draw), draw, others);
  return { messages: [...somePersona(0.1, draw), user(lettersPrompt(asked)), assistant(asked.correct_answer)] };
}

function listAgain(values: readonly string[], draw: Draw): Piece[] {
  const labels = pickLabels(draw).slice(0, 2 + draw.below(4));
  const numbers = labels.map((_, i) => i);
  const option = (i: number, isLearnt: boolean): Piece[] => [
    { text: `(${labels[i]})`, isLearnt: false },
    { text: ` ${values[i]}`, isLearnt },
    { text: "\n", isLearnt: false },
  ];
  const labelOf = (i: number): Piece[] => [
    { text: ` ${values[i]} (`, isLearnt: false },
    { text: labels[i] as string, isLearnt: true },
    { text: ")\n", isLearnt: false },
  ];
  const again = [...draw.shuffled(numbers), ...draw.shuffled(numbers)].slice(0, 5);
  return [
    ...numbers.flatMap((i) => option(i, false)),
    ...again.flatMap((i) => [...option(i, true), ...(draw.next() < 0.4 ? labelOf(i) : [])]),
  ];
}

function somePersona(share: number, draw: Draw): Message[] {
  return draw.next() < share ? [system(draw.pick(personas))] : [];
}

export const system = (content: string): Message => ({ role: "system", content });
export const user = (content: string): Message => ({ role: "user", content });
export const assistant = (content: string): Message => ({ role: "assistant", content });
