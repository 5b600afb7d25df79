/** Settings of how an answer is shown: what accompanies it, and how it appears while it is written. */

/** Every level of `/verbose`. */
export const verboseLevels = ['off', 'on'] as const;
/** Says whether tool calls are summarized before an answer. */
export type Verbose = (typeof verboseLevels)[number];

/** Every way to show reasoning. */
export const reasoningDisplays = ['off', 'on', 'stream'] as const;
/** Says how the model's reasoning is shown: before its answer, or as a message of its own while the model thinks. */
export type ReasoningDisplay = (typeof reasoningDisplays)[number];

/** Every way to show an unfinished answer. */
export const streamModes = ['preview', 'blocks', 'off'] as const;
/** Says how an unfinished answer is shown: as a preview that becomes it, in blocks that stay, or not at all. */
export type StreamMode = (typeof streamModes)[number];

/** The choices of a conversation; without one, the configuration of its channel applies. */
export type DisplayChoice = { readonly verbose?: Verbose; readonly reasoning?: ReasoningDisplay };
