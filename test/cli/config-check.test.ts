import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

/** Runs `parley config check` on a parley.config.json, which may have comments. */
async function check(settings: object | string, variables: Readonly<Record<string, string>> = {}) {
  const folder = aFolder();
  const path = join(folder, 'parley.config.json');
  writeFileSync(path, typeof settings === 'string' ? settings : JSON.stringify(settings));
  const ran = await runParley(['config', 'check'], {
    PARLEY_TEST_HOME: folder,
    PARLEY_CONFIG: path,
    TELEGRAM_BOT_TOKEN: `7000001:${'aB3'.repeat(12)}`,
    ...variables,
  });
  return { ...ran, path };
}

it('finds nothing wrong with a valid configuration', async () => {
  const { path, ...result } = await check({ channels: { telegram: { pollSeconds: 5 } } });
  expect(result).toEqual({ code: 0, stdout: `The configuration is valid (${path}).\n`, stderr: '' });
});

it('knows the channel of an added plugin by the name of the plugin', async () => {
  const settings = { owners: ['mailbox:ann'], queue: { channels: { mailbox: { mode: 'collect' } } } };
  const { stderr } = await check(settings);
  expect(stderr).toMatch(
    /queue\.channels: "mailbox" isn't a channel[\s\S]*owners: "mailbox" isn't a channel/,
  );
  const from = { from: './mailbox', digest: `sha256-${'0'.repeat(64)}`, enabled: false };
  expect(await check({ ...settings, plugins: { mailbox: from } })).toMatchObject({ code: 0, stderr: '' });
});

it('warns that no budget limits a model without prices', async () => {
  const models = { own: { provider: 'ollama', id: 'qwen3' }, free: { provider: 'ollama', id: 'a', prices } };
  const { code, stdout } = await check({ budgets: { gateway: 5 }, models });
  expect(code).toBe(0);
  expect(stdout).toContain('Parley knows no prices for own, so calls to it aren');
  expect((await check({ models })).stdout).not.toContain('Warning');
});

const prices = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

it('names invalid settings of a channel and a plugin', async () => {
  const { code, stderr } = await check({
    channels: { telegram: { pollSeconds: 'often' } },
    plugins: { files: { nonsense: 1 } },
  });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /2 problems:\n {2}- channels\.telegram\.pollSeconds: .*number.*\n {2}- plugins\.files: .*"nonsense"/,
  );
});

it('suggests the nearest name for an unknown setting of a channel, whether it is on or off', async () => {
  const { code, stderr } = await check({
    channels: {
      telegram: { polSeconds: 5, accounts: { work: { pollSecond: 3 } } },
      discord: { apiBse: 'http://127.0.0.1:1' },
    },
  });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /channels\.telegram: "polSeconds" isn't a known name\. Did you mean "pollSeconds"\?/,
  );
  expect(stderr).toMatch(/channels\.telegram\.accounts\.work: "pollSecond" .* "pollSeconds"\?/);
  expect(stderr).toMatch(/channels\.discord: "apiBse" .* "apiBase"\?/);
  expect(stderr).toContain('3 problems');
});

it('names an unknown channel wherever one is named', async () => {
  const { code, stderr } = await check({
    owners: ['telegrm:1', 'telegram:2'],
    queue: { channels: { discrod: { mode: 'collect' } }, conversations: { 'irc:1': {} } },
    reset: { channels: { signl: {} } },
    bindings: [{ agent: 'main', channel: 'telegramm' }],
  });
  expect(code).toBe(1);
  expect(stderr).toContain('5 problems');
  expect(stderr).toMatch(/owners: "telegrm" isn't a channel\. Did you mean "telegram"\?/);
  expect(stderr).toMatch(/queue\.channels: "discrod" .* "discord"\?/);
  expect(stderr).toMatch(/queue\.conversations: "irc" isn't a channel\. Use one of: telegram, /);
  expect(stderr).toMatch(/reset\.channels: "signl" .* "signal"\?/);
  expect(stderr).toMatch(/bindings\[0\]\.channel: "telegramm" .* "telegram"\?/);
});

it('names ids that a network never issues', async () => {
  const { stderr } = await check({
    owners: ['telegram:ada', 'telegram:chat:-100'],
    access: { allowFrom: ['signal:+15550001111'], allowGroups: ['signal:+Ab/c=', 'discord:general'] },
    identityLinks: { ann: ['signal:0F8FAD5B-D9CB-469F-A165-70867728950E'] },
  });
  expect(stderr).toContain('4 problems');
  expect(stderr).toMatch(/owners: "telegram:ada" matches nobody: .*numbers/);
  expect(stderr).toMatch(/access\.allowFrom: "signal:\+15550001111" matches nobody: .*ACI/);
  expect(stderr).toMatch(/access\.allowGroups: "discord:general" matches nobody/);
  expect(stderr).toMatch(/identityLinks\.ann: .* in lower case/);
});

it('allows comments and trailing commas, and names what the environment overrides', async () => {
  const text = `{
    // Read by people too.
    "port": 7500, /* the page */
    "channels": { "telegram": { "apiRoot": "http://127.0.0.1:1", }, },
  }`;
  const { path, ...result } = await check(text, { PARLEY_PORT: '7501' });
  expect(result).toEqual({
    code: 0,
    stdout: `The configuration is valid (${path} (ignored: port (overridden by PARLEY_PORT))).\n`,
    stderr: '',
  });
  expect((await check('{\n  // one\n  "port": 7500,,\n}')).stderr).toMatch(
    /isn't valid JSON at line 3, column 16/,
  );
});
