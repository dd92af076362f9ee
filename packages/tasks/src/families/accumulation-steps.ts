import { PeriodicEvalError } from "@periodic-eval/core";
import { isCount, quoteValue } from "@periodic-eval/core/internal";

/**
 * How a data set of a size is taken as whole batches alike on every replica: the largest batch of a replica that is no
 * larger than `maxBatchSize`, and how many of them each replica takes; batch × steps × replicas is the size. Null where no
 * batch divides it.
 *
 * @throws PeriodicEvalError `config` for what is not a whole number of 1 or more.
 */
export function findAccumulationSteps(
  datasetSize: number,
  maxBatchSize: number,
  dataParallelReplicas: number,
): [batch: number, steps: number] | null {
  for (const [name, value] of Object.entries({ datasetSize, maxBatchSize, dataParallelReplicas })) {
    if (isCount(value, 1)) continue;
    throw new PeriodicEvalError({
      code: "config",
      where: `findAccumulationSteps ${name}`,
      got: quoteValue(value),
      expected: "a whole number of 1 or more",
      fix: "Correct the number.",
    });
  }
  const ofReplica = datasetSize / dataParallelReplicas;
  if (!Number.isInteger(ofReplica)) return null;
  let batch = Math.min(maxBatchSize, ofReplica);
  while (ofReplica % batch !== 0) batch -= 1;
  return [batch, ofReplica / batch];
}
