import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { bob, eve, said, startTelegramGateway, untilSaid } from './telegram-gateway.ts';
import { until } from './until.ts';

const codeNotice = /^I don’t know you yet[\s\S]*(?:code|approve) ([A-Z2-9]{8})/;

test('a stranger reads what to do, the console makes the first one owner, who lets the next one in by a button, and out', {
  timeout: 300_000,
}, async ({ expect, onTestFinished }) => {
  const { telegram, model, dataDir, parley, start } = await startTelegramGateway(
    { config: { access: {} } },
    onTestFinished,
  );
  const codeFor = async (chat: number, nth = 0) => {
    const notice = await telegram.waitFor(
      () => telegram.botMessages(chat).filter((message) => codeNotice.test(message.text))[nth],
    );
    return codeNotice.exec(notice.text)?.[1] ?? '';
  };

  const buttonsIn = (chat: number) =>
    telegram.messages(chat).flatMap(({ message }) => message.reply_markup?.inline_keyboard.flat() ?? []);

  telegram.userSends({ from: eve, text: '/start' });
  telegram.userSends({ from: eve, text: 'Hello?' });
  const first = await codeFor(eve.id);
  expect(await onConsole(dataDir, 'pair', 'approve', first)).toBe(
    'telegram:666 “Eve” can write now, as the owner.\n',
  );
  // The gateway runs on and finds what the console has written.
  await untilSaid(telegram, { chat: eve.id, text: /^My owner has let you in\./ });
  // What she wrote before is answered.
  await untilSaid(telegram, { chat: eve.id, text: 'You said: Hello?' });

  telegram.userSends({ from: bob, text: 'Me too?' });
  const second = await codeFor(bob.id);
  // Passed on it is somebody's text; and the step that lets him in names him first.
  const forward_origin = { type: 'user', sender_user: bob, date: 1 };
  telegram.userSends({ from: eve, text: `/pair approve ${second}`, fields: { forward_origin } });
  const isAnswered = () =>
    said(telegram, eve.id).filter((text) => text.startsWith('You said: ')).length === 2;
  await until(isAnswered, { what: 'an answer to the forward' });
  telegram.userSends({ from: eve, text: `/pair confirm ${second}` });
  await untilSaid(telegram, { chat: eve.id, text: /^There’s nothing to confirm here\./ });
  telegram.userSends({ from: eve, text: `/pair approve ${second}` });
  await untilSaid(telegram, { chat: eve.id, text: /^telegram:502 “Bob” is asking for access/ });
  // What is stored outlives the process: the button too.
  const { callback_data: pressed = '' } = await telegram.waitFor(() => buttonsIn(eve.id)[0]);
  await parley().kill();
  await start();
  const query = telegram.people.pressesButton({ chat: eve.id, from: eve, label: 'Approve' });
  const letIn = 'telegram:502 “Bob” may write to me now. Approved by telegram:666 “Eve”.';
  await untilSaid(telegram, { chat: eve.id, text: letIn });
  await until(() => telegram.platform.answeredCallbacks.length === 1, { what: 'an answer to the press' });
  expect(telegram.platform.answeredCallbacks).toEqual([{ id: query, text: letIn }]);
  expect(buttonsIn(eve.id)).toEqual([]);
  await untilSaid(telegram, { chat: bob.id, text: 'You said: Me too?' });
  // He asks the owner's button himself: it is gone, and what it would say is told to him alone.
  const [asked] = telegram.botMessages(eve.id).filter(({ text }) => text === letIn);
  telegram.people.presses({ chat: eve.id, from: bob, messageId: asked?.messageId ?? 0, data: pressed });
  await until(() => telegram.platform.answeredCallbacks.length === 2, { what: 'an answer to his press' });
  expect(telegram.platform.answeredCallbacks.at(-1)?.text).toBe('Already approved by telegram:666 “Eve”.');

  const gate = createGate();
  onTestFinished(async () => gate.open());
  model.script([{ chunks: ['A long ', 'answer.'], hold: { gate, afterChunks: 1 } }]);
  telegram.userSends({ from: bob, text: 'Tell me a story.' });
  await until(() => model.requests.length === 4, { what: 'the story' });
  telegram.userSends({ from: bob, text: 'A long one.' });
  const waits = () => readStore(dataDir, `select 1 from inbox where state = 'waiting'`).length === 1;
  await until(waits, { what: 'the second message' });
  telegram.userSends({ from: eve, text: '/pair revoke telegram:502' });
  await untilSaid(telegram, { chat: eve.id, text: 'telegram:502 may no longer write to me.' });
  telegram.userSends({ from: bob, text: 'Hello?' });
  await codeFor(bob.id, 1);
  await untilAtRest(dataDir, 12);

  const ofBob = readStore(dataDir, `select outcome from inbox where senderId = '502' order by seq`);
  expect(ofBob).toEqual([{ outcome: 'answered' }, { outcome: 'cancelled' }, { outcome: 'refused' }]);
  expect(model.requests).toHaveLength(4);
  expect(said(telegram, bob.id).join()).not.toContain('A long');
  const refused = readStore(dataDir, `select reason from ledger where outcome = 'refused'`);
  expect(refused).toEqual(Array(2).fill({ reason: 'dm-not-paired' }));
  expect(findBreaches(dataDir)).toEqual([]);
});

/** Runs `parley` on the data folder of a gateway that runs; resolves with what it printed. */
async function onConsole(dataDir: string, ...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['../../bin/parley.mjs', ...args], {
    cwd: import.meta.dirname,
    env: { PATH: process.env.PATH, PARLEY_TEST_HOME: '/nowhere', PARLEY_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [printed, problem] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  if (child.exitCode !== 0) throw new Error(problem);
  return printed;
}
