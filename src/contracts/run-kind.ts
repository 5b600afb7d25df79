/** The work of a run: answer messages, summarise the older part of its session, or name another session. */
export type RunKind = 'turn' | 'compact' | 'title';
