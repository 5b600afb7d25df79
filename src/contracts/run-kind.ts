/** The work of a run: answer messages, or summarise the older part of its session. */
export type RunKind = 'turn' | 'compact';
