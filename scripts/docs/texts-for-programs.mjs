// Makes the files of the site for programs that read docs: each page as Markdown, and llms.txt (https://llmstxt.org), which lists them.
import { generatedSections, sections } from "../../docs/site/sidebar.mjs";
import { titleOf } from "./markdown.mjs";

const summary =
  "See what fine-tuning does to a language model, while it happens: training callbacks for PyTorch and TensorFlow.js.";

/** Returns a page without its front matter, and with a title. */
const asMarkdown = (text) => {
  const body = text.replace(/^---\n[^]*?\n---\n/, "").trimStart();
  return titleOf(body) === null ? `# periodic-eval\n\n${summary}\n\n${body}` : body;
};

/** Returns the first sentence of a page as plain text; empty if the page does not begin with one. */
function firstSentence(text) {
  const paragraph = /^# .*\n+(?:Status: .*\n+)?([^]*?)(?:\n\n|$)/.exec(text)?.[1] ?? "";
  if (!/^[\w`[*]/.test(paragraph)) return "";
  const plain = paragraph.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/\s+/g, " ");
  return /^.*?[.:](?= |$)/.exec(plain)?.[0].replace(/:$/, ".") ?? "";
}

/**
 * Returns the files by path: the pages under the names that they have in docs/, and llms.txt.
 *
 * @param pages The pages by path.
 * @param base The path of the site on its host, such as `/`.
 */
export function textsForPrograms(pages, { base }) {
  const texts = new Map([...pages].map(([path, text]) => [path, asMarkdown(text)]));
  const line = (path) => {
    const sentence = firstSentence(texts.get(path));
    return `- [${titleOf(texts.get(path))}](${base}${path})${sentence === "" ? "" : `: ${sentence}`}`;
  };
  const list = (text, paths) => `## ${text}\n\n${paths.map(line).join("\n")}\n`;
  const generated = generatedSections.map(({ text, under }) => ({
    text,
    pages: [...pages.keys()].filter((path) => path.startsWith(under)).toSorted((a, b) => (a < b ? -1 : 1)),
  }));
  const [start, ...rest] = sections;
  const lists = [{ ...start, pages: ["index.md", ...start.pages] }, ...rest, ...generated];
  const parts = lists.map((section) =>
    list(
      section.text,
      section.pages.filter((path) => pages.has(path)),
    ),
  );
  texts.set("llms.txt", [`# periodic-eval\n\n> ${summary}\n`, ...parts].join("\n"));
  return texts;
}
