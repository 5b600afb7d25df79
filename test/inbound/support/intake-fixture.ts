/**
 * People with accounts on several networks, who all write through the real intake into a real store; and a worker
 * that answers the waiting messages.
 */

import { systemClock } from '#channel-kit/system-clock.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope, InboundEvent } from '#contracts/envelope.ts';
import {
  accountId,
  channelId,
  conversationId,
  eventKey,
  messageId,
  peerId,
  threadId,
} from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { noProbe } from '#contracts/probe.ts';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import type { Hooks } from '../../../src/hooks/hooks.ts';
import { createInboundPolicy } from '../../../src/inbound/inbound-policy.ts';
import { createIntake, type InboundDeps } from '../../../src/inbound/intake.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import type { Effects } from '../../../src/store/base/effects.ts';
import { json } from '../../../src/store/base/json.ts';
import { claimAccount } from '../../../src/store/processes/accounts.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { aWorker } from '../../store/builders.ts';
import { silentLog } from '../../support/silent-log.ts';
import { commandDeps } from './command-deps.ts';

/** A person's account: `alpha:7` is person 7 on the network alpha, who writes to the bot `bot` there. */
export type Account = { readonly channel: string; readonly peer: string; readonly bot?: string };

export type IntakeFixture = {
  /** Sends an event and returns its acceptance; a string is a direct message. */
  send(from: Account, event: string | InboundEvent, over?: Partial<Scene>): Promise<Acceptance>;
  /** Accepts one batch. */
  accept(from: Account, events: readonly InboundEnvelope[]): Promise<readonly Acceptance[]>;
  /** Returns the lane that an accepted message has entered. */
  laneOf(acceptance: Acceptance): string;
  /** Returns what the bot said in the account's direct conversation, oldest first. */
  said(to: Account): Promise<readonly string[]>;
  /** Sends `/link` and returns the code that it shows. */
  ask(from: Account): Promise<string>;
  /** Links two accounts: one sends `/link`, the other enters the code and confirms when asked to. */
  link(asker: Account, joiner: Account): Promise<void>;
  readonly worker: ReturnType<typeof aWorker>;
};

export type Scene = {
  readonly group?: string;
  readonly thread?: string;
  readonly mentionsBot?: boolean;
  readonly isAdmin?: boolean;
  readonly eventKey?: string;
  /** The current time if absent. */
  readonly sentAt?: number;
  readonly receivedAt?: number | undefined;
};

export type IntakeFixtureSettings = {
  readonly config?: Partial<Omit<Config, 'queue' | 'access'>> & {
    readonly queue?: Omit<Config['queue'], 'waitingNotice'>;
  };
  readonly access?: Partial<Config['access']>;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly botName?: () => string;
  /** The process's id. */
  readonly holder?: string;
  /** Reserves slots for what a commit makes due; absent if none is free. */
  readonly reserve?: InboundDeps['reserve'];
  readonly budgets?: typeof commandDeps.budgets;
  readonly agents?: typeof commandDeps.agents;
  readonly hooks?: Hooks;
  readonly meters?: InboundDeps['meters'];
  /** Receives the effects of each commit. */
  readonly start?: (effects: Effects) => void;
};

let count = 0;
/** Returns an account that no other test of this run uses. */
export const anAccount = (channel: string): Account => ({
  channel,
  peer: `${channel[0]}${++count}${Date.now() % 1e6}`,
});
export const refOf = ({ channel, peer }: Account): string => `${channel}:${peer}`;
/** Returns the account's name as other people see it. */
export const labelOf = (account: Account): string => `${refOf(account)} “Person ${account.peer}”`;

