import * as tf from "@tensorflow/tfjs-core";
import { inEvaluation, targetLosses, type CausalLM } from "@periodic-eval/tfjs";
import { scoredTokensOf, type Batch } from "../data/collate.ts";
import { evaluatedLogits, evaluatedLosses } from "../losses/token-losses.ts";
import { mapRowChunks } from "./row-chunks.ts";

/** The teacher's log-probs at N positions, without tensors, so that they can be kept from one gradient step to the next. */
export interface TeacherReading {
  /** [N, K], in nats, in descending order. */
  readonly logProbs: Float32Array;
  /** [N, K]. */
  readonly ids: Int32Array;
  readonly k: number;
  /** Σ log p of the drawn tokens, in nats. */
  readonly drawn: number;
}

/** Returns the teacher's `topK` most likely tokens (at most all) at each scored position, in evaluation mode. */
export async function readTeacher(lm: CausalLM, batch: Batch, topK: number): Promise<TeacherReading> {
  const k = Math.min(topK, lm.vocabSize);
  const [logProbs, ids, drawn] = inEvaluation(lm, () =>
    tf.tidy(() => {
      const { targets, ...read } = scoredTokensOf(batch);
      const chunks = mapRowChunks(evaluatedLogits(lm, read), (logits, select) => {
        const some = select(targets);
        const at = tf.stack([tf.range(0, some.size, 1, "int32"), some], 1);
        const { losses } = targetLosses(logits, some);
        // The losses contain log Σ exp computed from softmax, which is fast on wasm.
        const logSum = tf.add(losses, tf.gatherND(logits, at));
        const { values, indices } = tf.topk(logits, k, true);
        return [tf.sub(values, tf.reshape(logSum, [-1, 1])), indices, tf.neg(tf.sum(losses))];
      });
      const all = (i: number) => chunks.map((each) => each[i]!);
      return [tf.concat(all(0)), tf.concat(all(1)), tf.addN(all(2))] as const;
    }),
  );
  try {
    const [nats, tokens] = [await logProbs.data<"float32">(), await ids.data<"int32">()];
    return { logProbs: nats, ids: tokens, k, drawn: (await drawn.data<"float32">())[0]! };
  } finally {
    tf.dispose([logProbs, ids, drawn]);
  }
}

/** Returns log p of the drawn tokens, in nats, [N], in evaluation mode. */
export async function drawnLogProbs(lm: CausalLM, batch: Batch): Promise<Float32Array> {
  const logProbs = tf.tidy(() => tf.neg(evaluatedLosses(lm, scoredTokensOf(batch))));
  try {
    return await logProbs.data<"float32">();
  } finally {
    logProbs.dispose();
  }
}
