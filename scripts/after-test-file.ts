// Vitest's set-up of each test file that shares its process: the next file in the process finds no folders and variables of this
// one, so that TensorFlow.js gives its variables the names that they have in a new process.
import { disposeVariables } from "@tensorflow/tfjs-core";
import { afterAll } from "vitest";
import { cleanUp } from "../packages/testing/src/after-file.test-data.ts";

afterAll(async () => {
  await cleanUp();
  disposeVariables();
});
