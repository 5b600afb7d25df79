/** What people see of an answer besides its text, and while it is being written. */

/** Whether tool calls are summarized before an answer. */
export const verboseLevels = ['off', 'on'] as const;
export type Verbose = (typeof verboseLevels)[number];

/** Whether the model's reasoning is shown: before its answer, or as a message of its own while the model thinks. */
export const reasoningDisplays = ['off', 'on', 'stream'] as const;
export type ReasoningDisplay = (typeof reasoningDisplays)[number];

/** How an answer is shown while it is written: as a preview that becomes it, in blocks that stay, or not at all. */
export const streamModes = ['preview', 'blocks', 'off'] as const;
export type StreamMode = (typeof streamModes)[number];

/** What a conversation has chosen; absent: what the configuration says for its channel. */
export type DisplayChoice = { readonly verbose?: Verbose; readonly reasoning?: ReasoningDisplay };
