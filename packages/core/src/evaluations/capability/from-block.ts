import { personasOrDefault } from "../../config/block/personas.ts";
import type { ParsedBlock } from "../../config/block/parse-config.ts";
import type { CapabilityOptions } from "./options.ts";

/** The default question file of a block. */
const defaultQuestions = "arc_challenge/test.jsonl";

/** Returns the options of capability that a `periodic_eval` block sets. */
export function capabilityOptionsOf(block: ParsedBlock): CapabilityOptions {
  const {
    questions,
    capability_method: method,
    subsample_n: n,
    subsample_seed: seed,
    ...config
  } = block.config;
  return {
    questions: questions ?? defaultQuestions,
    method,
    subsample: n === null ? null : { n, seed },
    ...(config.min_items !== null && { minItems: config.min_items }),
    ...(config.persona_capability
      ? { personas: personasOrDefault(block) }
      : method === "letters" && { system: config.system }),
  };
}

/** Without a question file in the block, a missing default file is one warning and no error. */
export const capabilityIsOptional = ({ config }: ParsedBlock) => ({ optional: config.questions === null });
