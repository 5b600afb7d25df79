import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPluginHarness } from 'parley/testing';
import { plugin as counter } from './counter/index.ts';
import { plugin as dice } from './dice/index.ts';
import { plugin as mailbox } from './mailbox/index.ts';
import { plugin as mask } from './mask/index.ts';
import { plugin as now } from './now/index.ts';
import { plugin as tides } from './tides/index.ts';

test('the dice roll', async () => {
  await using parley = await createPluginHarness({ plugin: dice });
  parley.model.calls('roll_dice', { sides: 6 });
  parley.model.says('There.');
  assert.deepEqual(await parley.say('Roll a die.'), ['There.']);
  assert.match(parley.toolResults().at(-1) ?? '', /^[1-6]$/);
});

test('the counter counts each message once', async () => {
  await using parley = await createPluginHarness({ plugin: counter });
  assert.deepEqual(await parley.say('/count'), ['That makes 1.']);
  assert.deepEqual(await parley.say('/count', { as: 'guest' }), ['That makes 2.']);
});

test('the route needs the token', async () => {
  await using parley = await createPluginHarness({ plugin: now });
  assert.deepEqual(await parley.request('minutes'), { status: 200, text: '{"minutes":0}' });
  assert.equal((await parley.request('minutes', { token: false })).status, 401);
  assert.equal((await parley.request('nothing')).status, 404);
});

test('the provider answers', async () => {
  const settings = {
    model: 'tides/parrot',
    providers: { tides: { kind: 'plugin' }, script: { kind: 'plugin' } },
  };
  await using parley = await createPluginHarness({ plugin: tides, settings });
  assert.deepEqual(await parley.say('Who are you?'), ['I am parrot.']);
});

test('the hook masks card numbers in answers', async () => {
  await using parley = await createPluginHarness({ plugin: mask });
  parley.model.says('Your card is 4111 1111 1111 1234.');
  assert.deepEqual(await parley.say('Which card?'), ['Your card is •••• 1234.']);
  parley.model.says('Call 0316 123.');
  assert.deepEqual(await parley.say('Which number?'), ['Call 0316 123.']);
});

test('the channel accepts each message once, from those who know the secret', async () => {
  const secret = 'a-secret-of-programs';
  await using parley = await createPluginHarness({ plugin: mailbox, config: { secret } });
  const post = (body: object, sent = secret) =>
    parley.request('webhook/messages', {
      method: 'POST',
      body,
      headers: { 'x-mailbox-secret': sent },
      token: false,
    });
  assert.equal((await post({ id: '1', from: 'ann', text: 'Hello' }, 'wrong')).status, 401);
  parley.model.says('Hello, Ann.');
  const first = { status: 202, text: '{"result":"accepted"}' };
  assert.deepEqual(await post({ id: '1', from: 'ann', text: 'Hello' }), first);
  assert.deepEqual(await post({ id: '1', from: 'ann', text: 'Hello' }), {
    ...first,
    text: '{"result":"duplicate"}',
  });
  await until(async () => (await parley.request('answers?to=ann')).text === '[{"text":"Hello, Ann."}]');
  assert.equal(parley.model.requests().length, 1);
});

async function until(check: () => Promise<boolean>) {
  for (let at = 0; !(await check()); at++) {
    assert.ok(at < 500, 'it takes too long');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
