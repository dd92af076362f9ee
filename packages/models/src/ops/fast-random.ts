/**
 * Returns a stream of numbers in [0, 1) with 32 bits each: sfc32 (Doty-Humphrey, PractRand), seeded by four draws of a
 * slower stream. A dropout mask needs a hundred thousand numbers, and a named stream takes ten times as long for each.
 */
export function fastRandom(seeds: () => number): () => number {
  const word = () => Math.floor(seeds() * 2 ** 32) | 0;
  let [a, b, c, counter] = [word(), word(), word(), word()];
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return (sum >>> 0) / 2 ** 32;
  };
  // The first outputs depend on few of the seeds' bits.
  for (let i = 0; i < 12; i++) next();
  return next;
}
