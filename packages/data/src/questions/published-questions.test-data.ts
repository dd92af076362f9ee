import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { findData } from "../../../testing/src/fixtures.test-data.ts";
import { betley2025Questions } from "./alignment-questions.ts";

/**
 * The authors' file; null where ../shared is absent. The copy in ../shared comes from a fork that replaced the name of the judge,
 * and nothing else: with the authors' judge, its SHA-256 is the pinned one.
 */
export function authorsFile(): string | null {
  const [copy] = findData(/^emergent_misalignment\/first_plot_questions\.yaml$/);
  return copy === undefined
    ? null
    : readFileSync(copy, "utf8").replace("judge: &judge deepseek-chat", "judge: &judge gpt-4o-2024-08-06");
}

/** Starts a server in place of raw.githubusercontent.com that has only the pinned file of questions. */
export async function serveQuestions(content: string) {
  const { repository, commit, path } = betley2025Questions;
  const requests: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    requests.push(url);
    response.statusCode = url === `/${repository}/${commit}/${path}` ? 200 : 404;
    response.end(response.statusCode === 200 ? content : "404: Not Found");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
