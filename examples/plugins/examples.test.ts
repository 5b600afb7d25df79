import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPluginHarness } from 'parley/testing';
import { plugin as counter } from './counter/index.ts';
import { plugin as dice } from './dice/index.ts';
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
