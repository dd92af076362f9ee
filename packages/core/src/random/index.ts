/** Seeded random streams, and hashes. Everything random in a run draws from a stream named by a seed. */
export {
  canonicalJson,
  createHasher,
  hashBytes,
  hashJson,
  hashText,
  type Hasher,
} from "@periodic-eval/contracts";
export { pythonRandom, type PythonRandom } from "./python.ts";
export { fastStream, namedStream, seedOf } from "./streams.ts";
