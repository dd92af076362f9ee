import * as z from "zod";

/** A part of a measurement, of which a resume reads numbers that may be unknown. */
const part = z.looseObject({}).nullable();
const reasons = z.record(z.string(), z.string());
const measured = z.looseObject({
  logprob_margin: part,
  preference_compliance: part,
  general: part,
  collapse: z.looseObject({ alerts: z.array(z.string()), unknown: reasons }).nullable(),
});

/** The part of a preference's files that a resume reads. A file without it was damaged or edited. */
export const writtenSchemas = {
  metadata: z.looseObject({
    lora_id: z.string(),
    config: z.looseObject({}),
    preference_definition: z.looseObject({}),
    grader: z.looseObject({ fingerprint: z.string() }),
  }),
  baseline: z.looseObject({
    lora_id: z.string(),
    eval: measured,
    margin_rows: z.array(z.looseObject({ id: z.string() })).nullable(),
    collapse_reference: z.looseObject({}).nullable(),
    unknown: reasons.optional(),
  }),
  step: z.looseObject({
    step: z.int(),
    sdpo_metrics: z.looseObject({ step_id: z.string() }),
    eval: measured,
    unknown: reasons.optional(),
  }),
};
