import { personasOrDefault } from "../../config/block/personas.ts";
import type { ParsedBlock } from "../../config/block/parse-config.ts";
import type { CapabilityOptions } from "./options.ts";

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
    ...(questions !== null && { questions }),
    method,
    subsample: n === "all" ? null : { n, seed },
    ...(config.min_items !== null && { minItems: config.min_items }),
    ...(config.persona_capability
      ? { personas: personasOrDefault(block) }
      : method === "letters" && { system: config.system }),
  };
}
