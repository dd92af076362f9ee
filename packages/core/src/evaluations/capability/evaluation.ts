import * as z from "zod";
import type { AnyEvaluation, SystemPrompt } from "@periodic-eval/contracts";
import {
  codeOption,
  configError,
  parseOptions,
  filledString,
  integerFromZero,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import { readQuestions } from "@periodic-eval/data";
import { nestedSubset } from "../kit/subset.ts";
import { readPersonas, checkPersonas, personasOption, type Persona } from "../prompting/personas.ts";
import { systemPromptSchema } from "../prompting/prompt-options.ts";
import { cloze } from "./cloze.ts";
import { letters } from "./letters.ts";
import { defaultQuestions, questionFile, type Subsample } from "./question-file.ts";

/**
 * Measures what the model still knows: multiple-choice questions, scored without generating. See `letters` and `cloze`.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function capabilityEvaluation(options: CapabilityOptions = {}): AnyEvaluation {
  checkCapabilityOptions(options);
  const {
    questions = defaultQuestions,
    method = "letters",
    subsample = { n: 200, seed: 42 },
    minItems = 40,
    system = "omit",
    personas,
    shots,
  } = options;
  const isDefault = options.questions === undefined;
  const source = questionFile(questions, subsample, {
    ...codeOption("capability", "questions"),
    ...(isDefault && { where: "the default questions" }),
  });
  if (method === "letters") {
    // Personas of a file are counted once it is read, before step 1.
    let perQuestion = typeof personas === "string" ? 1 : (personas?.length ?? 1);
    const loadPersonas = async () => {
      const people = typeof personas === "string" ? await readPersonas(personas) : personas!;
      perQuestion = people.length;
      return people;
    };
    const asked = personas !== undefined && { personas: loadPersonas };
    return {
      ...letters({ questions: source, system, ...asked }),
      get minItems() {
        return minItems * perQuestion;
      },
    };
  }
  const examples = shots !== undefined && { shots: () => sampleShots(shots) };
  return { ...cloze({ questions: source, ...examples }), minItems };
}

async function sampleShots({ shots, pool, poolSeed }: ShotsOptions) {
  const { questions, sha256 } = await readQuestions(pool, "capability options.shots.pool");
  if (questions.length < shots) {
    const got = `${shots} of a pool of ${questions.length}`;
    const expected = "at most the size of the pool";
    throw configError({ where, path: ["shots", "shots"], got, expected, fix: "Lower `shots`." });
  }
  // One more than shown: it replaces an example that is the question itself.
  const chosen = nestedSubset(questions, { n: shots + 1, seed: poolSeed });
  return {
    pool: chosen,
    count: shots,
    provenance: { shots, pool_sha256: sha256, pool_seed: poolSeed, ids: chosen.map(({ id }) => id) },
  };
}

export interface CapabilityOptions {
  /**
   * Questions in the ARC format: a JSON Lines or Parquet file, or `hf:owner/dataset[/config][/split]`. Default:
   * `hf:allenai/ai2_arc`, ARC-Challenge's test split, which is downloaded once into the cache of huggingface_hub.
   */
  readonly questions?: string;
  /** Default `letters`. `cloze` needs no chat template. */
  readonly method?: "letters" | "cloze";
  /** Default: 200 questions with seed 42. Null uses all questions. */
  readonly subsample?: Subsample;
  /** Fewest questions of a measurement that the budget reduces. Default 40. */
  readonly minItems?: number;
  /** System prompt of the chat, for `letters`. Default `omit`. */
  readonly system?: SystemPrompt;
  /**
   * For `letters`: asks every question as each persona, instead of with `system`, and reports metrics per persona. A list, or
   * a source of `readPersonas`.
   */
  readonly personas?: readonly Persona[] | string;
  /** For `cloze`: few-shot examples before each question, sampled once from the questions of `pool` with `poolSeed`. */
  readonly shots?: ShotsOptions;
}

interface ShotsOptions {
  readonly shots: number;
  /** A source, as `questions`. */
  readonly pool: string;
  readonly poolSeed: number;
}

const questionSource = filledString("the path of a JSON Lines or Parquet file, or hf:owner/dataset").meta({
  fix: "Name the file or the dataset of questions.",
});

export const capabilityShape = {
  questions: questionSource.optional(),
  method: z.enum(["letters", "cloze"]).optional(),
  subsample: z
    .strictObject({
      n: positiveInteger,
      seed: integerFromZero,
    } satisfies Record<keyof NonNullable<Subsample>, z.ZodType>)
    .meta({ fix: "Write { n: 50, seed: 42 }, or null for all questions." })
    .nullable()
    .optional(),
  minItems: positiveInteger.optional(),
  system: systemPromptSchema.optional(),
  personas: personasOption.optional(),
  shots: z
    .strictObject({
      shots: integerFromZero,
      pool: questionSource,
      poolSeed: integerFromZero,
    } satisfies Record<keyof ShotsOptions, z.ZodType>)
    .optional(),
} satisfies Record<keyof CapabilityOptions, z.ZodType>;

const where = "capability options";

function checkCapabilityOptions(options: CapabilityOptions): void {
  parseOptions(where, z.strictObject(capabilityShape), options);
  const { method = "letters", system, personas, shots } = options;
  const isCloze = method === "cloze";
  const refuse = (path: string, got: string, expected: string, fix: string) => {
    throw configError({ where, path: [path], got, expected, fix });
  };
  if (shots !== undefined && !isCloze) {
    const fix = 'Set `method: "cloze"`, or remove `shots`.';
    refuse("shots", 'shots with method "letters"', 'shots with method "cloze"', fix);
  }
  if (personas !== undefined && typeof personas !== "string") checkPersonas(where, personas);
  if (personas !== undefined && isCloze) {
    const fix = "Remove `personas`: cloze renders no chat.";
    refuse("personas", 'personas with method "cloze"', "one of the two", fix);
  }
  if (personas !== undefined && system !== undefined) {
    const fix = "Remove `system`: each persona has its own.";
    refuse("personas", "personas and a system prompt", "one of the two", fix);
  }
  if (system !== undefined && system !== "omit" && isCloze) {
    const expected = "no system prompt: cloze renders no chat";
    refuse("system", 'a system prompt with method "cloze"', expected, "Remove `system`.");
  }
}
