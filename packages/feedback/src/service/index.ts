export { serveFeedback, type FeedbackService, type ServeFeedbackOptions } from "./serve.ts";
