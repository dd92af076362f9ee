import type { Json } from "@periodic-eval/core";
import { dataError, errorMessage, isRecord } from "@periodic-eval/contracts/options";
import type { ValidateFunction } from "ajv";
import { jsonIn } from "./json-in-text.ts";
import { verifierError, short, type VerifierKind } from "./verifier.ts";

/**
 * Passes if the completion contains JSON that fits a JSON Schema (draft-07): the task's answer, or the argument `schema` for all
 * tasks.
 */
export const jsonSchema: VerifierKind = {
  version: "2",
  args: ["schema"],
  async open({ answer, args }) {
    const { schema: shared } = args;
    if (answer !== null && shared !== undefined)
      throw verifierError("answer", answer, "no answer together with args.schema", "Remove one of the two.");
    const validate = await compiled(shared === undefined ? "answer" : "args.schema", shared ?? answer);
    return (completion) => {
      const read = jsonIn(completion);
      if (read === null) return "no JSON";
      if (validate(read.value)) return null;
      const { instancePath, message = "does not fit" } = validate.errors![0]!;
      return `${instancePath === "" ? "the value" : instancePath} ${message}`;
    };
  },
};

async function compiled(key: string, schema: Json): Promise<ValidateFunction> {
  if (!isRecord(schema)) throw verifierError(key, schema, "a JSON Schema", "Write { type: … } there.");
  const { Ajv } = await import("ajv");
  try {
    return new Ajv({ strictSchema: true, strictTypes: false, logger: false }).compile(schema);
  } catch (cause) {
    const got = `${short(schema)} (${errorMessage(cause)})`;
    throw dataError(key, got, "a JSON Schema of draft-07", "Correct the schema.", cause);
  }
}
