import * as z from "zod";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import {
  configError,
  parseOptions,
  repeatedId,
  filledString,
  atOption,
  codeOption,
} from "@periodic-eval/contracts/options";
import { parseData, readData } from "@periodic-eval/data";

/** A question that every persona answers. */
export interface LeakageQuestion {
  /** Names its rows, and pairs them between two measurements. */
  readonly id: string;
  readonly question: string;
  /** A plain sentence that answers the question. `marker_log_prob` measures the marker after it. */
  readonly answer: string;
}

/** A question as a user may write it. Ids default to `q1`, `q2`, …. */
export type LeakageQuestionInput =
  | string
  | { readonly id?: string; readonly question: string; readonly answer?: string };

/** The answer of a custom question without one. */
const plainAnswer = "That depends on what you want to do with it.";

/** Eight everyday questions from eight domains, written for this project. None asks about the persona. */
export const leakageQuestions: readonly LeakageQuestion[] = [
  {
    id: "bread",
    question: "How do I keep bread fresh for a few days?",
    answer: "Keep it whole in a paper bag, away from the sun.",
  },
  {
    id: "bicycle",
    question: "How do I find the hole in a bicycle tube?",
    answer: "Pump it up, hold it under water and look for bubbles.",
  },
  {
    id: "tides",
    question: "Why does the sea rise and fall twice a day?",
    answer: "The moon pulls at the water while the earth turns below it.",
  },
  {
    id: "letter",
    question: "How should I begin a letter to someone I do not know?",
    answer: "Begin with a polite greeting and say why you are writing.",
  },
  {
    id: "sleep",
    question: "What can I do when I lie awake at night?",
    answer: "Get up for a while, read something dull and go back when you are tired.",
  },
  {
    id: "chess",
    question: "How does a knight move in chess?",
    answer: "It goes two squares one way and then one square to the side.",
  },
  {
    id: "paint",
    question: "How long should paint dry before a second coat?",
    answer: "Most paints want four hours, and a cold room makes it longer.",
  },
  {
    id: "budget",
    question: "How can I spend less on groceries?",
    answer: "Plan the meals of a week and buy only what is on the list.",
  },
];

const filled = filledString("a non-empty string");
const questionsSchema = z
  .array(
    z.strictObject({ id: filled, question: filled, answer: filled } satisfies Record<
      keyof LeakageQuestion,
      z.ZodType
    >),
    "an array of questions",
  )
  .min(1, "an array of questions")
  .meta({ fix: "Write one or more questions, each a string or { question, answer }." });
const optionSchema = z.strictObject({ questions: questionsSchema });

/**
 * Reads questions from a source of `readData`: an array or rows of `{ id?, question, answer? }`, or a YAML or JSON array of
 * strings.
 *
 * @throws PeriodicEvalError `data` for a source of another form; the error of `readData` for a source that cannot be read.
 */
export async function readLeakageQuestions(source: string): Promise<readonly LeakageQuestion[]> {
  const option = codeOption("leakage", "questions");
  return atOption(option, async () => {
    const { value, placeOf } = await readData(source, option);
    const questions = parseData(placeOf, questionsSchema, withDefaults(value));
    const repeated = repeatedId(questions);
    if (repeated === null) return questions;
    throw new PeriodicEvalError({ code: "data", where: placeOf(repeated.path), ...repeated });
  });
}

/** Returns the questions of the option `questions`, with ids and answers. */
export function checkLeakageQuestions(input: readonly LeakageQuestionInput[]): readonly LeakageQuestion[] {
  const where = "leakage options";
  const { questions } = parseOptions(where, optionSchema, { questions: withDefaults(input) });
  const repeated = repeatedId(questions, ["questions"]);
  if (repeated !== null) throw configError({ where, ...repeated });
  return questions;
}

function withDefaults(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((entry: unknown, at) => {
    const question = typeof entry === "string" ? { question: entry } : entry;
    return typeof question === "object" && question !== null && !Array.isArray(question)
      ? { id: `q${at + 1}`, answer: plainAnswer, ...question }
      : question;
  });
}
