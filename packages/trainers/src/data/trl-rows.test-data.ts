/** A row of a comparison with TRL. */
export interface NamedRow {
  readonly name: string;
  readonly row: object;
}

const system = (content: string) => ({ role: "system", content });
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string, fields: object = {}) => ({ role: "assistant", content, ...fields });
const thought = (thinking: string, answer: string) =>
  assistant(`<think>\n${thinking}\n</think>\n\n${answer}`);

const call = { type: "function", function: { name: "add", arguments: { x: 2, y: "b", z: [0.5, null] } } };
const tool = {
  type: "function",
  function: {
    name: "add",
    description: "Adds.",
    parameters: {
      type: "object",
      properties: { x: { type: "integer" }, y: { type: "string" } },
      required: ["x"],
    },
  },
};
const calls = { role: "assistant", content: null, tool_calls: [call] };
const reply = { role: "tool", name: "add", content: "Sum: 2b" };
const kwargs = { chat_template_kwargs: { enable_thinking: false } };
const talk = [
  user("Hi"),
  assistant("Ho!"),
  user("Who?"),
  assistant("Me <b>."),
  user("Why"),
  assistant("Because\n"),
];
const thoughts = [user("Hi"), thought("Hm.", "Ho!"), user("Who?"), thought("Who?", "Me.")];
const toolTalk = [
  user("Add 2 and b"),
  calls,
  reply,
  assistant("It is 2b."),
  user("Thanks"),
  assistant("Welcome"),
];

export const rows: readonly NamedRow[] = [
  { name: "one answer", row: { messages: talk.slice(0, 2) } },
  { name: "several answers", row: { messages: talk } },
  { name: "a question at the end", row: { messages: talk.slice(0, 3) } },
  { name: "a system turn", row: { messages: [system("Be brief."), ...talk] } },
  { name: "thinking in the content", row: { messages: thoughts } },
  {
    name: "thinking in a field",
    row: {
      messages: [
        user("Hi"),
        assistant("Ho!", { thinking: "Hm." }),
        user("Who?"),
        assistant("Me.", { reasoning: "Ha." }),
      ],
    },
  },
  { name: "prompt and completion", row: { prompt: talk.slice(0, 1), completion: talk.slice(1, 2) } },
  { name: "an earlier answer", row: { prompt: talk.slice(0, 3), completion: talk.slice(3, 4) } },
  {
    name: "an earlier answer with thinking",
    row: { prompt: thoughts.slice(0, 3), completion: thoughts.slice(3) },
  },
  { name: "several answers to a prompt", row: { prompt: talk.slice(0, 3), completion: talk.slice(3) } },
  { name: "tools", row: { messages: toolTalk, tools: [tool] } },
  {
    name: "tools as JSON, and variables",
    row: { messages: toolTalk, tools: JSON.stringify([tool]), ...kwargs },
  },
  {
    name: "an empty content",
    row: { messages: [user("Add 2 and b"), { ...calls, content: "" }, reply, assistant("It is 2b.")] },
  },
  {
    name: "a call with words",
    row: { messages: [user("Add 2 and b"), { ...calls, content: "Well." }, reply, assistant("So 2b.")] },
  },
  { name: "only a call", row: { messages: [user("Add 2 and b"), calls], tools: [tool] } },
  {
    name: "a call to learn after an answer",
    row: { prompt: talk.slice(0, 3), completion: [calls], tools: [tool] },
  },
  {
    name: "an answer after a reply",
    row: { prompt: toolTalk.slice(0, 3), completion: toolTalk.slice(3, 4), tools: [tool] },
  },
  { name: "variables", row: { messages: talk, ...kwargs } },
  {
    name: "variables and a prompt",
    row: { prompt: talk.slice(0, 3), completion: talk.slice(3, 4), ...kwargs },
  },
  {
    name: "turns of a role in a row",
    row: { messages: [user("Hi"), user("You there?"), assistant("Ho!"), assistant("Yes.")] },
  },
  {
    name: "an answer at the beginning",
    row: { messages: [assistant("Welcome!"), user("Hi"), assistant("Ho")] },
  },
  { name: "only an answer", row: { messages: [assistant("A")] } },
  { name: "only answers", row: { messages: [assistant("A"), assistant("B")] } },
  ...["environment", "tool", "function", "system"].flatMap((role) => [
    {
      name: `an answer after ${role} alone`,
      row: { messages: [{ role, content: "Rain" }, assistant("A")] },
    },
    {
      name: `an answer after ${role}, then a question`,
      row: { messages: [{ role, content: "Rain" }, assistant("A"), user("Hi"), assistant("B")] },
    },
  ]),
  {
    name: "an answer after a reply in a user's turn",
    row: { messages: [user("<tool_response>2</tool_response>"), assistant("A")] },
  },
  {
    name: "a later system turn",
    row: { messages: [...talk.slice(0, 2), system("Now brief."), ...talk.slice(2, 4)] },
  },
  {
    name: "a developer's turn",
    row: { messages: [{ role: "developer", content: "Be brief." }, ...talk.slice(0, 2)] },
  },
  {
    name: "ShareGPT",
    row: { conversations: talk.map(({ role, content }) => ({ from: role, value: content })) },
  },
];

export const partsRow: NamedRow = {
  name: "content in parts",
  row: { messages: talk.map(({ role, content }) => ({ role, content: [{ type: "text", text: content }] })) },
};

export const pairs: readonly NamedRow[] = [
  {
    name: "a pair",
    row: { prompt: talk.slice(0, 1), chosen: [assistant("Ho!")], rejected: [assistant("Hm")] },
  },
  {
    name: "a pair with earlier answers",
    row: { prompt: talk.slice(0, 3), chosen: [assistant("Me.")], rejected: [assistant("You")] },
  },
  {
    name: "a pair with thinking",
    row: { prompt: thoughts.slice(0, 3), chosen: thoughts.slice(3), rejected: [assistant("You")] },
  },
  {
    name: "a pair of calls",
    row: { prompt: talk.slice(0, 1), chosen: [calls], rejected: [assistant("No")], tools: [tool], ...kwargs },
  },
  {
    name: "a pair without a prompt",
    row: { chosen: talk.slice(0, 2), rejected: [talk[0]!, assistant("Hm")] },
  },
];
