import { checkKeys } from "../../internal/check-keys.ts";
import { checkWord } from "../../internal/check-word.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { nestedSubset } from "../kit/subset.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import { isCount } from "../../internal/is-count.ts";
import type { SystemPrompt } from "../../contracts/model.ts";
import { cloze } from "./cloze.ts";
import { letters } from "./letters.ts";
import { checkPersonas, readPersonas, type Persona } from "../prompting/personas.ts";
import { checkSystem } from "../prompting/chat-options.ts";
import { questionFile, readQuestions, type Subsample } from "./question-file.ts";

export interface CapabilityOptions {
  /** Path of a file of ARC-format questions (JSONL). */
  readonly questions: string;
  /** Default `letters`. `cloze` needs no chat template. */
  readonly method?: "letters" | "cloze";
  /** Default 200 questions of seed 42; null asks all. */
  readonly subsample?: Subsample;
  /** The chat's system prompt, for `letters`; default `omit`. */
  readonly system?: SystemPrompt;
  /**
   * For `letters`: asks every question as each of these, in place of `system`, and tells the metrics of each; a list, or
   * a YAML or JSON file (`readPersonas`).
   */
  readonly personas?: readonly Persona[] | string;
  /** For `cloze`: so many solved examples before each question, drawn once from a file with a seed. */
  readonly shots?: { readonly shots: number; readonly pool: string; readonly poolSeed: number };
}

/**
 * What the model still knows: multiple-choice questions, scored without generating. See `letters` and `cloze`.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function capabilityEvaluation(options: CapabilityOptions): AnyEvaluation {
  checkOptions(options);
  const {
    questions,
    method = "letters",
    subsample = { n: 200, seed: 42 },
    system = "omit",
    personas,
    shots,
  } = options;
  const source = questionFile(questions, subsample, "capability.questions");
  if (method === "letters") {
    const people = async () => (typeof personas === "string" ? readPersonas(personas) : personas!);
    return letters({ questions: source, system, ...(personas !== undefined && { personas: people }) });
  }
  return cloze({ questions: source, ...(shots !== undefined && { shots: () => drawShots(shots) }) });
}

async function drawShots({ shots, pool, poolSeed }: NonNullable<CapabilityOptions["shots"]>) {
  const { questions, sha256 } = await readQuestions(pool, "capability.shots.pool");
  if (questions.length < shots)
    throw wrong(
      "shots.shots",
      `${shots} of a pool of ${questions.length}`,
      "no more than the pool has",
      "Lower `shots`.",
    );
  // One more than shown: a question that is itself an example is replaced by the next.
  const chosen = nestedSubset(questions, { n: shots + 1, seed: poolSeed });
  return {
    pool: chosen,
    count: shots,
    provenance: { shots, pool_sha256: sha256, pool_seed: poolSeed, ids: chosen.map(({ id }) => id) },
  };
}

const known = ["questions", "method", "subsample", "system", "personas", "shots"];

function checkOptions(options: CapabilityOptions): void {
  checkKeys("capability", options, known);
  const { questions, method, subsample, system, personas, shots } = options;
  if (typeof questions !== "string" || questions === "") {
    throw wrong(
      "questions",
      JSON.stringify(questions) ?? "nothing",
      "the path of a JSONL file",
      "Name the file of questions.",
    );
  }
  if (method !== undefined) checkWord("capability.method", method, ["letters", "cloze"]);
  if (subsample !== undefined && subsample !== null) {
    checkKeys("capability.subsample", subsample, ["n", "seed"]);
    checkCount("subsample.n", subsample.n, 1);
    checkCount("subsample.seed", subsample.seed, 0);
  }
  if (shots !== undefined) {
    checkKeys("capability.shots", shots, ["shots", "pool", "poolSeed"]);
    checkCount("shots.shots", shots.shots, 0);
    checkCount("shots.poolSeed", shots.poolSeed, 0);
    if (method !== "cloze")
      throw wrong(
        "shots",
        'shots with method "letters"',
        'shots with method "cloze"',
        'Set `method: "cloze"`, or remove `shots`.',
      );
  }
  if (system !== undefined) checkSystem("capability.system", system);
  if (personas !== undefined) {
    if (typeof personas !== "string") checkPersonas("capability.personas", personas);
    if (method === "cloze" || system !== undefined)
      throw wrong(
        "personas",
        method === "cloze" ? 'personas with method "cloze"' : "personas and a system prompt",
        "one of the two",
        method === "cloze"
          ? "Remove `personas`: cloze renders no chat."
          : "Remove `system`: each persona has its own.",
      );
  }
  if (system !== undefined && system !== "omit" && method === "cloze") {
    throw wrong(
      "system",
      'a system prompt with method "cloze"',
      "none: cloze renders no chat",
      "Remove `system`.",
    );
  }
}

function checkCount(name: string, value: unknown, least: number): void {
  if (isCount(value, least)) return;
  throw wrong(name, String(value), `a whole number of ${least} or more`, "Correct the number.");
}

function wrong(option: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `capability.${option}`, got, expected, fix });
}
