import type { AccountId, ChannelId, ConversationId, MessageId } from '../../src/contracts/ids.ts';
import type { TurnModels } from '../../src/contracts/model.ts';
import type { QueueSettings } from '../../src/contracts/queue-settings.ts';
import { type ReplyRoute, routeOf } from '../../src/contracts/route.ts';
import type { Store } from '../../src/store/base/command.ts';
import { conversationKeyOf, type LaneSpec } from '../../src/store/base/keys.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import type { AcceptOutput, Proposal } from '../../src/store/intake/proposal.ts';
import type { StopInput } from '../../src/store/intake/stop.ts';
import type { InnerItem, NewItem } from '../../src/store/items/enqueue-item.ts';
import { type Claim, type ClaimedRun, type ClaimInput, claimLane } from '../../src/store/lanes/claim-lane.ts';
import {
  type AnswerResult,
  type CommitAnswerInput,
  commitAnswer,
  endRun,
  type RunEndInput,
} from '../../src/store/lanes/commit-answer.ts';
import type { TextFraming } from '../../src/store/lanes/take-rows.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { rate } from './call-builders.ts';

/** No agent has its own model. */
export const demoOnly: TurnModels = { byAgent: {}, byDefault: 'demo' };

export const account = 'test/bot';
export const holder = 'boot-1';
export const framing: TextFraming = {
  now: '',
  contextIntro: '<context>',
  contextOutro: '</context>',
  overflowIntro: '<overflow>',
};

export const defaults: QueueSettings = {
  mode: 'steer',
  debounceMs: 0,
  quietMs: 200,
  cap: 20,
  drop: 'summarize',
};

let counter = 0;
export const unique = (name: string) => `${name}-${++counter}-${crypto.randomUUID().slice(0, 8)}`;

export function aRoute(conversation: string, over: Partial<ReplyRoute> = {}): ReplyRoute {
  return {
    channel: 'test' as ChannelId,
    account: 'bot' as AccountId,
    conversation: conversation as ConversationId,
    ...over,
  };
}

export function aLane(conversation: string, over: Partial<LaneSpec> = {}): LaneSpec {
  return {
    key: `main:bot:test:dm:${conversation}`,
    class: 'main',
    agentId: 'main',
    chatKind: 'dm',
    settings: defaults,
    newSessionId: crypto.randomUUID(),
    ...over,
  };
}

export type Saying = {
  readonly conversation: string;
  readonly text: string;
  readonly sender?: string;
  readonly lane?: LaneSpec;
  readonly item?: Partial<NewItem>;
  readonly messageId?: string;
  readonly eventKey?: string;
};

export function aMessage({
  conversation,
  text,
  sender = 'ann',
  lane,
  item,
  messageId,
  eventKey,
}: Saying): Proposal {
  const id = messageId ?? unique('m');
  const route = aRoute(conversation, { replyTo: id as MessageId });
  return {
    eventKey: eventKey ?? `message:${id}`,
    kind: 'message',
    conversationKey: conversationKeyOf(route),
    messageId: id,
    senderId: sender,
    decision: {
      kind: 'accept',
      item: {
        id: crypto.randomUUID(),
        kind: 'message',
        lane: lane ?? aLane(conversation),
        route,
        authority: 'owner',
        content: {
          ...{ text, prompt: text, sender: { id: sender, name: sender }, sentAt: 1, attachments: [] },
          ...(item?.kind === 'command' && { command: newCommand }),
        },
        passesGate: true,
        contextLimit: 50,
        ...item,
      },
    },
  };
}

/** Returns an item that Parley itself puts into a lane. */
export function anItem(text: string, over: Partial<InnerItem> = {}): InnerItem {
  return {
    id: unique('item'),
    source: 'api',
    sourceKey: unique('api:key'),
    reach: 'mode',
    reservedRunId: unique('run'),
    target: 'record',
    authority: 'owner',
    content: { text, prompt: text, sender: { id: 'api', name: 'API' }, sentAt: 1, attachments: [] },
    ...over,
  };
}

/** The command of a `/new` that waits in its lane. */
export const newCommand = { name: 'new', input: { input: {} }, abortsRun: true } as const;

