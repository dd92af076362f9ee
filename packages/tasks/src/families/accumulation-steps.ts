import { parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import * as z from "zod";

const argumentsSchema = z.strictObject({
  datasetSize: positiveInteger,
  maxBatchSize: positiveInteger,
  dataParallelReplicas: positiveInteger,
});

/**
 * Splits a dataset into equal batches for every replica. Returns the largest batch per replica of at most `maxBatchSize`, and
 * the number of batches per replica, with batch × steps × replicas = `datasetSize`; two nulls if the replicas do not divide it.
 *
 * @throws PeriodicEvalError `config` for an argument that is not a positive integer.
 */
export function findAccumulationSteps(
  datasetSize: number,
  maxBatchSize: number,
  dataParallelReplicas: number,
): [batch: number, steps: number] | [batch: null, steps: null] {
  parseOptions("findAccumulationSteps", argumentsSchema, { datasetSize, maxBatchSize, dataParallelReplicas });
  const perReplica = datasetSize / dataParallelReplicas;
  if (!Number.isInteger(perReplica)) return [null, null];
  let batch = Math.min(maxBatchSize, perReplica);
  while (perReplica % batch !== 0) batch -= 1;
  return [batch, perReplica / batch];
}
