/** Plugins that are added, changed and removed while a gateway and a worker run. */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { endsInResult, type WireBody, type WireMessage } from '../platforms/anthropic/wire.ts';
import { findBreaches, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { databaseServer, makeDatabase, type OwnDatabase } from './own-database.ts';
import { pageToken } from './page-state.ts';
import type { ParleyProcess } from './parley-process.ts';
import { openStage, type Stage } from './stage.ts';
import { ada, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

/** A plugin with a part of each kind that a reload can replace. The import shows that all of its modules are. */
const source = `import { definePlugin, defineTool, z } from 'parley/plugin';
import { weather } from './weather.ts';
export const plugin = definePlugin({
  id: 'weather',
  setup(api) {
    api.tools.register('forecast', () =>
      defineTool({
        name: 'forecast',
        description: 'Tells the weather.',
        inputSchema: z.object({}),
        parallelSafe: true,
        replay: 'safe',
        authority: 'guest',
        execute: async () => ({ text: weather }),
      }),
    );
    api.commands.register({ name: 'sky', description: 'Shows the sky', run: () => ({ say: \`Sky: \${weather}.\` }) });
    api.routes.register({ method: 'GET', path: 'now', handle: () => ({ body: weather }) });
    api.hooks.on('message_sending', ({ text }) => ({ kind: 'rewrite', text: \`\${text} (\${weather})\` }));
  },
});
`;

/** Calls the tool if it is there, and repeats what it says. */
function useTool(body: WireBody) {
  const { messages, tools = [] } = body;
  if (endsInResult(body)) return { text: `Today: ${resultIn(messages.at(-1))}.` };
  const isThere = tools.some(({ name }) => name === 'forecast');
  return isThere ? { toolCalls: [{ name: 'forecast', input: {} }] } : { text: 'I know nothing of it.' };
}

function resultIn(message: WireMessage | undefined): string {
  const { content } = (typeof message?.content === 'object' ? message.content : []).at(-1) ?? {};
  return typeof content === 'string' ? content : (content?.[0]?.text ?? '');
}

describeRow('plugins of a running gateway and its worker', (atEnd) => {
  let stage: Stage;
  let gateway: ParleyProcess;
  const folder = () => join(stage.home, 'weather');
  const write = (file: string, text: string) => writeFileSync(join(folder(), file), text);
  const plugins = (...args: readonly string[]) =>
    runParley(['plugins', ...args], {
      PARLEY_CONFIG: join(stage.home, 'parley.config.json'),
      PARLEY_DATA_DIR: stage.dataDir,
      PARLEY_TOKEN: pageToken,
      ...stage.model.environment,
      ...stage.telegram.environment,
    });
  const reloads = () =>
    readFileSync(join(stage.dataDir, 'test.log'), 'utf8').split('"settings.reloaded"').length;
  /** Runs a command, and waits until the worker has followed. */
  const change = async (...args: readonly string[]) => {
    const before = reloads();
    const result = await plugins(...args);
    await until(() => reloads() >= before + 2, { what: 'both processes have reloaded' });
    return result;
  };
  const asks = async (text: string, answer: string) => {
    const before = said(stage.telegram, ada.id).length;
    stage.telegram.userSends({ from: ada, text });
    const isSaid = () => said(stage.telegram, ada.id).slice(before).includes(answer);
    await until(isSaid, { what: `the answer to ${text}` });
  };
  const route = async () => {
    const headers = { authorization: `Bearer ${pageToken}`, 'x-parley': '1' };
    const response = await fetch(`${gateway.url}/plugins/weather/now`, { headers });
    return response.ok ? response.text() : response.status;
  };

  beforeAll(async () => {
    stage = await openStage({ networks: ['web'] }, atEnd);
    stage.model.script(useTool);
    mkdirSync(folder());
    write('index.ts', source);
    write('weather.ts', `export const weather: string = 'sunny';\n`);
    [gateway] = await Promise.all([stage.start({ role: 'gateway' }), stage.start({ role: 'worker' })]);
  });

  test('offers an added plugin to the next message, in both processes', async ({ expect }) => {
    await asks('How is it?', 'I know nothing of it.');
    const added = await change('add', folder());
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.stdout).toContain('The plugin weather is loaded: the next message can use it.');
    expect(added.stdout).toMatch(/Told worker \d+ to reload/);
    await asks('And now?', 'Today: sunny. (sunny)');
    await asks('/sky', 'Sky: sunny.');
    expect(await route()).toBe('sunny');
  });

  test('replaces all modules of a plugin once its change is accepted', async ({ expect }) => {
    write('weather.ts', `export const weather: string = 'cloudy';\n`);
    const accepted = await change('check', 'weather', '--accept');
    expect(accepted.stdout).toContain('The plugin weather is loaded: the next message can use it.');
    await asks('How is it now?', 'Today: cloudy. (cloudy)');
    await asks('/sky', 'Sky: cloudy.');
    expect(await route()).toBe('cloudy');
  });

  test('turns a plugin off at a reload, and names it, if its change was not accepted', async ({ expect }) => {
    appendFileSync(join(folder(), 'weather.ts'), '// changed\n');
    const before = reloads();
    const env = { PARLEY_CONFIG: join(stage.home, 'parley.config.json'), PARLEY_DATA_DIR: stage.dataDir };
    const reloaded = await runParley(['reload'], { ...env, PARLEY_TOKEN: pageToken });
    await until(() => reloads() >= before + 2, { what: 'both processes have reloaded' });
    expect(reloaded.stdout).toMatch(/The plugin weather is off: .*files have changed/);
    await asks('Once more?', 'I know nothing of it.');
    expect(await route()).toBe(404);
    const status = await runParley(['status'], { ...env, PARLEY_TOKEN: pageToken });
    expect(status.stdout).toMatch(/plugin weather: .*files have changed/);
    expect((await plugins('list')).stdout).toMatch(/^weather +changed .*have changed/m);
    await change('check', 'weather', '--accept');
    await asks('Still cloudy?', 'Today: cloudy. (cloudy)');
  });

  test('ends an acceptance with 1 if the gateway can’t load what was accepted', async ({ expect }) => {
    write('weather.ts', `throw new Error('no barometer');\nexport const weather: string = 'none';\n`);
    const accepted = await change('check', 'weather', '--accept');
    expect(accepted).toMatchObject({ code: 1, stdout: expect.stringContaining('no barometer') });
    write('weather.ts', `export const weather: string = 'cloudy';\n`);
    expect(await change('check', 'weather', '--accept')).toMatchObject({ code: 0 });
  });

  test('ends a removed plugin, and keeps every promise meanwhile', async ({ expect }) => {
    const removed = await change('remove', 'weather');
    expect(removed.stdout).toContain('The plugin weather has ended.');
    await asks('Any weather?', 'I know nothing of it.');
    expect(await route()).toBe(404);
    await untilAtRest(stage.dataDir, 0);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});

describeRow(
  'a plugin with values in PostgreSQL, in processes with folders of their own',
  (atEnd) => {
    let stage: Stage;
    let read: OwnDatabase['read'];

    beforeAll(async () => {
      const database = await makeDatabase(atEnd);
      read = database.read;
      stage = await openStage({ env: { DATABASE_URL: database.url } }, atEnd);
      const folder = join(import.meta.dirname, '../../examples/plugins/counter');
      const env = { PARLEY_CONFIG: join(stage.home, 'parley.config.json'), PARLEY_DATA_DIR: stage.dataDir };
      await runParley(['plugins', 'add', folder], { ...env, ...stage.telegram.environment });
      await Promise.all([
        stage.start({ role: 'gateway', folder: 'one' }),
        stage.start({ role: 'worker', folder: 'two' }),
      ]);
    });

    test('counts each command once, also without a slot in its process', async ({ expect }) => {
      for (const count of [1, 2, 3]) {
        stage.telegram.userSends({ from: ada, text: '/count' });
        await untilSaid(stage.telegram, { chat: ada.id, text: `That makes ${count}.` });
      }
      const rows = await read('select plugin, key, value, version from "pluginData"');
      expect(rows).toEqual([{ plugin: 'counter', key: 'count', value: '3', version: expect.anything() }]);
    });
  },
  { isSkipped: databaseServer === undefined },
);
