import { periodicEvalJsonSchema } from "@periodic-eval/core/config";
import { loraJsonSchema } from "@periodic-eval/models";
import { dpoConfigJsonSchema, sftConfigJsonSchema } from "@periodic-eval/trainers";
import * as z from "zod";
import { blockMap, configMap, loraMap, trainingSchema } from "./training-file.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** Returns the JSON Schema (draft 2020-12) of a training file, for editors: `# yaml-language-server: $schema=…`. */
export function trainingJsonSchema(): JsonSchema {
  const contents = new Map<z.core.$ZodType, JsonSchema>([
    [configMap, configSchema()],
    [loraMap, loraJsonSchema()],
    [blockMap, periodicEvalJsonSchema()],
  ]);
  const whole = z.toJSONSchema(trainingSchema, {
    io: "input",
    override({ zodSchema, jsonSchema }) {
      const { $schema: _schema, $id: _id, title: _title, ...content } = contents.get(zodSchema) ?? {};
      delete jsonSchema.propertyNames;
      Object.assign(jsonSchema, content);
    },
  });
  return { $id: "urn:periodic-eval:train:1", title: "training of periodic-eval", ...whole };
}

/** The options of both methods. A file has one seed, at its top. */
function configSchema(): JsonSchema {
  const [sft, dpo] = [sftConfigJsonSchema(), dpoConfigJsonSchema()].map(
    (schema) => schema["properties"] as JsonSchema,
  );
  const { seed: _, ...properties } = { ...dpo, ...sft };
  return { type: "object", properties, additionalProperties: false };
}
