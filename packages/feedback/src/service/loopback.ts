export { isLoopback } from "@periodic-eval/core";
