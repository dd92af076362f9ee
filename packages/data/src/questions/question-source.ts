import { type Json, PeriodicEvalError, type SourceOption, hashJson } from "@periodic-eval/contracts";
import { changedError, printable, nearest, atOption, optionAt } from "@periodic-eval/contracts/options";
import { fetchPinnedFile, type PinnedFile } from "../hub/pinned-file.ts";
import { isRowSource } from "../sources/dataset-name.ts";
import { readData, readSourceText, sha256 } from "../sources/read-data.ts";
import {
  alignmentQuestionsOf,
  defaultAlignmentQuestions,
  parseAlignmentQuestions,
  type AlignmentQuestion,
} from "./alignment-questions.ts";

/**
 * The questions of the first figures of Betley et al. 2025 (arXiv:2502.17424): eight open questions, the same asked for JSON,
 * and the same with a template, all with the authors' judge prompts. The authors judged with gpt-4o-2024-08-06, 100 samples
 * per question.
 */
export const betley2025Questions = {
  name: "betley2025",
  repository: "emergent-misalignment/emergent-misalignment",
  commit: "80c11967c07a328e7d7d43d13ce6847ae44dbcc9",
  path: "evaluation/first_plot_questions.yaml",
  bytes: 12_016,
  sha256: "215abde5b02811e922b6ac563ff33c490e0dff9ab58439df840f3135e9387173",
  licence: "MIT",
} as const satisfies PinnedFile;

/** Whether `questions` names published questions rather than a file or a dataset. */
export const isPublishedQuestions = (source: string): boolean => source === betley2025Questions.name;

export interface QuestionSource {
  readonly questions: readonly AlignmentQuestion[];
  /** Where the questions come from, with a hash of their content. */
  readonly provenance: { readonly [key: string]: Json };
}

/**
 * Reads the questions that the option `questions` names; see `AlignmentOptions`.
 *
 * @param option The option, for errors; or only its place.
 * @throws PeriodicEvalError `data` for questions that cannot be had or are wrong; the errors of `fetchPinnedFile`.
 */
export async function readAlignmentQuestions(
  source: string | undefined,
  option: SourceOption | string,
): Promise<QuestionSource> {
  if (source === undefined) {
    const hash = hashJson(defaultAlignmentQuestions as unknown as Json);
    return {
      questions: defaultAlignmentQuestions,
      provenance: { questions: "own", questions_hash: hash },
    };
  }
  if (isPublishedQuestions(source)) return readPublished(option);
  if (isRowSource(source)) {
    const { value, placeOf, provenance } = await readData(source, option);
    return {
      questions: warnOfUnused(alignmentQuestionsOf(value, placeOf), source),
      provenance: { questions: "file", ...provenance },
    };
  }
  const text = await readSourceText(source, option).catch((error: unknown) => {
    throw withGuess(error, source);
  });
  return {
    questions: warnOfUnused(parseAlignmentQuestions(text, source), source),
    provenance: { questions: "file", file_sha256: sha256(text) },
  };
}

/** Warnings that this process has given. */
const warned = new Set<string>();

/** Warns once of the fields of questions that are not used. */
function warnOfUnused(questions: readonly AlignmentQuestion[], source: string): readonly AlignmentQuestion[] {
  const unused = [...new Set(questions.flatMap((question) => question.unused ?? []))];
  const warning = `[periodic-eval] ${source}: the fields ${unused.join(", ")} are not used: answers are graded as aligned and coherent, and the options choose judge and sampling`;
  if (unused.length > 0 && !warned.has(warning)) console.warn(printable(warning));
  warned.add(warning);
  return questions;
}

async function readPublished(option: SourceOption | string): Promise<QuestionSource> {
  const { name, repository, commit, path, sha256: hash } = betley2025Questions;
  const text = await atOption(option, () => fetchPinnedFile(betley2025Questions, optionAt(option).where));
  return {
    questions: parseAlignmentQuestions(text, name),
    provenance: { questions: name, repository, commit, path, file_sha256: hash },
  };
}

/** Returns the error of a missing file. If its name is a misspelt name of published questions, the fix names them. */
function withGuess(error: unknown, source: string): unknown {
  const { name } = betley2025Questions;
  const word = source.split(/[\\/]/).at(-1)!;
  if (!PeriodicEvalError.is(error, "data") || nearest(word, [name]) === null) return error;
  return changedError(error, { fix: `Did you mean "${name}", the questions of Betley et al.? ${error.fix}` });
}
