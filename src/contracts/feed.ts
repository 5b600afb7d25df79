import { z } from 'zod';

/**
 * The feed of a session: what its open clients and the programs that follow it learn at once, whichever process it
 * happens in. An event that states a fact is published after the commit that makes it true; `text`, `output` and the
 * progress of a summary are drafts, which what is stored replaces.
 *
 * Any event may be lost, and may arrive again: the store shows the same a moment later, and applying an event twice
 * changes nothing. Only the order within one run is kept. A run has one `ended`, whichever process ends it; a caller
 * who needs it waits for the run. `src/runs/run-feed.ts` makes the events of a run; those of a lane come from the
 * effects of a commit.
 */
export type FeedEvent = Readonly<z.output<typeof feedEventSchema>>;

/** An event that clients show; the others are for programs. */
export type ClientEvent = Readonly<z.output<typeof clientEventSchema>>;

/** Schema of the state of a tool call. */
export const toolStateSchema = z.enum(['started', 'done', 'failed', 'skipped']);
/** `skipped`: it never started, because a new message changed the course of its run. */
export type ToolState = z.output<typeof toolStateSchema>;

/** Longest output of a running tool that is shown, UTF-16 units: the end of a longer one. */
export const maxOutputLength = 2_000;

const ofRun = { runId: z.string() };

/** Schema of the events that clients show. Those of version 0.2.0 keep their names and members. */
export const clientEventSchema = z.discriminatedUnion('kind', [
  /** Something was stored: read again from your position. */
  z.object({ kind: z.literal('changed') }),
  /**
   * `started`: a process works on it, again after a wait or a hand-over. `ended`: its end is stored; `reason` says why
   * that isn't a natural one.
   */
  z.object({
    kind: z.literal('run'),
    ...ofRun,
    state: z.enum(['started', 'steered', 'ended']),
    reason: z.string().exactOptional(),
  }),
  /** The run waits for something outside, such as an approval; it continues with `started`. */
  z.object({ kind: z.literal('parked'), ...ofRun, reason: z.string() }),
  z.object({
    kind: z.literal('tool'),
    ...ofRun,
    /** Absent in version 0.2.0. */
    callId: z.string().exactOptional(),
    name: z.string(),
    state: toolStateSchema,
  }),
  /** The output of a running tool so far, which replaces the one shown before. */
  z.object({
    kind: z.literal('output'),
    ...ofRun,
    callId: z.string(),
    text: z.string().max(maxOutputLength),
  }),
  /** A summary of the session's older part. `progress`: share of the history that the model has read, 0 to 1. */
  z.object({
    kind: z.literal('compaction'),
    ...ofRun,
    state: z.enum(['started', 'done', 'failed']),
    progress: z.number().exactOptional(),
    /** Sizes in tokens. A summary that somebody asked for is made regardless of the threshold. */
    oldTokens: z.number().exactOptional(),
    threshold: z.number().exactOptional(),
  }),
]);

/** Schema of every event, also between processes. */
export const feedEventSchema = z.discriminatedUnion('kind', [
  ...clientEventSchema.options,
  /**
   * A piece of text that the model writes, to be put at `at`, UTF-16 units; what was there and behind it is void.
   * `chat` is `assistant` without text that is never sent: silent tokens and the model's scaffolding.
   */
  z.object({
    kind: z.literal('text'),
    ...ofRun,
    of: z.enum(['assistant', 'reasoning', 'chat']),
    at: z.int(),
    text: z.string(),
  }),
  /** A complete answer; empty when the agent chose silence. */
  z.object({ kind: z.literal('answer'), ...ofRun, text: z.string() }),
  z.object({ kind: z.literal('session'), sessionId: z.string() }),
  z.object({ kind: z.literal('title'), sessionId: z.string(), title: z.string() }),
  /** Cost of the model calls that wrote a message, micro-dollars. */
  z.object({ kind: z.literal('cost'), sessionId: z.string(), messageId: z.string(), cost: z.number() }),
  /** A message was dropped because too many were waiting. */
  z.object({ kind: z.literal('overflowed') }),
  z.object({ kind: z.literal('delivery'), part: z.string(), result: z.string() }),
]);

const clientKinds: ReadonlySet<string> = new Set(
  clientEventSchema.options.map(({ shape }) => shape.kind.value),
);

/** Says whether clients show the event. */
export function isForClients(event: FeedEvent): event is ClientEvent {
  return clientKinds.has(event.kind);
}

/** Says whether the event means that a lane's stored state has changed. */
export function changesLane({ kind }: FeedEvent): boolean {
  return kind === 'run' || kind === 'changed' || kind === 'parked';
}
