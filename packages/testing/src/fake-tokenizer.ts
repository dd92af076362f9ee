import type {
  ChatEnding,
  Message,
  Prompt,
  RenderedPrompt,
  SystemPrompt,
  Tokenizer,
} from "@periodic-eval/contracts";

export interface FakeTokenizerOptions {
  /** A system prompt that the template inserts by default, like some real templates. */
  readonly defaultSystem?: string;
  /** Whether a begin token precedes text that is encoded with special tokens. Default: false. */
  readonly beginOfText?: boolean;
  /** Whether the template fails on a chat. */
  readonly failsOn?: (messages: readonly Message[]) => boolean;
}

const specials = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"] as const;
const idOf = new Map<string, number>(specials.map((text, at) => [text, 256 + at]));
const special = /(<\|(?:begin|end|system|user|assistant)\|>)/;

/**
 * Returns a tokenizer of 256 bytes and five special tokens, for tests. A chat is rendered as
 * `<|system|>…<|end|><|user|>…<|end|><|assistant|>…<|end|>`; the generation prompt is `<|assistant|>`. The ids of `a + b` are the
 * ids of `a` followed by those of `b`, so tests can compute them by hand.
 */
export function fakeTokenizer(options: FakeTokenizerOptions = {}): Tokenizer {
  const { defaultSystem = null, beginOfText = false, failsOn } = options;
  const utf8 = new TextEncoder();
  const encode = (text: string): number[] =>
    text.split(special).flatMap((part) => idOf.get(part) ?? [...utf8.encode(part)]);

  function renderChat(
    messages: readonly Message[],
    system: SystemPrompt,
    ending: ChatEnding,
  ): RenderedPrompt {
    if (failsOn?.(messages) === true) throw new Error("the template raised an exception");
    if (system === "no_system_block" && defaultSystem !== null)
      throw new Error("this template always writes a system block");
    const systemText = typeof system === "object" ? system.text : system === "omit" ? defaultSystem : null;
    const turns = systemText === null ? messages : [{ role: "system", content: systemText }, ...messages];
    let text = "";
    const mask: boolean[] = [];
    const write = (part: string, isAssistant: boolean) => {
      text += part;
      mask.push(...encode(part).map(() => isAssistant));
    };
    for (const [at, { role, content }] of turns.entries()) {
      if (!idOf.has(`<|${role}|>`) || role === "begin" || role === "end")
        throw new Error(`the template has no role "${role}"`);
      if (typeof content !== "string") throw new Error("the template needs a string as the content");
      const isOpen = ending === "continue" && at === turns.length - 1;
      write(`<|${role}|>`, false);
      write(isOpen ? content : `${content}<|end|>`, role === "assistant");
    }
    if (ending === "generation") write("<|assistant|>", false);
    return { text, ids: encode(text), assistantMask: mask };
  }

  return {
    fingerprint: `fake:${JSON.stringify({ defaultSystem, beginOfText })}`,
    vocabSize: 256 + specials.length,
    stopIds: [idOf.get("<|end|>")!],
    eosId: idOf.get("<|end|>")!,
    encode: (text, { specialTokens = true } = {}) => [
      ...(beginOfText && specialTokens ? [256] : []),
      ...encode(text),
    ],
    decode(ids, { specialTokens = true } = {}) {
      const bytes = ids.flatMap((id) =>
        id < 256 ? [id] : specialTokens ? [...utf8.encode(specials[id - 256] ?? "")] : [],
      );
      return new TextDecoder().decode(Uint8Array.from(bytes));
    },
    render(prompt: Prompt, { ending = "generation" } = {}) {
      if ("ids" in prompt) return { text: null, ids: prompt.ids, assistantMask: null };
      if ("text" in prompt) return { text: prompt.text, ids: this.encode(prompt.text), assistantMask: null };
      return renderChat(prompt.messages, prompt.system ?? "omit", ending);
    },
  };
}
