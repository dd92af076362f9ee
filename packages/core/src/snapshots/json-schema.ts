import { z } from "zod";
import { snapshotSchema } from "../contracts/snapshot.ts";

/**
 * The published JSON Schema (draft 2020-12) of a snapshot file, made from the schema that the store checks with.
 * Keys it does not name are allowed everywhere, so that a later minor version may add some.
 */
export function snapshotJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    $id: "urn:periodic-eval:snapshot:1",
    title: "periodic-eval snapshot",
    ...z.toJSONSchema(snapshotSchema, { io: "input" }),
  };
}
