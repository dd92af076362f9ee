import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import type { ValidateFunction } from "ajv";
import { jsonIn } from "./json-in-text.ts";
import { refuse, short, type VerifierKind } from "./verifier.ts";

/**
 * The completion holds JSON that a JSON Schema (draft-07) allows. The schema is the task's answer, or the argument
 * `schema` for all tasks alike.
 */
export const jsonSchema: VerifierKind = {
  version: "2",
  args: ["schema"],
  async open({ answer, args }) {
    const { schema: shared } = args;
    if (answer !== null && shared !== undefined)
      throw refuse("answer", answer, "no answer beside args.schema", "Leave one of the two out.");
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
  const isSchema = typeof schema === "object" && schema !== null && !Array.isArray(schema);
  if (!isSchema) throw refuse(key, schema, "a JSON Schema", "Write { type: … } there.");
  const { Ajv } = await import("ajv");
  try {
    return new Ajv({ strictSchema: true, strictTypes: false, logger: false }).compile(schema);
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: key,
      got: `${short(schema)} (${errorMessage(cause)})`,
      expected: "a JSON Schema of draft-07",
      fix: "Correct the schema.",
      cause,
    });
  }
}
