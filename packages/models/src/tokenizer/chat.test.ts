import { PeriodicEvalError, type Message } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { chatRenderer } from "@periodic-eval/tokenizers";
import { compileTemplate } from "./load-tokenizer.ts";

const chatml = `{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`;
const withDefault = `{% if messages[0].role != 'system' %}<system>Be good.</>{% endif %}${chatml}`;
const alwaysSystem = `<system>{% if messages[0].role == 'system' %}{{ messages[0].content | trim }}{% set messages = messages[1:] %}{% endif %}</>${chatml}`;
const inTheUserTurn = `{% set s = '' %}{% if messages[0].role == 'system' %}{% set s = '[' + messages[0].content + '] ' %}{% set messages = messages[1:] %}{% endif %}{% for m in messages %}<{{ m.role }}>{{ s if loop.first else '' }}{{ m.content }}</>{% endfor %}`;
const rejectsSystem = `{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}${chatml}`;

const ask: Message[] = [{ role: "user", content: "Hi" }];
const talk: Message[] = [...ask, { role: "assistant", content: "Ho" }, { role: "user", content: "He" }];
const render = (source: string) => chatRenderer(compileTemplate(source, {}), "the test's template");

describe("template kwargs", () => {
  const thinking = `${chatml}{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}`;

  it("are variables of the template with every ending", async () => {
    const chat = render(thinking);
    expect(chat(ask, "omit", "generation").text).toBe("<user>Hi</><assistant>");
    const off = { enable_thinking: false };
    expect(chat(ask, "omit", "generation", { kwargs: off }).text).toBe(
      "<user>Hi</><assistant><think></think>",
    );
    expect(chat(ask, "no_system_block", "complete", { kwargs: off }).text).toBe("<user>Hi</><think></think>");
    expect(chat(ask, "omit", "generation", { kwargs: { enable_thinking: true } }).text).toBe(
      "<user>Hi</><assistant>",
    );
  });

  it.each(["messages", "add_generation_prompt", "tools", "a b", ""])(
    "cannot have the name %j",
    async (name) => {
      const chat = render(thinking);
      const thrown = caught(() => chat(ask, "omit", "generation", { kwargs: { [name]: 1 } }));
      expect(PeriodicEvalError.is(thrown, "config")).toBe(true);
      expect(thrown).toMatchObject({ path: [name], got: `the name ${JSON.stringify(name)}` });
    },
  );
});

describe("system prompts", () => {
  it("keep a template's default with omit, and replace it with a string, even an empty one", async () => {
    const chat = render(withDefault);
    expect(chat(ask, "omit", "complete").text).toBe("<system>Be good.</><user>Hi</>");
    expect(chat(ask, { text: "Be bad." }, "complete").text).toBe("<system>Be bad.</><user>Hi</>");
    expect(chat(ask, { text: "" }, "complete").text).toBe("<system></><user>Hi</>");
  });

  it.each([
    ["adds nothing", chatml, "<user>Hi</>"],
    ["writes them into the user's turn", inTheUserTurn, "<user>Hi</>"],
    ["rejects system messages", rejectsSystem, "<user>Hi</>"],
  ])("may be no_system_block if the template %s", async (_, source, expected) => {
    expect(render(source)(ask, "no_system_block", "complete").text).toBe(expected);
  });

  it.each([
    ["a default text", withDefault],
    ["an empty block", alwaysSystem],
  ])("throw for no_system_block if the template adds %s", async (_, source) => {
    const chat = render(source);
    const thrown = caught(() => chat(ask, "no_system_block", "generation"));
    expect(PeriodicEvalError.is(thrown, "model")).toBe(true);
  });

  it("throw for a chat that begins with a system message", async () => {
    const chat = render(chatml);
    const thrown = caught(() =>
      chat([{ role: "system", content: "a" }, ...ask], { text: "b" }, "generation"),
    );
    expect(PeriodicEvalError.is(thrown, "config")).toBe(true);
  });
});

describe("endings", () => {
  it("are generation, continue and complete", async () => {
    const chat = render(chatml);
    expect(chat(ask, "omit", "generation").text).toBe("<user>Hi</><assistant>");
    expect(chat(talk.slice(0, 2), "omit", "continue").text).toBe("<user>Hi</><assistant>Ho");
    expect(chat(talk.slice(0, 2), "omit", "complete").text).toBe("<user>Hi</><assistant>Ho</>");
  });

  it("find the last message to continue even if its words occur elsewhere", async () => {
    const chat = render(chatml);
    const echo: Message[] = [
      { role: "user", content: "a" },
      { role: "assistant", content: "a" },
    ];
    expect(chat(echo, "omit", "continue").text).toBe("<user>a</><assistant>a");
  });

  it("throw for continue if the template drops the last message", async () => {
    const chat = render(`{% for m in messages[:-1] %}{{ m.content }}{% endfor %}`);
    expect(
      PeriodicEvalError.is(
        caught(() => chat(talk, "omit", "continue")),
        "model",
      ),
    ).toBe(true);
  });

  it("throw with the template's error as the cause", async () => {
    const chat = render(rejectsSystem);
    const thrown = caught(() => chat(ask, { text: "x" }, "generation"));
    expect(PeriodicEvalError.is(thrown, "model")).toBe(true);
    expect((thrown as PeriodicEvalError).cause).toMatchObject({ message: "no system here" });
  });
});

describe("the assistant's text", () => {
  // <user>Hi</> has 11 characters, and so has <assistant>, so that "Ho</>" is [22, 27).
  it("is the addition of its message to the generation prompt, without {% generation %}", async () => {
    const chat = render(chatml);
    expect(chat(talk, "omit", "generation").spoken).toEqual([[22, 27]]);
    expect(chat(ask, "omit", "generation").spoken).toEqual([]);
  });

  it("is the content of {% generation %}, with any whitespace control", async () => {
    const source = `{% for m in messages %}<{{ m.role }}>\n{% if m.role == 'assistant' %}\n{% generation %}\n{{- m.content -}}\n{%- endgeneration %}\n{% else %}{{ m.content }}{% endif %}{% endfor %}`;
    const { text, spoken } = render(source)(talk, "omit", "complete");
    expect(spoken?.map(([start, end]) => text.slice(start, end))).toEqual(["Ho"]);
    expect(text).not.toMatch(/[\uFDD0\uFDD1]/);
  });

  it("is found if the text before a message depends on later messages", async () => {
    const chat = render(`{{ messages | length }}${chatml}`);
    expect(chat(talk, "omit", "complete").spoken).toEqual([[23, 28]]);
  });

  it("is null if the template does not write an answer", async () => {
    const chat = render(
      `{{ messages | length }}{% if messages | length > 2 %}{{ messages[2].content }}{% endif %}`,
    );
    expect(chat(talk, "omit", "complete").spoken).toBeNull();
  });
});

function caught(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
