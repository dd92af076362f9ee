import * as tf from "@tensorflow/tfjs-core";
import { configError } from "@periodic-eval/contracts/options";

/**
 * Checks that TensorFlow.js has a backend. Without one it throws "No backend found in registry." at the first tensor.
 *
 * @param where The function that needs the backend, for the error.
 * @throws PeriodicEvalError `config` if no backend is registered.
 */
export function requireBackend(where: string): void {
  if (tf.engine().backendNames().length > 0) return;
  throw configError({
    where,
    got: "TensorFlow.js without a backend",
    expected: "a backend before the first tensor",
    fix: "Call `await useBackend()` of @periodic-eval/models first, or import a backend: `@tensorflow/tfjs-backend-cpu`.",
  });
}
