import type { AnyEvaluation } from "@periodic-eval/contracts";
import { codeOption } from "@periodic-eval/contracts/options";
import { nestedSubset } from "../kit/subset.ts";
import { readPersonas } from "../prompting/personas.ts";
import { cloze } from "./cloze.ts";
import { letters } from "./letters.ts";
import {
  checkCapabilityOptions,
  checkPoolSize,
  type CapabilityOptions,
  type ShotsOptions,
} from "./options.ts";
import { readQuestions } from "@periodic-eval/data";
import { defaultQuestions, questionFile } from "./question-file.ts";

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
  checkPoolSize(shots, questions.length);
  // One more than shown: it replaces an example that is the question itself.
  const chosen = nestedSubset(questions, { n: shots + 1, seed: poolSeed });
  return {
    pool: chosen,
    count: shots,
    provenance: { shots, pool_sha256: sha256, pool_seed: poolSeed, ids: chosen.map(({ id }) => id) },
  };
}
