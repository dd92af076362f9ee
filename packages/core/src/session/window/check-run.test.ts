import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { PeriodicCapabilityCallback } from "../../config/callbacks.ts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { checkRequests, type RequestCheck } from "./check-run.ts";

/** A model before its weights are loaded: every ability fails. */
function outlined(): RequestCheck["model"] {
  const fail = () => Promise.reject(new Error("the weights are not there"));
  return { ...toyTraining().model, generate: fail, logLikelihoods: fail, nextToken: fail };
}

const toy = (id: string, changes = {}) =>
  new PeriodicCallback({ ...toyEvaluation(), ...changes }, { schedule: [], id });

it("returns the errors of every callback and of the baseline, without weights", async () => {
  const questions = new PeriodicCapabilityCallback({ questions: "no/such.jsonl" });
  const wrong = await checkRequests({
    callbacks: [toy("right"), toy("empty", { items: () => [] }), questions],
    baseline: "./no-run",
    model: outlined(),
  });
  expect(wrong.map(errorMessage)).toEqual([
    expect.stringContaining('callback "empty", evaluation "toy" items: got no items'),
    expect.stringContaining('"no/such.jsonl", which does not exist'),
    expect.stringContaining("session options.baseline: got ./no-run, which has no snapshot"),
  ]);
});

it("requires an adapter for adapter_off", async () => {
  const asking = { callbacks: [toy("right")], baseline: "adapter_off", model: outlined() } as const;
  expect((await checkRequests(asking)).map(errorMessage)).toEqual([
    expect.stringContaining("has no adapter to switch off"),
  ]);
  expect(await checkRequests({ ...asking, model: { ...outlined(), base: outlined() } })).toEqual([]);
});
