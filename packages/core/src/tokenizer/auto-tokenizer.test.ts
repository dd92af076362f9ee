import { expect, it } from "vitest";
import { tokenizerOf } from "./auto-tokenizer.ts";

it("ends a chat template that does not end", { timeout: 60_000 }, () => {
  const tokenizer = tokenizerOf("inMemory", {
    chat_template: "{{ messages }}",
    encode: () => [0],
    decode: () => "",
    get_vocab: () => new Map([["a", 0]]),
    apply_chat_template(messages: readonly unknown[]) {
      for (; messages.length === 1;);
      return "a";
    },
  } as never);
  expect(() => tokenizer.render({ messages: [{ role: "user", content: "a" }] })).toThrow(
    /chat template of the AutoTokenizer: got the template's error "the template takes more than 10 s/,
  );
});
