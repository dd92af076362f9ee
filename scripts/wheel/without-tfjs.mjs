// Takes the place of the backends of @periodic-eval/models in the program of the Python package, which has no TensorFlow.js.
import { configError } from "@periodic-eval/contracts/options";

/** Throws the error of everything that needs TensorFlow.js. */
function refuse() {
  const command = process.argv[2] ?? "";
  throw configError({
    where: `periodic-eval ${command}`.trim(),
    got: "the Python package, which has no TensorFlow.js to run models in this program",
    expected: "the npm package",
    fix: `Install Node, and run \`npx periodic-eval ${command}\` with the same arguments. In Python, PeriodicEval and live measure the model that you train; --engine names a model on a server.`,
  });
}

export const useBackend = async () => refuse();
export const onBackend = async () => refuse();
export { refuse, refuse as nativeBackendFolder, refuse as buildNative };
