import * as z from "zod";

export const evidenceSchema = z.object({
  part: z.string().describe("The guard's name; after a slash, the part that it observed."),
  before: z
    .string()
    .nullable()
    .describe("What the guard observed before the measurement; null if it observed nothing."),
  after: z
    .string()
    .nullable()
    .describe("What the guard observed after the measurement; null if it observed nothing."),
  intact: z.boolean().nullable().describe("True: observed unchanged. False: changed. Null: not observed."),
  advisory: z
    .boolean()
    .optional()
    .describe("True if a change does not count as a disturbance of the training (a leaked tensor)."),
  note: z.string().optional().describe("What a reader should know about this evidence."),
});

export type Evidence = z.infer<typeof evidenceSchema>;
