import { describe, expect, it } from "vitest";
import type { TemplateInput } from "@periodic-eval/tokenizers";
import { compileTemplate } from "./load-tokenizer.ts";

const render = (source: string, input: Partial<TemplateInput> = {}) =>
  compileTemplate(source, { bos_token: "<s>" })({ messages: [], addGenerationPrompt: false, ...input });

// Texts from transformers' apply_chat_template with the same templates and messages.
describe("templates that other renderers get wrong", () => {
  const code = { role: "assistant", content: "\n    return x + 1\n" };

  it.each([
    // Qwen3, Qwen3-Coder, GLM
    ["{{ messages[0].content.strip('\\n') }}", "    return x + 1"],
    ["{{ messages[0].content.lstrip('\\n') }}|", "    return x + 1\n|"],
    // EXAONE 4
    ["{% for x in [1,2,3] %}{{x}}{% if x==2 %}{% break %}{% endif %}{% endfor %}", "12"],
    ["{% for x in [1,2,3] %}{{x}}{% if x==2 %}{% continue %}{% endif %}.{% endfor %}", "1.23."],
    // Files written on Windows
    ["a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc", "a\nb\nc"],
    // Command A and others
    ["{{ [1, 2, 3]|select('odd')|list }}{{ [1, none]|reject('none')|list }}", "[1, 3][1]"],
    ["{{ [1, 2]|sum }}{{ [1, 2]|count }}{{ ['a,b']|map('replace', ',', ';')|join }}", "32a;b"],
    ["{{ 'a/b/c'.rsplit('/', 1)[1] }}{{ 'abc'.find('c') }}", "c2"],
    ["{{ none ~ '' }}{{ [none] }}{{ none|string }}", "None[None]None"],
    ["{% with a = 1 %}{{ a }}{% endwith %}{% raw %}{{ a }}{% endraw %}", "1{{ a }}"],
    ["{{ '%s-%d' % ('a', 7) }}{{ {'a': '<b>'}|tojson }}", 'a-7{"a": "<b>"}'],
  ])("render %j as transformers does", (source, text) => {
    expect(render(source, { messages: [code] }).text).toBe(text);
  });
});

describe("a template", () => {
  it("receives special tokens, tools, documents and kwargs", () => {
    const source =
      "{{ bos_token }}{{ tools|length }}{{ documents[0].title }}{{ level }}{{ add_generation_prompt }}";
    const kwargs = { documents: [{ title: "T", text: "t" }], level: 2 };
    const input = { tools: [{ name: "a" }], kwargs, addGenerationPrompt: true };
    expect(render(source, input).text).toBe("<s>1T2True");
    expect(render("{{ tools }}{{ documents }}{{ tools is none }}").text).toBe("NoneNoneTrue");
  });

  it("receives messages with nested calls, and without the fields that are null", () => {
    const messages = [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ function: { name: "f", arguments: { a: [1.5, null] } } }],
      },
      { role: "tool" },
    ];
    const source =
      "{{ messages[0].content is defined }}{{ messages[0].tool_calls[0].function.arguments|tojson }}{{ messages[1].content is defined }}";
    expect(render(source, { messages }).text).toBe('False{"a": [1.5, null]}False');
  });

  // As transformers' `_alias_reasoning_fields`.
  it.each(["reasoning_content", "thinking", "reasoning"])("reads the reasoning of the field %s", (field) => {
    const messages = [{ role: "assistant", content: "", [field]: "Hm." }];
    const source = "{{ messages[0].reasoning_content }}{{ messages[0].thinking }}";
    expect(render(source, { messages }).text).toBe("Hm.Hm.");
  });

  it("has spans of {% generation %} in UTF-16 units, and null without the tag", () => {
    const source = "{% for m in messages %}<𝟜>{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}";
    const messages = ["é𝟜", "", "b"].map((content) => ({ role: "assistant", content }));
    const { text, generated } = render(source, { messages });
    expect(generated?.map(([start, end]) => text.slice(start, end))).toEqual(["é𝟜", "", "b"]);
    expect(render("a").generated).toBeNull();
  });

  it("prints integers of any size, and refuses those whose digits JSON.parse lost", () => {
    const messages = (n: unknown) => [{ role: "user", n }] as unknown as TemplateInput["messages"];
    expect(render("{{ messages[0].n + 1 }}", { messages: messages(12345678901234567890n) }).text).toBe(
      "12345678901234567891",
    );
    const lost = messages(JSON.parse("12345678901234567890"));
    expect(() => render("{{ messages[0].role }}", { messages: lost })).toThrow(/JavaScript may have rounded/);
  });

  it.each(["include", "import", "from", "extends", "block", "autoescape"])(
    "with the tag %s is refused",
    (tag) => {
      expect(() => compileTemplate(`{% ${tag} x %}`, {})).toThrow(`the tag ${tag}, which is not supported`);
    },
  );

  it.each([
    ["{{ [1]|random }}", /the filter random/],
    ["{{ 'a'|pprint }}", /the filter pprint/],
  ])("with %s is refused when it is compiled", (source, message) => {
    expect(() => compileTemplate(source, {})).toThrow(message);
  });

  it.each([
    ["{{ lipsum() }}", /function lipsum/],
    ["{{ [1]|map('upper') }}", /an address/],
    ["{{ 'a'.encode() }}", /attribute encode/],
    ["{{ 'a'.center(9) }}", /attribute center/],
  ])("with %s is refused when it runs", (source, message) => {
    expect(() => render(source)).toThrow(message);
  });

  it.each([
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ 'a' * 1000000000 }}",
    "{{ 'abc'|indent(1000000000) }}",
  ])("that nests or writes too much throws: %s", (source) => {
    expect(() => render(source)).toThrow(/too (many|long|deep)/);
  });
});
