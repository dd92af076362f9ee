import { expect, it } from "vitest";
import { tokenizerOf } from "./auto-tokenizer.ts";

it("ends a chat template that does not end", () => {
  const auto = {
    chat_template: "{{ messages }}",
    encode: () => [0],
    decode: () => "",
    get_vocab: () => new Map([["a", 0]]),
    apply_chat_template(messages: readonly unknown[]) {
      for (; messages.length === 1;);
      return "a";
    },
  };
  const tokenizer = tokenizerOf("inMemory", auto, { one: 0.05, all: 1 });
  const render = () => tokenizer.render({ messages: [{ role: "user", content: "a" }] });
  const where = "chat template of the AutoTokenizer: got the template's error ";
  expect(render).toThrow(`${where}"the template takes more than 0.05 s for this text`);
  for (let i = 0; i < 20; i++) expect(render).toThrow();
  expect(render).toThrow(`${where}"not run, because the template took 1 s for the texts before`);
});
