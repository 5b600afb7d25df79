import { expect, test } from 'vitest';
import { blocksOf } from '../platforms/anthropic/wire.ts';
import { findBreaches, untilAtRest } from './conservation.ts';
import { pageToken } from './page-state.ts';
import { startStage } from './stage.ts';
import { ada, bob, said, untilSaid } from './telegram-chat.ts';

/** Each of these used to block the event loop for seconds. */
const hostile = ['_a*'.repeat(6_700), 'www.a_'.repeat(5_000), 'a\n=\n'.repeat(4_000)];

const lettersIn = (text: string) => text.split('a').length - 1;

async function parsedAside(url: string): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${pageToken}` } });
  const lines = (await answer.text())
    .split('\n')
    .filter((line) => line.startsWith('parley_texts_parsed_aside{'));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

test('sends answers that are slow to parse in full without delaying others', async ({ onTestFinished }) => {
  const { telegram, model, dataDir, parley } = await startStage({}, onTestFinished);
  model.script((body) => {
    const asked = body.messages.flatMap(blocksOf).at(-1)?.text ?? '';
    return { text: hostile[Number(/hostile (\d)/.exec(asked)?.[1])] ?? `To ${asked}` };
  });
  for (const [index, text] of hostile.entries()) {
    const before = lettersIn(said(telegram, ada.id).join(''));
    telegram.userSends({ from: ada, text: `hostile ${index}` });
    telegram.userSends({ from: bob, text: `meanwhile ${index}` });
    await untilSaid(telegram, { chat: bob.id, text: `To meanwhile ${index}` });
    await telegram.waitFor(
      () => lettersIn(said(telegram, ada.id).join('')) - before >= lettersIn(text),
      60_000,
    );
    expect(lettersIn(said(telegram, ada.id).join('')) - before).toBe(lettersIn(text));
  }
  await untilAtRest(dataDir, hostile.length * 2);

  expect(await parsedAside(parley().url)).toBe(hostile.length);
  expect(findBreaches(dataDir)).toEqual([]);
});
