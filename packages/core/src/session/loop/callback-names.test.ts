import { expect, it } from "vitest";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "./session.ts";
import { half, train } from "./toy-run.test-data.ts";

it.each(["toString", "constructor", "hasOwnProperty"])("measures with a callback named %s", async (id) => {
  const toy = toyTraining();
  const callback = half(toyEvaluation(), id);
  const state = await withSession(toy.options([callback]), async (session) => {
    await train(toy, 6)(session);
    return session.save();
  });
  await withSession(toy.options([half(toyEvaluation(), id)], { resume: state }), train(toy, 4));
  expect((await toy.store.list()).map((one) => [one.id, one.step])).toEqual(
    [0, 5, 6, 10].map((step) => [id, step]),
  );
  expect(toy.warnings()).toEqual([]);
});
