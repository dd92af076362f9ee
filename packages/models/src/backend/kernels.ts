import type * as Kernels from "@periodic-eval/kernels";
import { isMissing } from "./definition.ts";

let kernels: typeof Kernels | null | undefined;

/** Returns the package `@periodic-eval/kernels`; null if it is not installed, or before the first `useBackend`. */
export const loadedKernels = (): typeof Kernels | null => kernels ?? null;

/**
 * Imports `@periodic-eval/kernels` if it is installed. Without it operations of TensorFlow.js compute the same up to rounding, more
 * slowly.
 */
export async function findKernels(load?: () => Promise<typeof Kernels>): Promise<void> {
  if (kernels !== undefined) return;
  try {
    // esbuild accepts a missing package only where `await import()` stands in a `try`.
    kernels = load === undefined ? await import("@periodic-eval/kernels") : await load();
  } catch (error) {
    if (!isMissing(error)) throw error;
    kernels = null;
  }
}
