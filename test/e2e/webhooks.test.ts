/** Webhooks: other systems report something, and the agent answers in the owner's chat. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { test } from 'vitest';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import {
  alertmanager,
  github,
  type SentDelivery,
  secret,
  standardSecret,
} from '../server/webhooks/payloads.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { openStage, type Stage } from './stage.ts';
import { untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const owner = 501;
const config = {
  owners: [`telegram:${owner}`],
  webhooks: {
    alerts: {
      keyEnv: 'ALERTS_SECRET',
      prompt: 'Tell me whether to get up.',
      template: '{{status}}: {{commonAnnotations.summary}}',
    },
    builds: { keyEnv: 'ALERTS_SECRET', signature: 'github' },
    backups: { keyEnv: 'BACKUPS_SECRET', signature: 'standard' },
  },
};

describeRow('a webhook', (atEnd) => {
  let stage: Stage;
  const open = async () => {
    stage = await openStage({ config, env: { ALERTS_SECRET: secret, BACKUPS_SECRET: standardSecret } });
    atEnd(() => stage.close());
    await stage.start();
  };
  const post = async (name: string, { headers, body }: SentDelivery, method = 'POST') => {
    const answer = await fetch(`${stage.parley().url}/webhooks/${name}`, { method, headers, body });
    return [answer.status, await answer.text()] as const;
  };
  const accepted = [202, '{"status":"accepted"}'];
  const repeated = [200, '{"status":"repeated"}'];
  const said = () => stage.telegram.botMessages(owner).map(({ text }) => text);
  const items = () =>
    readStore(stage.dataDir, `select "laneKey", authority, content from inbox where source = 'api'`);

  test("reports on record before an owner has written, and in the owner's chat from then on", async ({
    expect,
  }) => {
    await open();
    stage.model.script(() => ({ text: 'The disk is full.' }));
    expect(await post('alerts', alertmanager('resolved'))).toEqual(accepted);
    await untilAtRest(stage.dataDir, 0);
    expect(items()).toMatchObject([{ laneKey: 'main:api:webhook:dm:alerts', authority: 'guest' }]);
    stage.person('telegram', owner).says('hello');
    await untilSaid(stage.telegram, { chat: owner, text: 'The disk is full.' });
    stage.model.script(() => ({ text: 'Get up.' }));
    expect(await post('alerts', alertmanager())).toEqual(accepted);
    await untilSaid(stage.telegram, { chat: owner, text: 'Get up.' });
    await untilAtRest(stage.dataDir, 1);
    const [, second] = items();
    const [lane] = readStore(stage.dataDir, `select "laneKey" from inbox where source = 'platform'`);
    expect(second?.laneKey).toBe(lane?.laneKey);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('gives the agent the report as data, with the rights of a guest', async ({ expect }) => {
    const asked = stage.model.requests.at(-1)?.body;
    expect(asked === undefined ? '' : lastUserText(asked)).toMatch(
      /Tell me whether to get up\.\n<<<.*delivery to the webhook alerts: data[\s\S]*firing: The disk of db1 is 97 % full\./,
    );
    // The owner's turn offered tools of theirs, the report's only those of a guest.
    const offered = stage.model.requests.map(({ body }) => (body.tools ?? []).map(({ name }) => name));
    expect(offered.at(-2)).toContain('write');
    expect(offered.at(-1)).not.toContain('write');
  });

  test('answers a repeated delivery without a second turn, also after a kill', async ({ expect }) => {
    const before = stage.model.requests.length;
    expect(await post('alerts', alertmanager())).toEqual(repeated);
    await stage.parley().kill();
    await stage.start();
    expect(await post('alerts', alertmanager())).toEqual(repeated);
    const attempts = await Promise.all(Array.from({ length: 5 }, () => post('builds', github())));
    expect(attempts.toSorted()).toEqual([repeated, repeated, repeated, repeated, accepted]);
    await until(() => stage.model.requests.length > before, { what: 'the report of the build' });
    await untilAtRest(stage.dataDir, 1);
    expect(stage.model.requests).toHaveLength(before + 1);
    expect(said()).toEqual(['The disk is full.', 'Get up.', 'Get up.']);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('refuses an unproven delivery in the same words, and stores nothing of it', async ({ expect }) => {
    const before = items().length;
    const refused = [401, '{"error":{"code":"wrong_secret"}}'];
    const { body } = alertmanager();
    const headers = { authorization: 'Bearer wrong' };
    expect(await post('alerts', { headers, body })).toEqual(refused);
    expect(await post('alerts', { headers: {}, body })).toEqual(refused);
    expect(await post('nowhere', alertmanager())).toEqual(refused);
    expect(await post('constructor', alertmanager())).toEqual(refused);
    expect(await post('builds', github('push', 'another-secret-0123456789'))).toEqual(refused);
    const large = { ...alertmanager(), body: 'x'.repeat(256 * 1024 + 1) };
    expect((await post('alerts', large))[0]).toBe(413);
    const foreign = { ...alertmanager().headers, origin: 'https://evil.example' };
    expect((await post('alerts', { headers: foreign, body }))[0]).toBe(403);
    expect((await post('alerts', alertmanager(), 'PUT'))[0]).toBeGreaterThanOrEqual(400);
    expect(items()).toHaveLength(before);
  });

  test('takes the report of the example', async ({ expect }) => {
    const env = { PATH: process.env.PATH, PARLEY_URL: stage.parley().url, BACKUPS_SECRET: standardSecret };
    const example = spawn(process.execPath, ['examples/webhook/report.ts'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    });
    expect(await text(example.stdout)).toBe('202 {"status":"accepted"}\n');
    expect(JSON.parse(String(items().at(-1)?.content)).text).toContain('No space left.');
  });

  test("ignores GitHub's question whether the address works", async ({ expect }) => {
    const before = items().length;
    expect(await post('builds', github('ping'))).toEqual([200, '{"status":"ignored"}']);
    expect(items()).toHaveLength(before);
  });
});
