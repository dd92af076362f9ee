import type { Tokenizer } from "@periodic-eval/contracts";
import { fakeTokenizer } from "@periodic-eval/testing";

/** A tokenizer whose chat template leaves out the system message. */
export function systemlessTokenizer(): Tokenizer {
  const plain = fakeTokenizer();
  return {
    ...plain,
    render: (prompt, options) =>
      plain.render("messages" in prompt ? { ...prompt, system: "omit" } : prompt, options),
  };
}
