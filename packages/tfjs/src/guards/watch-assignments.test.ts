import * as tf from "@tensorflow/tfjs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { watchAssignments, watchBackend } from "./watch-assignments.ts";

let weights: { readonly name: string; readonly read: () => tf.Variable }[];
let seen: string[];
beforeEach(async () => {
  await tf.setBackend("cpu");
  const variables = [tf.variable(tf.ones([2])), tf.variable(tf.ones([2]))];
  weights = variables.map((variable, i) => ({ name: `w${i}`, read: () => variable }));
  seen = [];
});
afterEach(() => tf.disposeVariables());
const watch = () => watchAssignments(weights, (what) => void seen.push(what));
const assign = (at: number) => tf.tidy(() => weights[at]!.read().assign(tf.zeros([2])));

it("reports each assignment inside the call that makes it, and assigns as before", () => {
  const { disposeVariable } = tf.engine();
  const end = watch();
  assign(1);
  expect(seen).toEqual(["w1 assigned"]);
  expect([...weights[1]!.read().dataSync()]).toEqual([0, 0]);
  end();
  assign(0);
  expect(seen).toEqual(["w1 assigned"]);
  expect(Object.hasOwn(weights[0]!.read(), "assign")).toBe(false);
  expect(tf.engine().disposeVariable).toBe(disposeVariable);
});

it("reports an optimizer's assignments", () => {
  const end = watch();
  const optimizer = tf.train.sgd(0.1);
  optimizer.minimize(() => tf.sum(weights[0]!.read()) as tf.Scalar, false, [weights[0]!.read()]);
  end();
  expect(seen).toEqual(["w0 assigned"]);
});

it("reports dispose and tf.disposeVariables, but not of other variables", () => {
  const end = watch();
  tf.variable(tf.ones([1])).dispose();
  weights[0]!.read().dispose();
  tf.disposeVariables();
  end();
  expect(seen).toEqual(["w0 disposed", "w1 disposed"]);
});

it("serves two watchers, which end in any order", () => {
  const [first, second] = [watch(), watch()];
  assign(0);
  first();
  assign(0);
  second();
  assign(0);
  expect(seen).toEqual(["w0 assigned", "w0 assigned", "w0 assigned"]);
  expect([...weights[0]!.read().dataSync()]).toEqual([0, 0]);
});

it("reports a switch to another backend, but not one for tracing or to the same", async () => {
  const { factory } = tf.engine().registryFactory["cpu"]!;
  tf.registerBackend("second", factory);
  tf.registerBackend("tracing", factory, -1);
  const end = watchBackend((what) => void seen.push(what));
  for (const name of ["cpu", "tracing", "cpu", "second", "cpu"]) await tf.setBackend(name);
  end();
  await tf.setBackend("second");
  for (const name of ["second", "tracing"]) tf.removeBackend(name);
  expect(seen).toEqual(["backend=second", "backend=cpu"]);
});
