import { z } from "zod";
import { snapshotSchema } from "../contracts/snapshot.ts";

/**
 * Returns the published JSON Schema (draft 2020-12) of a snapshot file, generated from the schema that the store validates
 * with. It allows additional keys everywhere, so that a later minor version may add some.
 */
export function snapshotJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    $id: "urn:periodic-eval:snapshot:1",
    title: "periodic-eval snapshot",
    ...z.toJSONSchema(snapshotSchema, { io: "input" }),
  };
}
