/**
 * Runs work while `Math.random` throws. TensorFlow.js draws dropout masks and shuffles from it, so a draw of a measurement would
 * change the training that follows.
 */
export async function withoutMathRandom<T>(work: () => T | Promise<T>): Promise<T> {
  const real = Math.random;
  Math.random = () => {
    throw new Error("expected that nothing is drawn from Math.random");
  };
  try {
    return await work();
  } finally {
    Math.random = real;
  }
}
