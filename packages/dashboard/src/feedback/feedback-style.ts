/** Style of the page of training on feedback, in addition to the shared style. */
export const feedbackStyle = `
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 310px), 1fr)); gap: 16px; align-items: start; }
.panels .panel { padding: 12px 14px 8px; }
.names { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 0 0 4px; padding: 0; list-style: none; color: var(--muted); font-size: 13px; }
.dot { color: var(--accent); }
.missing { margin: 4px 0 4px; color: var(--muted); font-size: 13px; overflow-wrap: anywhere; max-height: 9em; overflow-y: auto; }
td.alert { color: var(--worse); font-weight: 600; }
.answer { margin: 14px 0; }
.answer p { margin: 0; color: var(--muted); font-size: 13.5px; overflow-wrap: anywhere; }
.answer pre { margin-top: 4px; white-space: pre-wrap; overflow-wrap: anywhere; }
`;
