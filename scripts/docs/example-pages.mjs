// Makes a page of each example: its first comment becomes the title, and its code follows.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { escapeProse } from "./api-pages.mjs";

/** Returns `[path, text]` of each example's page, and the index. */
export function examplePages(root) {
  const files = readdirSync(join(root, "examples")).filter((file) => /^\d\d-[^.]+\.ts$/.test(file));
  const pages = files.map((file) => {
    const code = readFileSync(join(root, "examples", file), "utf8");
    const comment = /^(?:\/\/.*\n)+/.exec(code)?.[0] ?? "";
    const said = comment.replaceAll(/^\/\/ ?/gm, "").replaceAll("\n", " ");
    const [title] = said.split(/(?<=[^.])[.:,](?= )/);
    const name = file.replace(/\.ts$/, "");
    const run = `npm run example ${name.slice(0, 2)}`;
    const text = [
      `# ${escapeProse(title.trim())}`,
      "",
      `\`examples/${file}\`, in a clone of the repository: \`${run}\`. The example's data are in \`examples/micro-world\` and \`examples/village\`.`,
      "",
      "```ts",
      code.trimEnd(),
      "```",
      "",
    ];
    return { name, title: title.trim(), path: `examples/${name}.md`, text: text.join("\n") };
  });
  const index = [
    "# Examples",
    "",
    "Complete programs. Each of them runs in CI, in a short form.",
    "",
    "| example | |",
    "|---|---|",
    ...pages.map(({ name, title }) => `| [${name}](${name}.md) | ${escapeProse(title)} |`),
    "",
  ];
  return [["examples/index.md", index.join("\n")], ...pages.map(({ path, text }) => [path, text])];
}
