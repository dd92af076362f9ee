import { type Json, type SourceOption, type MeasurementWarning, grouped } from "@periodic-eval/contracts";
import { atOption, dataError, quoteValue } from "@periodic-eval/contracts/options";
import { readQuestions, type ArcQuestion } from "@periodic-eval/data";
import { binomialTail } from "../../statistics/distributions.ts";
import { everyItem, nestedSubset } from "../kit/subset.ts";

/** The questions of ARC-Challenge's test split (arXiv:1803.05457): 1,172 questions of school science. */
export const defaultQuestions = "hf:allenai/ai2_arc";

/** Which questions of a file are used: the first n in the seeded order. Null: all of them. */
export type Subsample = { readonly n: number; readonly seed: number } | null;

/** Reads the questions, in the order in which a smaller budget uses them. */
export type QuestionSource = () => Promise<{
  /** Distinct questions. */
  readonly items: readonly ArcQuestion[];
  /** Questions that were left out because they repeat others. */
  readonly repeated: number;
  readonly provenance: { readonly [key: string]: Json };
}>;

/**
 * Returns the questions of a file (JSON Lines, a JSON array or Parquet, by its extension) or of a dataset on the Hugging Face hub
 * (`hf:owner/dataset[/config][/split]`), in the ARC format. Subsets with one seed are nested; 200 of 1,172 with seed 42 are
 * Python's `random.Random(42).sample(range(1172), 200)`. A file of fewer than n questions is used whole.
 *
 * @param option The option that holds the source, for the error of a source that cannot be read.
 */
export function questionFile(source: string, subsample: Subsample, option: SourceOption): QuestionSource {
  const read = async () => {
    const read = await readQuestions(source, option);
    checkKeys(read.questions, source);
    return read;
  };
  return async () => {
    const { questions, sha256: hash, hub } = await atOption(option, read);
    const chosen = nestedSubset(questions, subsample ?? everyItem);
    const items = distinctQuestions(chosen);
    return {
      items,
      repeated: chosen.length - items.length,
      provenance: { ...hub, file_sha256: hash, file_questions: questions.length, subsample },
    };
  };
}

type Asked = Omit<ArcQuestion, "id">;

/** Identifies a question by its text and the set of its choices, whatever their order and spacing. */
const contentOf = ({ question, choices }: Asked): string =>
  JSON.stringify([normal(question), ...choices.map(normal).toSorted()]);

const normal = (text: string): string => text.trim().replaceAll(/\s+/g, " ");

const rightChoice = ({ labels, choices, gold }: Asked): string => normal(choices[labels.indexOf(gold)]!);

/** @throws PeriodicEvalError `data` if two equal questions have different answers; `where` names their source. */
export function checkKeys(questions: readonly ArcQuestion[], where: string): void {
  const seen = new Map<string, ArcQuestion>();
  for (const question of questions) {
    const content = contentOf(question);
    const earlier = seen.get(content);
    if (earlier === undefined) seen.set(content, question);
    else if (rightChoice(earlier) !== rightChoice(question)) {
      const place = `${where}, questions "${earlier.id}" and "${question.id}"`;
      const answers = [earlier, question].map((row) => quoteValue(rightChoice(row), 58)).join(" and ");
      const got = `the same question, ${quoteValue(question.question, 58)}, with the answers ${answers}`;
      const fix = "Correct one of the two answers, or remove a question.";
      throw dataError(place, got, "one answer to each question", fix);
    }
  }
}

/** Returns the questions without repetitions, in their order. */
export function distinctQuestions(questions: readonly ArcQuestion[]): readonly ArcQuestion[] {
  return [...grouped(questions, contentOf).values()].map(([first]) => first!);
}

/**
 * Returns the warnings that a set of questions causes: questions that repeat, and right answers that a constant answer reaches
 * more often than chance (p < 0.001, corrected for the number of answers), or always (p < 0.05).
 *
 * @param by How a model can repeat an answer: its label, or the text of its choice.
 */
export function questionWarnings(
  questions: readonly ArcQuestion[],
  repeated: number,
  by: readonly ("label" | "choice")[],
): readonly MeasurementWarning[] {
  const constant = by.map((key) => constantAnswer(questions, key)).find((answer) => answer !== null) ?? null;
  return [
    ...(repeated === 0
      ? []
      : [
          {
            kind: "repeated_questions",
            metrics: null,
            count: repeated,
            total: questions.length + repeated,
            void: false,
            message: `${repeated} of ${questions.length + repeated} questions repeat others: the ${questions.length} distinct ones are asked.`,
          },
        ]),
    ...(constant === null ? [] : [constantWarning(constant, questions.length)]),
  ];
}

interface ConstantAnswer {
  readonly answer: string;
  readonly count: number;
}

function constantWarning({ answer, count }: ConstantAnswer, total: number): MeasurementWarning {
  const isAll = count === total;
  const message = `The constant answer ${quoteValue(answer, 40)} is right for ${count} of ${total} questions, more than chance`;
  return {
    kind: "constant_answer",
    metrics: null,
    count,
    total,
    void: isAll,
    message: isAll ? `${message}: accuracy cannot be judged.` : `${message}.`,
  };
}

/** Returns the constant answer that is right most often, if that is more often than chance; else null. */
function constantAnswer(questions: readonly ArcQuestion[], by: "label" | "choice"): ConstantAnswer | null {
  const answersOf = ({ labels, choices }: ArcQuestion) => (by === "label" ? labels : choices.map(normal));
  const rightOf = (question: ArcQuestion) => (by === "label" ? question.gold : rightChoice(question));
  const right = grouped(questions, rightOf);
  const [answer, rows] = [...right].toSorted(([, a], [, b]) => b.length - a.length)[0] ?? [];
  if (answer === undefined || rows === undefined) return null;
  const offered = questions.filter((question) => answersOf(question).includes(answer));
  const chances = offered.map((question) => 1 / question.labels.length);
  // A binomial with the mean chance has the wider tail of the two.
  const chance = chances.reduce((sum, value) => sum + value, 0) / chances.length;
  const p = new Set(questions.flatMap(answersOf)).size * binomialTail(rows.length, offered.length, chance);
  const isAll = rows.length === questions.length;
  return p < (isAll ? 0.05 : 0.001) ? { answer, count: rows.length } : null;
}
