/**
 * One gateway for the tests of a file that aren't about its start: each test has its own person or group,
 * and looks at nothing else.
 */
import { afterAll, beforeAll, expect } from 'vitest';
import type { JournalEntry } from '../platforms/anthropic/journal.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import type { StandingMessage, TgUser } from '../platforms/telegram/types.ts';
import { countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { type StageSettings, startStage } from './stage.ts';
import { said, untilSaid, untilWriting } from './telegram-chat.ts';
import { until } from './until.ts';

/** Tables that show what became of a conversation, each with the column that orders it. */
const orders = { inbox: 'seq', outbox: 'seq', runs: 'startedAt' } as const;

export type Talk = {
  readonly telegram: TelegramServer;
  readonly dataDir: string;
  readonly chat: number;
  /** The sender of what `says` says. */
  readonly from: TgUser;
  /** Must be part of the first message, because it identifies this conversation's requests to the model. */
  readonly mark: string;
  /** `count`: of the requests of this conversation, from 1. */
  script(reply: (body: WireBody, count: number) => Reply): void;
  says(text: string): StandingMessage;
  /** Waits until everything that was sent to the bot has been accepted. */
  untilHeard(): Promise<unknown>;
  /** Waits until the beginning of an answer is shown: from then on, a message that arrives waits for its end. */
  untilWriting(): Promise<unknown>;
  said(): readonly string[];
  untilSaid(text: string | RegExp): Promise<StandingMessage>;
  requests(): readonly JournalEntry[];
  /** Returns how often the text is in a transcript as something a person said. */
  told(text: string): number;
  /** Returns the rows of the table that belong to this conversation, oldest first. */
  rows(table: keyof typeof orders, columns: string): readonly Readonly<Record<string, unknown>>[];
  /** Waits until `messages` messages have ended and nothing of theirs is left to send. */
  untilAtRest(messages: number): Promise<void>;
};

const firstId = 501;

/** Everybody may write. At the end the conservation law must hold for all of them. */
export function shareGateway({ config = {}, env = {} }: Pick<StageSettings, 'config' | 'env'> = {}) {
  const talks: { readonly talk: Talk; reply: (body: WireBody) => Reply }[] = [];
  const ends: (() => Promise<void>)[] = [];
  let gateway: Awaited<ReturnType<typeof startStage>> | undefined;
  const running = () => {
    if (!gateway) throw new Error('test error: the gateway has not been started yet');
    return gateway;
  };
  const isOf = ({ mark }: Talk, body: WireBody) => JSON.stringify(body.messages).includes(mark);

  beforeAll(async () => {
    const allowFrom = Array.from({ length: 100 }, (_, index) => `telegram:${firstId + index}`);
    const access = { dmPolicy: 'allowlist', allowFrom, groupPolicy: 'open' };
    gateway = await startStage({ config: { access, ...config }, env }, (end) => ends.push(end));
    gateway.model.script((body) => {
      const found = talks.find(({ talk }) => isOf(talk, body));
      if (!found) throw new Error('test error: a request of no conversation');
      return found.reply(body);
    });
  });
  afterAll(async () => {
    try {
      await untilAtRest(running().dataDir, 0);
      expect(findBreaches(running().dataDir)).toEqual([]);
    } finally {
      for (const end of ends) await end();
    }
  });

  /** `as`: the number of a person named in the configuration. */
  return (where: 'direct' | 'group' = 'direct', as?: number): Talk => {
    const { telegram, model, dataDir } = running();
    const id = as ?? firstId + talks.length;
    const from = { id, is_bot: false, first_name: `Person ${id}` };
    const chat = where === 'direct' ? id : telegram.world.addSupergroup(`team ${id}`).chat.id;
    const rows: Talk['rows'] = (table, columns) =>
      readStore(
        dataDir,
        `select ${columns} from ${table} where laneKey like ? order by ${orders[table]}`,
        `%:${chat}`,
      );
    const talk: Talk = {
      telegram,
      dataDir,
      chat,
      from,
      mark: `no${id}`,
      rows,
      script: (reply) => {
        let count = 0;
        mine.reply = (body) => reply(body, ++count);
      },
      untilHeard: () => telegram.waitFor(() => telegram.updates.pending.length === 0),
      says: (text) => telegram.userSends({ ...(where === 'group' && { chat }), from, text }),
      untilWriting: () => untilWriting(telegram, chat),
      said: () => said(telegram, chat),
      untilSaid: (text) => untilSaid(telegram, { chat, text }),
      requests: () => model.requests.filter(({ body }) => isOf(talk, body)),
      told: (text) => countTold(dataDir, [text])[0] ?? 0,
      untilAtRest: (messages) =>
        until(
          () => {
            const ended = rows('inbox', 'outcome').filter(({ outcome }) => outcome !== null);
            const due = rows('outbox', 'state').filter(({ state }) => /pending|sending/.test(String(state)));
            return ended.length >= messages && due.length === 0;
          },
          { what: `${messages} messages of ${chat} at rest` },
        ),
    };
    const mine = { talk, reply: (): Reply => ({ text: 'unscripted' }) } as (typeof talks)[number];
    talks.push(mine);
    return talk;
  };
}
