import { jsonSchema } from "./json-schema.ts";
import { numeric } from "./numeric.ts";
import { contains, exactMatch, regexMatch } from "./text-match.ts";
import { toolCallsMatch } from "./tool-calls.ts";
import type { VerifierKind } from "./verifier.ts";

/** The built-in verifiers, by the name that tasks use. */
export const builtInVerifiers: Readonly<Record<string, VerifierKind>> = {
  exact_match: exactMatch,
  contains,
  regex_match: regexMatch,
  numeric,
  json_schema: jsonSchema,
  tool_calls_match: toolCallsMatch,
};
