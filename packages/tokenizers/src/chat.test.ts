import { expect, it } from "vitest";
import { chatRenderer } from "./chat.ts";

it("ends a chat template that does not end", () => {
  const template = ({ messages }: { readonly messages: readonly unknown[] }) => {
    for (; messages.length === 1;);
    return { text: "a", generated: null };
  };
  const renderChat = chatRenderer(template, "the template of the test", null, { one: 0.05, all: 1 });
  const render = () => renderChat([{ role: "user", content: "a" }], "omit", "complete");
  const where = "the template of the test: got the template's error ";
  expect(render).toThrow(`${where}"the template takes more than 0.05 s for this text`);
  for (let i = 0; i < 20; i++) expect(render).toThrow();
  expect(render).toThrow(`${where}"not run, because the template took 1 s for the texts before`);
});
