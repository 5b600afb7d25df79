/**
 * How a program talks to an agent: it puts a message into a session and waits for what becomes of it. The
 * answer goes on record only and is handed to the caller, who would otherwise read it twice: in the
 * conversation and in what it asked for.
 */
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Probe } from '#contracts/probe.ts';
import type { Reservation } from '../queue/lane-workers.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { LaneSpec } from '../store/base/lane-spec.ts';
import { newRowId } from '../store/base/row-id.ts';
import { enqueueItems } from '../store/intake/enqueue-items.ts';
import type { EnqueuedItem, InnerItem, LaneRef } from '../store/items/enqueue-item.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type RunResult, readRunResult } from '../store/reads/read-run-result.ts';

export type AgentServiceDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  /** The lane of the owner's main conversation with an agent. Throws `invalid_input` for an unknown agent. */
  ownerLane(agentId: string | undefined): LaneSpec;
  /** Begins what the commit made due. Never waits, never throws. */
  start(effects: Effects): void;
  /** Calls back for each change in the lane until the signal aborts; may miss some. */
  watch(laneKey: string, onChange: () => void, signal: AbortSignal): void;
  /** Slots for a lane of the class that the commit makes due; undefined when none is free. */
  reserve(laneClass: string, most: number): Reservation | undefined;
};

export type AgentMessageInput = {
  readonly message: string;
  /** An existing session, without `agent`; absent: the owner's main conversation with the agent. */
  readonly session?: string | undefined;
  /** Absent: the default agent. */
  readonly agent?: string | undefined;
  /** Names the message for its sender: the same key again returns the same run. */
  readonly key?: string | undefined;
};

export type AcceptedMessage = {
  /** Reserved: the message begins this run, unless another run takes it in. */
  readonly runId: string;
  readonly session: string;
  readonly acceptedAt: number;
};

/** Messages to an agent from inside Parley, without a channel. */
export interface AgentService {
  /**
   * Resolves after the commit. Throws `invalid_input` for an unknown session, an agent beside a session, and a key of
   * another message.
   */
  send(input: AgentMessageInput): Promise<AcceptedMessage>;
  /** Resolves with `open` when the run has not ended after `timeoutMs`; never stops it. */
  wait(runId: string, timeoutMs: number, signal: AbortSignal): Promise<RunResult>;
}

/** Time between two looks at the store, should the event of a run's end be lost. */
const lookMs = 1000;

/** Creates the service on this process's store and lanes. */
export function createAgentService(deps: AgentServiceDeps): AgentService {
  return {
    send: async ({ message, session, agent, key = newRowId() }) => {
      if (session !== undefined && agent !== undefined)
        throw new ParleyError(
          'invalid_input',
          'Name an agent or a session, not both: a session has its agent.',
        );
      const lane: LaneRef = session === undefined ? deps.ownerLane(agent) : { key: session };
      const item = apiItem(message, key, deps.clock.now());
      const stored = await enqueue(deps, lane, item);
      if (stored.laneKey !== lane.key || stored.text !== message)
        throw new ParleyError('invalid_input', `The key ${key} belongs to another message.`);
      return { runId: stored.reservedRunId ?? '', session: stored.laneKey, acceptedAt: stored.enqueuedAt };
    },
    wait: async (runId, timeoutMs, signal) => {
      using watch = watchRun(deps, runId);
      const until = deps.clock.now() + timeoutMs;
      for (;;) {
        const { result, changed } = await watch.look();
        const leftMs = until - deps.clock.now();
        if (result.kind !== 'open' || leftMs <= 0 || signal.aborted) return result;
        await deps.clock.wait(Math.min(lookMs, leftMs), AbortSignal.any([signal, changed]));
      }
    },
  };
}

/** Reads what became of a run, and listens from then on: `changed` aborts when it may have become more. */
function watchRun({ store, watch }: Pick<AgentServiceDeps, 'store' | 'watch'>, runId: string) {
  const over = new AbortController();
  let changed = new AbortController();
  let isWatched = false;
  const look = async (): Promise<{ readonly result: RunResult; readonly changed: AbortSignal }> => {
    // Before reading: a change meanwhile may not be in what was read.
    changed = new AbortController();
    const result = await store.read(readRunResult, { runId });
    if (result.kind !== 'open' || isWatched) return { result, changed: changed.signal };
    isWatched = true;
    watch(result.laneKey, () => changed.abort(), over.signal);
    return look();
  };
  return { look, [Symbol.dispose]: () => over.abort() };
}

/** The holder of the access token writes it: it has the owner's rights. */
function apiItem(text: string, key: string, now: number): InnerItem & { readonly reservedRunId: string } {
  return {
    id: newRowId(),
    source: 'api',
    sourceKey: `api:${key}`,
    reach: 'mode',
    reservedRunId: newRowId(),
    target: 'record',
    authority: 'owner',
    content: { text, prompt: text, sender: { id: 'api', name: 'API' }, sentAt: now, attachments: [] },
  };
}

async function enqueue(deps: AgentServiceDeps, lane: LaneRef, item: InnerItem): Promise<EnqueuedItem> {
  const slots = 'class' in lane ? deps.reserve(lane.class, 1) : undefined;
  let runs: readonly ClaimedRun[] = [];
  try {
    const input = { items: [{ lane, item }], ...(slots && { claims: slots.terms }) };
    const enqueued = await deps.store.write(enqueueItems, input);
    runs = enqueued.runs;
    deps.probe.reach('item-enqueued');
    deps.start(enqueued.effects);
    const [stored] = enqueued.items;
    if (!stored) throw new ParleyError('internal', `Item ${item.sourceKey} was not stored.`);
    return stored;
  } finally {
    slots?.begin(runs);
  }
}
