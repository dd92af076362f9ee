import { openSession } from "./session.ts";
import { PeriodicCallback } from "../callback/periodic.ts";
import { everyPercent } from "../schedule/triggers.ts";
import { crossings, advance } from "../schedule/crossings.ts";
import { toyEvaluation, toyTraining } from "../testing/toy-training.ts";
const time = async (what: string, n: number, f: () => unknown) => {
  let best = 1e9;
  for (let r = 0; r < 5; r++) { const t = performance.now(); for (let i = 0; i < n; i++) { const p = f(); if (p instanceof Promise) await p; } best = Math.min(best, (performance.now() - t) / n * 1000); }
  console.log(what, best.toFixed(2), "us");
};
const open = async (k: number, hook: boolean) => {
  const toy = toyTraining();
  const cbs = Array.from({ length: k }, (_, i) => hook ? { id: `h${i}`, onStepEnd() {} } : new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)], id: `c${i}` }));
  const s = openSession(toy.options(cbs, { maxSteps: 10_000_000 })); await s.begin(); return s;
};
const s0 = await open(0, false), s1 = await open(1, true), s3 = await open(3, true), p1 = await open(1, false), p3 = await open(3, false);
await time("none", 5000, () => s0.stepEnd());
await time("1 hook", 5000, () => s1.stepEnd());
await time("3 hooks", 5000, () => s3.stepEnd());
await time("1 periodic", 5000, () => p1.stepEnd());
await time("3 periodic", 5000, () => p3.stepEnd());
const a = { step: 100, maxSteps: 10_000_000, epoch: 0, elapsedSeconds: 0, ended: false };
const everyPercentT = everyPercent(50);
let prev = advance(null, a);
await time("advance", 20000, () => { prev = advance(prev, { ...prev, step: prev.step + 1 }); });
const now = advance(prev, { ...prev, step: prev.step + 1 });
await time("crossings", 20000, () => crossings([{ at: "start" }, everyPercentT, { at: "end" }], prev, now));

