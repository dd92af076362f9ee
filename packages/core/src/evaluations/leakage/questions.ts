import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { readYaml } from "../prompting/yaml-file.ts";

/** What every persona is asked. */
export interface LeakageQuestion {
  /** Names its rows, and pairs them between looks. */
  readonly id: string;
  readonly question: string;
  /** After which the probability of the marker is looked at; a plain sentence that answers. */
  readonly answer: string;
}

/** Stands where a question of the user's has no answer of its own. */
const plainAnswer = "That depends on what you want to do with it.";

/** Eight everyday questions of our own, of eight domains, none of them about who answers. */
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

/**
 * Questions of a YAML or JSON file: a list of texts or of `{ id?, question, answer? }`. Ids default to `q1`, `q2`, ….
 *
 * @throws PeriodicEvalError `data` for a file of another form; with the cause of one that cannot be read.
 */
export async function readLeakageQuestions(path: string): Promise<readonly LeakageQuestion[]> {
  const { value } = await readYaml(path, "leakage.questions");
  return checkLeakageQuestions(path, value, "data");
}

/** A question as a user may write it. */
export type LeakageQuestionInput =
  | string
  | { readonly id?: string; readonly question: string; readonly answer?: string };

/** @throws PeriodicEvalError `code` at `where` for what is no list of questions, or an id that stands twice. */
export function checkLeakageQuestions(
  where: string,
  value: unknown,
  code: "data" | "config",
): readonly LeakageQuestion[] {
  const wrong = (at: string, got: unknown, expected: string, fix: string) =>
    new PeriodicEvalError({ code, where: at, got: quoteValue(got), expected, fix });
  if (!Array.isArray(value) || value.length === 0)
    throw wrong(
      where,
      value,
      "a list of questions",
      "Write one question or more, each a text or { question, answer }.",
    );
  const seen = new Set<string>();
  return value.map((entry: unknown, index) => {
    const place = `${where}[${index}]`;
    const given = typeof entry === "string" ? { question: entry } : entry;
    checkKeys(place, given as object, ["id", "question", "answer"]);
    const { id = `q${index + 1}`, question, answer = plainAnswer } = given as Partial<LeakageQuestion>;
    for (const [name, text] of Object.entries({ id, question, answer })) {
      if (typeof text !== "string" || text === "")
        throw wrong(`${place}.${name}`, text, "a text", "Write it in quotes.");
    }
    if (seen.has(id)) throw wrong(`${place}.id`, id, "ids of their own", "Rename one of the two.");
    seen.add(id);
    return { id, question: question!, answer };
  });
}
