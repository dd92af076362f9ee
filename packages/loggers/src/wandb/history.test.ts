import { expect, it } from "vitest";
import { serveJson } from "../loopback.test-data.ts";
import { post } from "./history.ts";

it("masks a key that the server echoes", async () => {
  const apiKey = "k".repeat(40);
  const baseUrl = await serveJson((_, __, { headers }) => ({
    status: 401,
    body: { error: `${headers.authorization}, ${apiKey}` },
  }));
  await expect(post({ baseUrl, apiKey }, "/graphql", {})).rejects.toThrow('{"error":"Basic ***, ***"}');
});
