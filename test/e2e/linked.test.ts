/** One person on several networks, several bots on one network: all in one gateway. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { shareOf } from '../support/turn.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { redeem, untilTold } from './linking.ts';
import { type Person, telegramPerson } from './person.ts';
import { answerQuestion, answerTo, questionsIn } from './questions.ts';
import { signalOf } from './signal-side.ts';
import { type AtEnd, type Config, openStage, type Stage } from './stage.ts';

const workToken = '7000002:BBparley-test-token-0123456789abcdef';

type Opened = {
  readonly stage: Stage;
  /** The Bot API of the second bot, the account `work`. */
  readonly work: TelegramServer;
  /** The person with this id at the second bot. */
  atWork(id: number): Person;
};

async function openTwoBots(atEnd: AtEnd, config: Config = {}, dmPolicy = 'open'): Promise<Opened> {
  const work = await startTelegramServer({ token: workToken });
  atEnd(() => work.close());
  const telegram = { pollSeconds: 5, accounts: { work: { apiRoot: work.apiRoot } } };
  const settings = {
    config: { ...config, channels: { telegram }, access: { dmPolicy } },
    networks: ['signal'],
    env: { TELEGRAM_BOT_TOKEN_WORK: workToken },
  } as const;
  const stage = await openStage(settings, atEnd);
  return { stage, work, atWork: (id) => telegramPerson(work, id) };
}

/** Lets these people write, and no strangers. */
async function admit(stage: Stage, ids: readonly number[]): Promise<void> {
  const path = join(stage.home, 'parley.config.json');
  const allowFrom = [...ids.map((id) => `telegram:${id}`), `signal:${signalOf(stage).user(501).uuid}`];
  const config = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify({ ...config, access: { ...config.access, allowFrom } }));
}

/** Each DM scope, and who shares a conversation under it. */
const dmScopes = [
  ['per-account-channel-peer', ['telegram-501', 'work-501', 'telegram-502', 'signal']],
  ['per-channel-peer', ['telegram-501 work-501', 'telegram-502', 'signal']],
  ['per-peer', ['telegram-501 work-501', 'telegram-502', 'signal']],
  ['main', ['telegram-501 work-501 telegram-502 signal']],
] as const;

describe.concurrent('a person with several accounts', { timeout: 300_000 }, () => {
  test('keeps two bots of one network apart, also when one of them fails', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, work, atWork } = await openTwoBots(onTestFinished);
    await stage.start();
    stage.model.script(answerQuestion);
    const [telegram, third] = [stage.person('telegram', 503), atWork(779)];
    telegram.says('question-one');
    third.says('question-two');
    await untilTold(telegram, new RegExp(answerTo('question-one')));
    await untilTold(third, new RegExp(answerTo('question-two')));
    third.says('/status');
    expect(await untilTold(third, /^Agent/)).toContain('Account telegram.work (');

    await work.goAway();
    telegram.says('question-three');
    await untilTold(telegram, new RegExp(answerTo('question-three')));
    await work.comeBack();
    third.says('question-four');
    await untilTold(third, new RegExp(answerTo('question-four')));
    await untilAtRest(stage.dataDir, 5);
    expect(telegram.standing()).toEqual([answerTo('question-one'), answerTo('question-three')]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('keeps accounts linked across a kill and a restart, and unlinks them on request', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, atWork } = await openTwoBots(onTestFinished);
    const parley = await stage.start();
    const [telegram, third] = [stage.person('telegram', 501), atWork(777)];
    stage.model.script(answerQuestion);
    telegram.says('question-one');
    await untilTold(telegram, new RegExp(answerTo('question-one')));
    telegram.says('/link');
    await untilTold(telegram, /\/link [A-Z2-9]{8}/);
    const [, code] = /\/link ([A-Z2-9]{8})/.exec(telegram.standing().at(-1) ?? '') ?? [];
    await parley.kill();
    await stage.start();
    await redeem(third, code ?? '');
    await untilTold(third, /is now linked with telegram:501/);
    third.says('question-two');
    await untilTold(third, new RegExp(answerTo('question-two')));
    expect(questionsIn(stage.model.requests.at(-1)?.body)).toEqual(['question-one', 'question-two']);

    third.says('/link remove telegram:501');
    await untilTold(telegram, /unlinked this account/);
    telegram.says('question-three');
    await untilTold(telegram, new RegExp(answerTo('question-three')));
    expect(questionsIn(stage.model.requests.at(-1)?.body)).toEqual(['question-three']);
    await untilAtRest(stage.dataDir, 7);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test.for(shareOf(dmScopes, 4))(
    'keeps conversations together or apart as dmScope %s says',
    async ([dmScope, groups], { expect, onTestFinished }) => {
      const { stage, atWork } = await openTwoBots(onTestFinished, { dmScope }, 'allowlist');
      await admit(stage, [501, 502]);
      await stage.start();
      stage.model.script(answerQuestion);
      const people: readonly (readonly [string, Person])[] = [
        ['telegram-501', stage.person('telegram', 501)],
        ['work-501', atWork(501)],
        ['telegram-502', stage.person('telegram', 502)],
        ['signal', stage.person('signal')],
      ];
      for (const [name, person] of people) {
        person.says(`question-${name}`);
        await untilTold(person, new RegExp(answerTo(`question-${name}`)));
        expect(person.standing()).toHaveLength(1);
      }
      const together = new Map<string, string[]>();
      for (const row of readStore(
        stage.dataDir,
        'select "laneKey", content from inbox order by "createdAt", seq',
      )) {
        const name = /question-([\w-]*\w)/.exec(String(row.content))?.[1] ?? '';
        together.set(String(row.laneKey), [...(together.get(String(row.laneKey)) ?? []), name]);
      }
      expect([...together.values()].map((names) => names.join(' '))).toEqual(groups);
      await untilAtRest(stage.dataDir, 4);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    },
  );
});
