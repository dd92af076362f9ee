import type { Engine } from "./engine.ts";

/** Plain JavaScript: slow and simple, for tests. */
export const cpu: Engine = {
  name: "cpu",
  backend: "cpu",
  packages: ["@tensorflow/tfjs-backend-cpu"],
  async load() {
    await import("@tensorflow/tfjs-backend-cpu");
  },
};
