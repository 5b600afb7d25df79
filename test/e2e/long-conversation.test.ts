/** A conversation far longer than its model's window, on the real gateway, which is killed again and again. */

import { expect, test } from 'vitest';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { lastUserText, type WireBody } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { createRandom } from './random.ts';
import { startStage } from './stage.ts';
import { ada } from './telegram-chat.ts';

const seed = Number(process.env.TEST_SEED ?? 20_261_122);
const [turns, kills] = isLong ? [5_000, 10] : [60, 1];
/** The model's window, in tokens. */
const window = 16_000;
const longAnswer = 'word '.repeat(isLong ? 200 : 220);

test(`remembers the first of ${turns} turns at the last, over ${kills} kills`, {
  timeout: isLong ? 3_600_000 : 300_000,
}, async ({ onTestFinished }) => {
  const random = createRandom(seed);
  const model = await startAnthropicServer({ contextTokens: window });
  onTestFinished(() => model.close());
  const small = { provider: 'anthropic', id: 'claude-opus-4-6', window, maxTokens: 1_000 };
  const config = {
    ...{ models: { small }, model: 'small', logLevel: 'warn', run: { maxAttempts: 20 } },
    ...{ replies: { preview: false }, rateLimit: { perSenderPerMinute: 100_000 } },
  };
  const gateway = await startStage({ config, model }, onTestFinished);
  const { telegram, dataDir } = gateway;
  let summaries = 0;
  let killedSummary: number | undefined;
  model.script((body) => {
    if (!isSummary(body)) return { text: answerTo(body) };
    summaries += 1;
    if (summaries !== killedSummary) return { text: summaryOf(body) };
    void gateway.parley().kill();
    return { hang: true };
  });

  let [events, restarts] = [0, 0];
  const ask = async (text: string, answer: string) => {
    telegram.userSends({ from: ada, text });
    events += 1;
    const isAnswered = () => telegram.botMessages(ada.id).at(-1)?.text.startsWith(answer);
    const ended = gateway.parley().ended.then(() => 'dead' as const);
    const said = telegram.waitFor(isAnswered).then(
      () => 'said' as const,
      (error: unknown) => error,
    );
    const first = await Promise.race([said, ended]);
    if (first === 'said') return;
    if (first !== 'dead') throw first;
    restarts += 1;
    await gateway.start();
    // A message in flight when it died may or may not have arrived.
    await untilAtRest(dataDir, events);
  };

  await ask('My boat is called Marigold.', 'Answer');
  const every = Math.floor(turns / kills);
  for (let turn = 1; turn < turns - 1; turn += 1) {
    // The first kill cuts off a summary; the later ones hit a summary, the moment after one and any moment, in turn.
    const kill = Math.floor(turn / every);
    const isDue = turn % every === Math.floor(every / 4) && kill < kills;
    if (isDue && kill % 3 === 0) killedSummary = summaries + 1;
    if (isDue && kill % 3 === 1) {
      await gateway.parley().stop();
      await gateway.start({ killAt: `summary-committed:${1 + Math.floor(random() * 3)}` });
    }
    if (isDue && kill % 3 === 2) setTimeout(() => void gateway.parley().kill(), random() * 50);
    await ask(`Question ${turn}?`, `Answer to Question ${turn}?`);
  }
  expect(restarts).toBe(kills);
  await ask('What is the name of my boat?', 'Answer: it is called Marigold.');
  await untilAtRest(dataDir, events);

  expect(findBreaches(dataDir)).toEqual([]);
  const rows = readStore(
    dataDir,
    `select position, role, isSummary from transcript
     where sessionId = (select id from sessions order by messageCount desc limit 1) order by position`,
  );
  expect(rows.map(({ position }) => position)).toEqual(rows.map((_, index) => index + 1));
  const count = (role: string, isSummary: number) =>
    rows.filter((row) => row.role === role && row.isSummary === isSummary).length;
  const made = count('user', 1);
  expect(made).toBeGreaterThan(turns / 100);
  expect([count('user', 0), count('assistant', 0)]).toEqual([turns, turns]);
  expect(model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
  const [calls] = readStore(
    dataDir,
    'select max(inputTokens + cacheReadTokens + cacheWriteTokens) as longest from modelCalls',
  );
  expect(Number(calls?.longest)).toBeLessThan(window);
  if (isLong)
    console.log(
      `seed ${seed}: ${turns} turns, ${restarts} kills, ${made} summaries kept of ${summaries} asked for, longest prompt ${calls?.longest} tokens`,
    );
});

function isSummary({ system }: WireBody): boolean {
  return JSON.stringify(system ?? '').includes('keep the memory');
}

/** Remembers a fact when it is first said and forgets everything else: no later summary repeats it. */
function summaryOf(body: WireBody): string {
  const asked = lastUserText(body);
  const isSaid = asked.includes('My boat is called Marigold');
  return `They talked.${isSaid ? '\n<facts>\n+ The boat is called Marigold.\n</facts>' : ''}`;
}

/** Answers from the request alone. */
function answerTo(body: WireBody): string {
  const asked = lastUserText(body);
  const [, name] = /boat is called (\w+)/.exec(JSON.stringify(body.messages)) ?? [];
  if (asked.includes('name of my boat')) return `Answer: it is called ${name ?? 'I do not know what'}.`;
  return `Answer to ${asked} ${longAnswer}`;
}
