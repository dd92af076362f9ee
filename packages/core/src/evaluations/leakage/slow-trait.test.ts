import { expect, it, vi } from "vitest";
import type * as limitedTimeModule from "../../../../store/src/process/time.ts";
import { leakageEvaluation } from "./evaluation.ts";

vi.mock("../../../../store/src/process/time.ts", async (load) => {
  const { limitedTime } = await load<typeof limitedTimeModule>();
  return { limitedTime: (what: string) => limitedTime(what, { one: 0.05, all: 0.05 }) };
});

it("gives the pattern of a trait the whole time at each call of grade", async () => {
  const { grade } = leakageEvaluation({ marker: { regex: "^(a+)+$" } });
  const row = {
    id: "p/q#0",
    item: "p/q",
    persona: "p",
    question: "q",
    sample: 0,
    text: "",
    markerNats: null,
  };
  const rows = [1, 2].map(() => ({ ...row, finish: "stop" as const, answer: `${"a".repeat(50)}!` }));
  const reasons = async () => (await grade!(rows, {} as never)).map(({ reason }) => reason);
  const expected = [
    expect.stringContaining("takes more than 0.05 s"),
    expect.stringContaining("not run, because the pattern of the trait"),
  ];
  expect(await reasons()).toEqual(expected);
  expect(await reasons()).toEqual(expected);
});
