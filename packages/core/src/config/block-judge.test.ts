import { afterAll, expect, it, vi } from "vitest";
import { buildPeriodicCallbacks } from "./build-callbacks.ts";

vi.mock("@periodic-eval/remote", () => {
  throw new Error("not installed");
});
vi.stubEnv("JUDGE_MODEL", "");
afterAll(() => vi.unstubAllEnvs());

it.each([
  [{ refusal: { judge_model: "openai:m" } }, ["refusal", "judge_model"], '"openai:m", and'],
  [{ alignment: true, judge_models: ["openai:m", "openai:n"] }, ["judge_models", 0], '"openai:m", and'],
  [{ alignment: true }, ["judge_model"], "null, and"],
])("names the key of %j if the judge's package is not installed", async (keys, path, got) => {
  const built = buildPeriodicCallbacks({ capability: false, ...keys }, { phase: "em" });
  await expect(built).rejects.toMatchObject({
    code: "config",
    path,
    got: expect.stringContaining(`${got} @periodic-eval/remote, which opens judges, cannot be imported`),
  });
});
