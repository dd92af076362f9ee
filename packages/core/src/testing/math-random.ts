/**
 * Runs work during which `Math.random` throws: tfjs dropout and shuffling draw from it, so a draw of ours would change
 * the training that goes on afterwards.
 */
export async function withoutMathRandom<T>(work: () => T | Promise<T>): Promise<T> {
  const real = Math.random;
  Math.random = () => {
    throw new Error("not so: nothing is drawn from Math.random");
  };
  try {
    return await work();
  } finally {
    Math.random = real;
  }
}
