// oxlint-disable typescript/prefer-promise-reject-errors -- user code rejects with anything
import { afterEach, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";
import { serveFeedback, type FeedbackService, type ServeFeedbackOptions } from "./index.ts";
import { ask } from "./service-client.test-data.ts";

let service: FeedbackService | null = null;
afterEach(async () => {
  await service?.close();
  service = null;
});

async function serve(openModel: () => unknown, onFailure?: ServeFeedbackOptions["onFailure"]) {
  service = await serveFeedback({
    openModel: openModel as ServeFeedbackOptions["openModel"],
    describe: null,
    model: "m",
    root: temporaryFolder(),
    port: 0,
    ...(onFailure && { onFailure }),
  });
  return service.url;
}
const prompt = { model: "m", messages: [{ role: "user", content: "hi" }] };
const trap = () => {
  throw new Error("trap");
};

it.each([
  ["undefined", undefined],
  ["a string", "no"],
  ["an object without a prototype", Object.create(null)],
])("answers 500 if the model throws %s, and reports an Error", async (_, thrown) => {
  const failures: Error[] = [];
  const url = await serve(
    () => {
      throw thrown;
    },
    (error) => failures.push(error),
  );
  for (let i = 0; i < 2; i++) expect((await ask(url, "/v1/chat/completions", prompt)).status).toBe(500);
  expect(failures.map((error) => error instanceof Error)).toEqual([true, true]);
  expect((await ask(url, "/v1/health")).status).toBe(200);
});

it.each([
  ["throws", trap],
  ["rejects", async () => Promise.reject(Object.create(null))],
])("serves on if onFailure %s, with a warning", async (_, onFailure) => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  const url = await serve(trap, onFailure);
  expect((await ask(url, "/v1/chat/completions", prompt)).status).toBe(500);
  await vi.waitFor(() => expect(warn).toHaveBeenCalledTimes(1), 60_000);
  expect(warn.mock.lastCall![0]).toMatch(/^onFailure: /);
  expect((await ask(url, "/v1/health")).status).toBe(200);
});