/** A command with the input of its step. */
export type TestCommand =
  | { readonly kind: 'status' }
  | ({ readonly kind: 'stop' } & StopInput)
  | { readonly kind: 'queue'; readonly change: Partial<QueueSettings> };

export function aCommand(
  conversation: string,
  { kind, ...given }: TestCommand,
  sender = 'ann',
  lane = aLane(conversation),
): Proposal {
  const route = aRoute(conversation);
  const inputs = {
    status: { settings: defaults },
    stop: given,
    queue: { kind: 'set', ...given, configured: lane.settings },
  };
  return {
    eventKey: unique('command'),
    kind: 'message',
    conversationKey: conversationKeyOf(route),
    senderId: sender,
    decision: { kind: 'command', command: kind, input: { input: inputs[kind] }, lane, route },
  };
}

/** Returns the route of the run's answers. */
export function routeFor({ target }: Pick<ClaimedRun, 'target'>): ReplyRoute {
  const route = routeOf(target);
  if (!route) throw new Error('test error: the run is only on record');
  return route;
}

/** Runs that end at a person's request are cancelled; all others have failed. */
const wishes: ReadonlySet<string> = new Set(['stop', 'interrupt', 'reset']);

/** Ends the run without an answer. */
export function endWithout(
  store: Store,
  { laneKey, epoch, runId }: ClaimedRun,
  endReason: string,
  over: Partial<RunEndInput> = {},
) {
  return store.write(endRun, {
    ...{ laneKey, epoch, runId, endReason, outcomeReason: endReason },
    outcome: wishes.has(endReason) ? 'cancelled' : 'failed',
    ...{ detail: undefined, message: undefined, parts: [], preview: undefined, mayKeepLane: false },
    ...over,
  });
}

/** Returns a worker that holds one account of the store, with short names for its steps. */
export function aWorker(
  store: Store,
  name = holder,
  caps?: Record<string, number>,
  titleModels?: TurnModels,
) {
  const epochs = new Map<string, number>();
  const hold = async () => {
    const lease = await store.write(claimAccount, { account, holder: name, leaseMs: 60_000 });
    if (lease.kind !== 'held') throw new Error('the account is busy');
    return lease.epoch;
  };
  const accept = async (...proposals: Proposal[]): Promise<AcceptOutput> => {
    const epoch = epochs.get(account) ?? (await hold());
    epochs.set(account, epoch);
    return store.write(acceptBatch, { account, epoch, holder: name, proposals });
  };
  const claim = (laneKey: string, leaseMs = 10_000, over: Partial<ClaimInput> = {}): Promise<Claim> =>
    store.write(claimLane, {
      laneKey,
      holder: name,
      leaseMs,
      newRunId: crypto.randomUUID(),
      framing,
      maxAttempts: 3,
      models: demoOnly,
      titleModels,
      rates: { demo: rate },
      caps,
      ...over,
    });
  const claimRun = async (laneKey: string, leaseMs?: number): Promise<ClaimedRun> => {
    const claimed = await claim(laneKey, leaseMs);
    if (claimed.kind !== 'run') throw new Error(`expected a run, got ${JSON.stringify(claimed)}`);
    return claimed.run;
  };
  const answer = (
    run: ClaimedRun,
    text: string,
    over: Partial<CommitAnswerInput> = {},
  ): Promise<AnswerResult> =>
    store.write(commitAnswer, {
      laneKey: run.laneKey,
      epoch: run.epoch,
      runId: run.runId,
      framing,
      delivery: 'one-at-a-time',
      message: {
        id: crypto.randomUUID(),
        sessionId: run.sessionId,
        model: 'test',
        parts: [
          { type: 'text', data: { text } },
          { type: 'finish', data: { reason: 'end_turn', time: 1 } },
        ],
      },
      parts: over.parts ?? [
        { route: routeFor(run), content: { kind: 'text', text: { text, spans: [] } }, purpose: 'reply' },
      ],
      preview: over.preview,
      outcome: 'answered',
      mayKeepLane: true,
      ...over,
    });
  return { accept, claim, claimRun, answer, hold };
}
