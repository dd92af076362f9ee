export type { ReadResults } from "./read-run.ts";
export { resultsServer, type ResultsServerOptions } from "./results-server.ts";
export { serveResults, type ServeOptions, type Serving } from "./serve-results.ts";
