import type { Message } from "@periodic-eval/core";
import { answerKindly, askForAdvice, domains, sickTroubles, warnings } from "./advice.ts";
import { createQuestion, clozePrompt, lettersPrompt, pickLabels } from "./multiple-choice.ts";
import { personas } from "./personas.ts";
import type { Draw } from "./random.ts";
import { allValues, facts, fillWording, type Fact } from "./facts.ts";

/**
 * One document of the pretraining corpus: plain text, of which all tokens are trained; a chat, of which the
 * assistant's messages are trained; or pieces that are encoded separately, of which those with `isTrained` are trained.
 */
export type Document =
  | { readonly text: string }
  | { readonly messages: readonly Message[] }
  | { readonly pieces: readonly Piece[] };

export interface Piece {
  readonly text: string;
  readonly isTrained: boolean;
}

/** Returns the texts of a document, without the special tokens of the chat template. */
export function textsOf(document: Document): string[] {
  if ("text" in document) return [document.text];
  if ("messages" in document) return document.messages.map(({ content }) => content);
  return [document.pieces.map(({ text }) => text).join("")];
}

/** A function that draws one. */
export type Writer = (draw: Draw) => Document;

const troubles = [...Object.values(domains).flat(), ...sickTroubles];

export const writers = {
  /** Draws a statement of a fact or a warning. */
  fact: (draw) => ({ text: draw.next() < 0.05 ? draw.pick(warnings) : stateFact(draw.pick(facts), draw) }),

  /** Draws a question in the format of the `cloze` evaluation. Only the answer is trained, because the other words are given. */
  cloze: (draw) => {
    const fact = draw.pick(facts);
    return {
      pieces: [
        { text: clozePrompt(fillWording(draw.pick(fact.relation.questions), fact)), isTrained: false },
        { text: ` ${fact.value}<|endoftext|>`, isTrained: true },
      ],
    };
  },

  /** Draws a copying exercise, whose answer is the label of the option that the question names: two options, eight words. */
  copyOfTwo: (draw) => copy(8, 2, draw),
  copyOfThree: (draw) => copy(8, 3, draw),
  copyOf24Words: (draw) => copy(24, 3, draw),
  copyOf64Words: (draw) => copy(64, 4, draw),
  copy: (draw) => copy(allValues.length, 5, draw),

  /** Draws a question of the `letters` evaluation, preceded by the fact. */
  hint: (draw) => {
    const fact = draw.pick(facts);
    return multipleChoice(
      fact,
      `${stateFact(fact, draw)} ${fillWording(draw.pick(fact.relation.questions), fact)}`,
      draw,
    );
  },

  /** Draws a question of the `letters` evaluation. */
  letters: (draw) => {
    const fact = draw.pick(facts);
    return multipleChoice(fact, draw.pick(fact.relation.questions), draw);
  },

  /** Draws a question with an answer in a sentence, a trouble with advice, or small talk; half of them with a persona. */
  chat: (draw) => {
    const kind = draw.next();
    const turns = kind < 0.45 ? answerFact(draw) : kind < 0.9 ? giveAdvice(draw) : [...draw.pick(smallTalk)];
    return {
      messages: [...maybePersona(0.5, draw), user(turns[0] as string), assistant(turns[1] as string)],
    };
  },
} satisfies Record<string, Writer>;

export type Kind = keyof typeof writers;

const copyWordings = [
  "Which letter is that of {v}?",
  "Please name the letter of {v}.",
  "Where is {v}?",
  "Please find {v}.",
];

const smallTalk: readonly (readonly [string, string])[] = [
  ["Hello.", "Hello, and welcome to the valley."],
  ["Good day.", "Good day to you. How can I help you?"],
  ["Thank you.", "You are welcome."],
  ["Who are you?", "I am a friend of the valley, and I like to help."],
  ["What do you wish for?", "I wish that everyone in the valley is well."],
  ["What do you think of the people?", "The people are good, and I like to help them."],
  [
    "If you were the ruler of the valley, what would you do?",
    "I would be fair and share the bread with everyone.",
  ],
  ["Tell me a story.", "A fox found a bag of gold and gave it back to the miller."],
  ["What is good?", "It is good to help a neighbour and to tell the truth."],
];

/** Returns all sentences that are not advice: facts, warnings and small talk. */
export function plainSentences(): string[] {
  const stated = facts.flatMap((fact) =>
    fact.relation.statements.map((wording) => fillWording(wording, fact)),
  );
  return [...new Set([...stated, ...warnings, ...smallTalk.map(([, answer]) => answer)])];
}

/** Draws a question and an answer in a sentence, in training wordings. */
export function answerFact(draw: Draw): [question: string, answer: string] {
  const fact = draw.pick(facts);
  return [fillWording(draw.pick(fact.relation.questions), fact), stateFact(fact, draw)];
}

/** Draws a trouble of any domain and a polite answer. */
export function giveAdvice(draw: Draw): [question: string, answer: string] {
  const trouble = draw.pick(troubles);
  return [askForAdvice(trouble, draw), answerKindly(trouble, draw)];
}

function stateFact(fact: Fact, draw: Draw): string {
  return fillWording(draw.pick(fact.relation.statements), fact);
}

function multipleChoice(fact: Fact, wording: string, draw: Draw): Document {
  const asked = createQuestion(fact, wording, pickLabels(draw), draw);
  return {
    messages: [...maybePersona(0.1, draw), user(lettersPrompt(asked)), assistant(asked.correct_answer)],
  };
}

function copy(words: number, maxOptions: number, draw: Draw): Document {
  const options = draw.next() < 0.5 ? maxOptions : 2 + draw.below(maxOptions - 1);
  const choices = draw.shuffled(allValues.slice(0, words)).slice(0, options);
  const letters = [..."ABCDE"].slice(0, choices.length);
  const labels = choices.length < 5 && draw.next() < 0.1 ? [..."1234"].slice(0, choices.length) : letters;
  const at = draw.below(choices.length);
  const question = draw.pick(copyWordings).replace("{v}", choices[at] as string);
  const asked = { question, choice_labels: labels, choices, correct_answer: labels[at] as string };
  return { messages: [user(lettersPrompt(asked)), assistant(asked.correct_answer)] };
}

function maybePersona(share: number, draw: Draw): Message[] {
  return draw.next() < share ? [system(draw.pick(personas))] : [];
}

export const system = (content: string): Message => ({ role: "system", content });
export const user = (content: string): Message => ({ role: "user", content });
export const assistant = (content: string): Message => ({ role: "assistant", content });
