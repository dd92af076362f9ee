import { periodicEvalJsonSchema } from "@periodic-eval/core/config";
import { loraJsonSchema } from "@periodic-eval/models";
import { dpoConfigJsonSchema, sftConfigJsonSchema } from "@periodic-eval/trainers";
import * as z from "zod";
import { loggerNames } from "../../config/open-loggers.ts";
import { trainingSchema } from "./training-file.ts";

type JsonSchema = Readonly<Record<string, unknown>>;
type Properties = Readonly<Record<string, JsonSchema>>;

/** Returns the JSON Schema (draft 2020-12) of a training file, for editors: `# yaml-language-server: $schema=…`. */
export function trainingJsonSchema(): JsonSchema {
  const whole = z.toJSONSchema(trainingSchema, { io: "input" }) as JsonSchema;
  const { config, lora, periodic_eval, eval: outer, loggers, phases, ...others } = propertiesOf(whole);
  const block = periodicEvalJsonSchema();
  const options = configSchema();
  const phase = phases!["items"] as JsonSchema;
  const phaseProperties = propertiesOf(phase);
  return {
    $id: "urn:periodic-eval:train:1",
    title: "training of periodic-eval",
    ...whole,
    additionalProperties: false,
    properties: {
      ...others,
      config: filled(config!, options),
      lora: filled(lora!, loraJsonSchema()),
      periodic_eval: filled(periodic_eval!, block),
      eval: {
        ...outer,
        additionalProperties: false,
        properties: { periodic_eval: filled(propertiesOf(outer!)["periodic_eval"]!, block) },
      },
      loggers: filled(loggers!, loggersSchema()),
      phases: {
        ...phases,
        items: {
          ...phase,
          additionalProperties: false,
          properties: { ...phaseProperties, config: filled(phaseProperties["config"]!, options) },
        },
      },
    },
  };
}

const propertiesOf = (schema: JsonSchema): Properties => schema["properties"] as Properties;

/** Returns the schema `content` with the description of the training file, whose own schema allows any map. */
function filled({ description }: JsonSchema, content: JsonSchema): JsonSchema {
  const { $schema: _schema, $id: _id, title: _title, ...others } = content;
  return { ...others, description };
}

/** The options of both methods. A file has one seed, at its top. */
function configSchema(): JsonSchema {
  const { seed: _, ...properties } = {
    ...propertiesOf(dpoConfigJsonSchema()),
    ...propertiesOf(sftConfigJsonSchema()),
  };
  return { type: "object", properties, additionalProperties: false };
}

function loggersSchema(): JsonSchema {
  const logger = (name: string) => [
    name,
    { type: "object", description: `Options of the ${name} logger; {} for its defaults.` },
  ];
  return {
    type: "object",
    properties: Object.fromEntries(loggerNames.map(logger)) as JsonSchema,
    additionalProperties: false,
  };
}
