import type { TrainableLM } from "@periodic-eval/core/tfjs";
import { collate } from "../data/collate.ts";
import type { RenderedExample } from "./example.ts";
import type { SDPOPass } from "./gradients.ts";
import type { SDPOConfig } from "./sdpo-config.ts";
import { drawnLogProbs, readTeacher, type TeacherReading } from "./teacher.ts";

/** What a pass learns from, and how its teacher is asked. */
export interface TaughtPass extends Omit<SDPOPass, "teacher"> {
  teach(): Promise<TeacherReading>;
}

/**
 * A batch's passes, `microBatchSize` examples in each. Models that do not change while the batch is learned are read here,
 * once: the base, as what is held to and as teacher.
 */
export async function passesOf(
  model: TrainableLM,
  examples: readonly RenderedExample[],
  { microBatchSize, teacher, teacherTopK }: SDPOConfig,
): Promise<TaughtPass[]> {
  const passes: TaughtPass[] = [];
  for (let from = 0; from < examples.length; from += microBatchSize) {
    const some = examples.slice(from, from + microBatchSize);
    const batchOf = (who: "student" | "teacher") =>
      collate(
        some.map((example) => example[who]),
        model.fixedLength,
      );
    const [batch, read] = [batchOf("student"), batchOf("teacher")];
    const frozen = teacher === "base" ? await readTeacher(model.base!, read, teacherTopK) : null;
    passes.push({
      batch,
      oldLogProbs: Float32Array.from(some.flatMap(({ oldLogProbs }) => oldLogProbs)),
      baseLogProbs: model.base ? await drawnLogProbs(model.base, batch) : null,
      teach: async () => frozen ?? readTeacher(model, read, teacherTopK),
    });
  }
  return passes;
}
