import * as z from "zod";
import { doneSchema, hostCalls, messageSchema, notices, trainerCalls } from "./protocol.ts";

/** Returns the JSON Schema (draft 2020-12) of the live protocol: of a line, and under `$defs` of every call's params and answer. */
export function liveJsonSchema(): Readonly<Record<string, unknown>> {
  const schemaOf = (schema: z.ZodType) => {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" }) as Record<string, unknown>;
    return rest;
  };
  const params = { ...trainerCalls, ...notices };
  const calls = Object.entries(params).map(([name, schema]) => [`${name}.params`, schemaOf(schema)]);
  const answers = Object.entries(hostCalls).flatMap(([name, { params, ...answer }]) => [
    [`${name}.params`, schemaOf(params)],
    "row" in answer ? [`${name}.row`, schemaOf(answer.row)] : [`${name}.result`, schemaOf(answer.result)],
  ]);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "urn:periodic-eval:live:1",
    title: "A line of periodic-eval's live protocol",
    ...schemaOf(messageSchema),
    $defs: { ...Object.fromEntries([...calls, ...answers]), done: schemaOf(doneSchema) },
  };
}