export function createIntakeFixture(store: Store, settings: IntakeFixtureSettings = {}): IntakeFixture {
  const holder = settings.holder ?? 'boot-1';
  const environment = { values: { PARLEY_DM_POLICY: 'open', PARLEY_GROUP_POLICY: 'open' }, unknown: [] };
  const base = loadConfig(environment, '/nowhere');
  const access = { ...base.access, ...settings.access };
  const config = {
    ...base,
    rateLimit: { perSenderPerMinute: 100_000 },
    ...settings.config,
    access,
  } as Config;
  const policy = createInboundPolicy(config, textsFor('en'));
  const { budgets = commandDeps.budgets, agents = commandDeps.agents } = settings;
  const commands = { ...commandDeps, budgets, agents };
  const deps = {
    store,
    policy,
    commands,
    clock: settings.clock ?? systemClock,
    log: settings.log ?? silentLog,
    probe: noProbe,
  };
  const intakes = new Map<string, Promise<ReturnType<typeof createIntake>>>();

  const open = async (account: string) => {
    const lease = await store.write(claimAccount, { account, holder, leaseMs: 600_000 });
    if (lease.kind !== 'held') throw new Error(`${account} is held by another process`);
    const receiving = { account, epoch: lease.epoch, holder, botName: settings.botName ?? (() => 'bot') };
    return createIntake(
      {
        ...deps,
        ...(settings.meters && { meters: settings.meters }),
        ...(settings.hooks && { hooks: settings.hooks }),
        start: settings.start ?? (() => undefined),
        reserve: settings.reserve ?? (() => undefined),
        hasSpace: () => true,
      },
      receiving,
    );
  };
  const intakeOf = ({ channel, bot = 'bot' }: Account) => {
    const account = `${channel}/${bot}`;
    const known = intakes.get(account) ?? open(account);
    intakes.set(account, known);
    return known;
  };
  const accept: IntakeFixture['accept'] = async (from, events) => (await intakeOf(from)).accept({ events });
  const send: IntakeFixture['send'] = async (from, event, over = {}) => {
    const [acceptance] = await accept(from, [anEnvelope(from, event, over)]);
    if (!acceptance) throw new Error('nothing was accepted');
    return acceptance;
  };
  const said: IntakeFixture['said'] = ({ channel, peer, bot = 'bot' }) =>
    store.read(textsTo, { conversationKey: `${channel}/${bot}/${peer}` });
  const ask: IntakeFixture['ask'] = async (from) => {
    await send(from, '/link');
    const [, code] = /\/link ([A-Z2-9]{8})/.exec((await said(from)).at(-1) ?? '') ?? [];
    if (code === undefined) throw new Error(`no code in ${JSON.stringify(await said(from))}`);
    return code;
  };
  return {
    send,
    accept,
    said,
    ask,
    link: async (asker, joiner) => {
      const code = await ask(asker);
      await send(joiner, `/link ${code}`);
      if ((await said(joiner)).at(-1)?.includes('/link confirm')) await send(joiner, `/link confirm ${code}`);
    },
    laneOf: (acceptance) => {
      if (acceptance.kind === 'accepted') return acceptance.sessionKey;
      throw new Error(`not accepted: ${JSON.stringify(acceptance)}`);
    },
    worker: aWorker(store, holder),
  };
}

export function anEnvelope(
  from: Account,
  event: string | InboundEvent,
  scene: Partial<Scene> = {},
): InboundEnvelope {
  const { channel, peer, bot = 'bot' } = from;
  const { group, thread, mentionsBot = false, isAdmin, sentAt = Date.now(), receivedAt } = scene;
  const id = messageId(crypto.randomUUID());
  const message = {
    kind: 'message',
    messageId: id,
    provenance: 'typed',
    attachments: [],
    mentionsBot,
    repliesToBot: false,
  } as const;
  return {
    eventKey: eventKey(scene.eventKey ?? `event:${id}`),
    sentAt,
    ...(receivedAt !== undefined && { receivedAt }),
    route: {
      channel: channelId(channel),
      account: accountId(bot),
      conversation: conversationId(group ?? peer),
      ...(thread !== undefined && { thread: threadId(thread) }),
    },
    chat: { kind: group === undefined ? 'dm' : 'group' },
    sender: {
      id: peerId(peer),
      name: `Person ${peer}`,
      isBot: false,
      isSelf: false,
      ...(isAdmin && { isAdmin }),
    },
    event: typeof event === 'string' ? { ...message, text: event } : event,
  };
}

const textsTo: StoreQuery<{ readonly conversationKey: string }, readonly string[]> = {
  query: 'textsTo',
  run: async (tx, { conversationKey }) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select('content')
      .where('conversationKey', '=', conversationKey)
      .orderBy('place')
      .execute();
    return rows.map((row) => {
      const content = json.outbound(row.content);
      return content.kind === 'text' ? content.text.text : `(${content.kind})`;
    });
  },
};
