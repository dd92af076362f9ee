import { defaultPersonas, parsePersonas, type Persona } from "../../evaluations/prompting/personas.ts";
import { placesIn } from "../../evaluations/prompting/read-data.ts";
import { blockName, type ParsedBlock } from "./parse-config.ts";

/**
 * Returns the personas of a block: a list, or a source that is read before step 1. Undefined if the block has none.
 *
 * @throws PeriodicEvalError `config` for a wrong persona, with its path within the block.
 */
export function personasOf({
  config: { personas },
  pathOf,
}: ParsedBlock): readonly Persona[] | string | undefined {
  if (personas === null) return undefined;
  if (typeof personas === "string") return personas;
  return parsePersonas(personas, { placeOf: placesIn(blockName), path: pathOf("personas"), code: "config" });
}

/** Returns the personas of a block that measures per persona; without any, the eleven default ones. */
export const personasOrDefault = (block: ParsedBlock): readonly Persona[] | string =>
  personasOf(block) ?? defaultPersonas;
