/**
 * A process is stopped at a named point (SIGSTOP), another takes over its work, and then the first resumes
 * where it stopped: whatever it still tries to write is rejected, and nothing appears twice. A normal run tests
 * one point of each kind, `PARLEY_LONG=1` all of them.
 */

import { describe, expect, it } from 'vitest';
import type { KillPoint } from '../../src/contracts/probe.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { endsInResult, type WireBody } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { quoted } from './conservation.ts';
import { type Installation, type Member, openInstallation } from './installation.ts';
import { databaseServer } from './own-database.ts';
import { answerTo, questionOf, shownTwice } from './questions.ts';
import type { AtEnd, StageNetwork } from './stage.ts';
import { until } from './until.ts';

const question = 'question-501-001';
const next = 'question-501-002';

/** Points in a worker. After the last of them the run is over, and there is nothing to take over. */
const inARun: readonly KillPoint[] = isLong
  ? ['claimed', 'taken', 'model-called', 'streaming', 'turn-committed', 'tool-started', 'tool-finished']
  : ['tool-finished'];

describe.skipIf(databaseServer === undefined)('a suspended worker', { concurrent: true }, () => {
  it.for(inARun)(
    'answers nothing twice after another worker took over at %s',
    { timeout: 120_000 },
    async (point, { onTestFinished }) => {
      const parleys = await anInstallation(onTestFinished);
      await parleys.start('gateway', { role: 'gateway' });
      const still = await parleys.start('still', { role: 'worker', stopAt: `${point}:1` });
      says(parleys, question);
      await untilPaused(still);
      await parleys.start('other', { role: 'worker' });
      await untilSaid(parleys, answerTo(question));
      still.continueRun();
      says(parleys, next);
      await untilSaid(parleys, answerTo(next));
      await parleys.untilAtRest(2);
      await until(() => /run\.(superseded|interrupted)|"stop":"lost"/.test(parleys.logOf('still')), {
        what: 'it notices that it was overtaken',
      });

      expect(said(parleys)).toEqual([answerTo(question), answerTo(next)]);
      const effects = parleys.effects();
      expect(new Set(effects).size, 'each call had its effect once').toBe(effects.length);
      await expectLawful(parleys);
    },
  );
});

type Sending = {
  readonly network: 'Telegram' | 'Discord';
  readonly point: KillPoint;
  /** How often the answer is in the chat in the end; Telegram can't recognize a repeated send. */
  readonly stands: number;
  readonly state: 'sent' | 'unknown';
};

const allSendings: readonly Sending[] = [
  // On resuming it still sends; by then the part is reported as unknown.
  { network: 'Telegram', point: 'sending', stands: 1, state: 'unknown' },
  { network: 'Telegram', point: 'sent-not-marked', stands: 1, state: 'unknown' },
  { network: 'Discord', point: 'sending', stands: 1, state: 'sent' },
  { network: 'Discord', point: 'sent-not-marked', stands: 1, state: 'sent' },
];
const sendings = isLong ? allSendings : allSendings.slice(1, 2);

describe.skipIf(databaseServer === undefined)(
  'a process suspended while it sends',
  { concurrent: true },
  () => {
    it.for(sendings)(
      'sends no part twice after it resumes at $point on $network',
      { timeout: 120_000 },
      async (sending, { onTestFinished }) => {
        const networks = sending.network === 'Discord' ? (['discord'] as const) : [];
        const parleys = await anInstallation(onTestFinished, networks);
        await parleys.start('gateway', { role: 'gateway' });
        const still = await parleys.start('still', { role: 'worker', stopAt: `${sending.point}:1` });
        const person = parleys.discord?.person(501);
        const standing = () => person?.standing() ?? said(parleys);
        const say = (text: string) => (person ? person.says(text) : says(parleys, text));
        say(question);
        await untilPaused(still);
        await parleys.start('other', { role: 'worker' });
        await untilState(parleys, sending.state);
        still.continueRun();
        say(next);
        await until(() => standing().includes(answerTo(next)), { what: 'the next answer stands' });
        await parleys.untilAtRest(2);
        await until(() => parleys.logOf('still').includes('delivery.lease-lost'), {
          what: 'it notices that its delivery is another’s',
        });

        expect(standing().filter((text) => text === answerTo(question))).toHaveLength(sending.stands);
        expect(standing().filter((text) => text === answerTo(next))).toHaveLength(1);
        if (!person) expect(callsToSend(parleys, answerTo(question))).toBe(1);
        await expectLawful(parleys);
      },
    );
  },
);

async function anInstallation(atEnd: AtEnd, networks: readonly StageNetwork[] = []): Promise<Installation> {
  const parleys = await openInstallation({ config, database: 'postgres', networks }, atEnd);
  parleys.model.script(reply);
  return parleys;
}

const config = {
  lanes: { leaseMs: 1_000, renewMs: 300 },
  outbox: { sendTimeoutMs: 2_000 },
  queue: { dm: { mode: 'followup' } },
  replies: { preview: false },
};

/** The first question needs a tool that must not run twice; the text arrives in chunks. */
function reply(body: WireBody): Reply {
  const asked = questionOf(body);
  const hasResult = endsInResult(body);
  if (asked === question && !hasResult) return { toolCalls: [{ name: 'once' }] };
  return { chunks: answerTo(asked).match(/.{1,4}/g) ?? [] };
}

function says({ telegram }: Installation, text: string): void {
  telegram.people.sends({ from: { id: 501, is_bot: false, first_name: 'Ada' }, text });
}

function said({ telegram }: Installation): readonly string[] {
  return telegram.botMessages(501).map(({ text }) => text);
}

function callsToSend({ telegram }: Installation, text: string): number {
  return telegram.sent.filter(({ params }) => params.text === text).length;
}

async function untilPaused(member: Member): Promise<void> {
  await until(member.isPaused, { what: `${member.name} stands still` });
}

async function untilSaid(parleys: Installation, text: string): Promise<void> {
  await until(() => said(parleys).includes(text), { what: text });
}

async function untilState({ read }: Installation, state: string): Promise<void> {
  const find = quoted(`select key from outbox where purpose = 'reply' and state = '${state}'`);
  await until(async () => (await read(find)).length > 0, { what: `a part is ${state}` });
}

async function expectLawful(parleys: Installation): Promise<void> {
  const { wrong } = await parleys.account([], () => true);
  expect(wrong).toEqual([]);
  expect(shownTwice(parleys.model)).toEqual([]);
}
